// SPDX-License-Identifier: Apache-2.0
//
// The API over a synthetic host with a stopped clock: each run has the same samples, so that the same queries have the
// same answers, byte for byte. For ask_all.py.
//
//   answers_host   listens on a free port of the loopback address, prints "http://127.0.0.1:PORT", runs until SIGTERM
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "api/server/server.h"
#include "store/index/kept_index.h"
#include "test/unit/api/answer/fake_sources.h"

namespace flamed::api {
namespace {

constexpr std::int64_t kHistoryNs = 130 * kNsPerMinute;
constexpr std::uint64_t kFunctions = 240;
constexpr std::size_t kStacks = 120;
constexpr std::int64_t kSecondPeriodNs = 20'000'000;

/// Every kind of frame, chains of inlined functions, names that need escapes, and some unknown ones.
store::InlineChain name_of(const Frame& frame) {
  using store::FrameKind;
  const std::string number = std::to_string(frame.offset);
  if (frame.module == kKernelModule) return {{"sys_" + number, "[kernel]", FrameKind::kKernel, ""}};
  if (frame.module == kHiddenModule) return {{"[not shown]", "", FrameKind::kUnknown, "not dumpable"}};
  if (frame.module == kTruncatedModule) return {{"[truncated]", "", FrameKind::kUnknown, "cut"}};
  const std::string module = "libpart" + std::to_string(frame.module.value % 5) + ".so.1";
  store::NamedFrame named{"part::function_" + number, module, FrameKind::kNative, ""};
  switch (frame.offset % 12) {
    case 0:
      return {{"[unknown] (" + module + "+0x" + number + ")", module, FrameKind::kUnknown, "no symbols"}};
    case 1:
      return {{"Lorg/host/Part;::run_" + number, "", FrameKind::kJit, ""}};
    case 2: {
      store::NamedFrame inlined{"inner_" + number, module, FrameKind::kNative, ""};
      inlined.full_name = inlined.name + "(std::vector<int>&)";
      inlined.file = "include/inner.h";
      inlined.line = 34;
      inlined.inlined = true;
      named.file = "outer \"<&>.cc";
      named.line = 12;
      return {named, inlined};
    }
    case 3:
      named.name = "größe_" + number + ";<&>";
      return {named};
    default:
      named.full_name = named.name + "<int>(char const*)";
      named.build_id = "00112233445566778899aabbccddeeff0011223" + std::to_string(frame.module.value % 5);
      named.file = "src/part.cc";
      named.line = static_cast<std::uint32_t>(frame.offset / 3);
      return {named};
  }
}

class MadeUpHost final : public FakeSources, private store::FrameNamer {
 public:
  MadeUpHost() : FakeSources({.retention_ns = 3 * 60 * kNsPerMinute}, kHistoryNs) {
    store_.begin();
    add_processes();
    for (std::size_t i = 0; i < kStacks; ++i) stacks_.push_back(stack());
    add_history();
    health_ = {true, false, {{"sampler", true, "99 Hz on 4 CPUs"}, {"unwinding", false, "2 files were not read"}}};
    machine_cpu_ = {std::uint64_t{1'500'000'000'000}, ""};
    process_cpu_[100] = {std::uint64_t{90'000'000'000}, ""};
  }

  [[nodiscard]] store::FrameNamer& namer() override { return *this; }

 private:
  struct Program {
    ProcessId id;
    std::uint32_t user;
    std::string comm;
  };

  std::vector<std::shared_ptr<const store::InlineChain>> name(std::span<const Frame> frames) override {
    std::vector<std::shared_ptr<const store::InlineChain>> chains;
    for (const Frame& frame : frames) chains.push_back(std::make_shared<store::InlineChain>(name_of(frame)));
    return chains;
  }

  [[nodiscard]] store::KeptIndex* kept_index() override { return &index_; }

  void add_processes() {
    constexpr std::array kNames{"init", "web", "sql server", "größe", "a;b\"c\\d", "java", "build", "cc1plus"};
    for (std::int32_t i = 0; i < 24; ++i) {
      const std::string name = kNames.at(static_cast<std::size_t>(i) % kNames.size());
      const ProcessId id{100 + i * 50, std::uint64_t{1000} + static_cast<std::uint64_t>(i)};
      const std::uint32_t user = i % 3 == 0 ? 0U : i % 3 == 1 ? ::getuid() : 1000U;
      store::ProcessInfo info{id, name, "/usr/bin/" + name, static_cast<std::uint64_t>(i), {}, {}};
      info.started = WallTime{kNowNs - (10 + i) * 10 * kNsPerMinute};
      if (i % 7 == 6) info.ended = WallTime{kNowNs - i * kNsPerMinute};
      if (i > 0) {
        info.parent_pid = 100 + i / 2 * 50;
        info.parent_start_ticks = std::uint64_t{1000} + static_cast<std::uint64_t>(i) / 2;
      }
      info.uid = user;
      info.command_line = name + " --number " + std::to_string(i) + " <&>";
      if (i % 4 != 3) {
        const std::string unit = "unit-" + std::to_string(i % 4) + ".service";
        info.cgroup = "/system.slice/" + unit;
        info.unit = unit;
      }
      if (i % 5 == 4) info.container = std::string(64, static_cast<char>('a' + i % 6));
      store_.update_process(info);
      if (user != 0 || i % 2 == 0) running_[id.pid] = user;
      programs_.push_back({id, user, name});
    }
    // A reused pid.
    programs_.push_back({{150, 999'999}, 1000, "again"});
    store_.update_process({{150, 999'999}, "again", "/opt/again", 0, WallTime{kNowNs - kNsPerMinute}, {}});
  }

  std::vector<Frame> stack() {
    std::vector<Frame> frames;
    std::uint64_t function = random_() % 4;
    const std::uint64_t depth = 3 + random_() % 28;
    for (std::uint64_t i = 0; i < depth; ++i) {
      const std::uint64_t dice = random_() % 100;
      function = (function * 31 + (dice < 80 ? 0 : dice % 3) + 7) % kFunctions;
      frames.push_back({ModuleId{16 + static_cast<std::uint32_t>(function % 9)}, function});
    }
    if (random_() % 5 == 0) {
      for (std::uint64_t i = random_() % 6; i > 0; --i) frames.push_back({kKernelModule, random_() % 40});
    }
    return frames;
  }

  /// Each program has a dozen, and shares some of them with others.
  const std::vector<Frame>& choose_stack(const Program& program) {
    const auto first = static_cast<std::size_t>(program.id.pid) * 7;
    return stacks_[(first + random_() % 12) % kStacks];
  }

  void add_sample(MonotonicTime time) {
    const Program& program = programs_[random_() % 3 == 0 ? random_() % programs_.size() : random_() % 4];
    const std::vector<Frame> frames = random_() % 200 == 0 ? std::vector<Frame>{} : choose_stack(program);
    store::StackSample sample{time, program.id, program.id.pid, program.comm, frames, {}};
    if (const std::uint64_t thread = random_() % 4; thread > 0) {
      sample.tid += static_cast<std::int32_t>(thread);
      if (thread == 3) sample.comm = "worker 3";
    }
    if (random_() % 50 == 0) sample.truncation = static_cast<store::Truncation>(random_() % store::kTruncationCount);
    sample.cpu = static_cast<std::uint16_t>(random_() % 4);
    sample.owner = program.user;
    sample.is_hidden = program.id.pid % 400 == 0 || random_() % 100 == 0;
    store_.add(sample);
  }

  void add_history() {
    const std::int64_t seconds = kHistoryNs / kNsPerSecond;
    for (std::int64_t second = 0; second < seconds; ++second) {
      const MonotonicTime now = clock_.monotonic();
      if (second == seconds / 3) store_.set_period_ns(kSecondPeriodNs, now);
      const bool is_busy = second % 900 < 600;
      for (std::int64_t i = 0; i < (is_busy ? 40 : 6); ++i) {
        add_sample({now.ns + i * (kNsPerSecond / 40)});
      }
      if (second % 1000 == 999) store_.add_lost(store::Loss::kRingFull, 17, now);
      if (second == 2000) add_gap(store::GapReason::kSuspended, {});
      if (second == 5000) add_gap(store::GapReason::kCpuCameOnline, std::uint16_t{3});
      clock_.advance_ns(kNsPerSecond);
      store_.advance(clock_.monotonic());
    }
  }

  void add_gap(store::GapReason reason, std::optional<std::uint16_t> cpu) {
    const WallTime now = clock_.wall();
    store_.add_gap({{now.ns - 20 * kNsPerSecond}, now, reason, cpu});
  }

  store::KeptIndex index_{std::size_t{32} << 20};
  std::vector<Program> programs_;
  std::vector<std::vector<Frame>> stacks_;
  std::mt19937_64 random_{1};
};

int run() {
  // Before the server's threads exist, so that they inherit it and only sigwait() sees the signal.
  sigset_t ends;
  ::sigemptyset(&ends);
  ::sigaddset(&ends, SIGTERM);
  ::sigaddset(&ends, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &ends, nullptr);

  MadeUpHost host;
  ServerOptions options;
  options.addresses = {{"127.0.0.1", 0}};
  const auto server = Server::listen(std::move(options), host);
  if (!server) {
    std::fprintf(stderr, "%s\n", server.error().message().c_str());
    return 1;
  }
  std::printf("http://127.0.0.1:%u\n", static_cast<unsigned>((*server)->port()));
  std::fflush(stdout);
  int signal = 0;
  ::sigwait(&ends, &signal);
  return 0;
}

}  // namespace
}  // namespace flamed::api

int main() { return flamed::api::run(); }
