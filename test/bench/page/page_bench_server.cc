// SPDX-License-Identifier: Apache-2.0
//
// The API and the page over a synthetic day of a busy host, two processes whose profiles are large trees, and the 2,000
// processes of a build, for page_bench.mjs.
//
//   page_bench_server [minutes [cpus [live|build]]]   (default 1440 and 4) listens on a free port of the loopback
//                                                     address, prints "http://127.0.0.1:PORT", runs until SIGTERM
//
// With "live" the history goes on, a second every second; with "build" the two large trees are left out. Without "live"
// each query is still answered anew, so that no reused answer is measured. Pid 200000 has a tree of about as many nodes
// in the history's newest minute, pid 1000000 likewise. The build runs five minutes before the end: 2,000 processes of
// eight programs in twenty units, with about 200,000 nodes.
#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/server/server.h"
#include "base/heap.h"
#include "store/index/kept_index.h"
#include "store/model/wait_reason.h"
#include "symbolizer/names/caching_symbolizer.h"
#include "test/unit/api/answer/fake_sources.h"

namespace flamed::api {
namespace {

constexpr std::uint64_t kFunctions = 20'000;
constexpr int kServices = 40;
constexpr std::size_t kPool = 1500;
constexpr std::int32_t kFirstPid = 500;
constexpr int kHz = 100;
constexpr int kBuilders = 2000;
constexpr std::int32_t kFirstBuilder = 20'000;
constexpr int kBuildAgeS = 300;
constexpr int kRecentS = 1800;
constexpr int kVisitEveryS = 10;
constexpr ProcessId kBusy{300, 1};

/// Replaces the daemon's reading of files.
class MadeUpSymbols final : public symbolizer::Symbolizer {
 public:
  std::vector<symbolizer::SymbolChainPtr> symbolise(std::span<const Frame> frames) override {
    std::vector<symbolizer::SymbolChainPtr> chains;
    chains.reserve(frames.size());
    for (const Frame& frame : frames) {
      chains.push_back(share(symbolizer::SymbolChain(1, symbol(frame))));
    }
    return chains;
  }

 private:
  static symbolizer::Symbol symbol(const Frame& frame) {
    const std::optional<store::WaitReason> reason = store::wait_reason_in(frame);
    if (reason) return {"[" + std::string(name_of(*reason)) + "]", "", FrameKind::kKernel, ""};
    return symbol(frame.offset);
  }
  static symbolizer::Symbol symbol(std::uint64_t function) {
    constexpr std::array<FrameKind, 4> kKinds{FrameKind::kNative, FrameKind::kNative, FrameKind::kJit,
                                              FrameKind::kKernel};
    const FrameKind kind = kKinds[function % kKinds.size()];
    const std::string part = "part_" + std::to_string(function % 97);
    symbolizer::Symbol symbol{
        "service::" + part + "::function_" + std::to_string(function) + "(std::vector<Item> const&)",
        kind == FrameKind::kKernel ? "[kernel]" : "libservice" + std::to_string(function % 7) + ".so", kind, ""};
    if (kind == FrameKind::kNative) symbol.file = part + ".cc";
    return symbol;
  }
};

/// Names through the daemon's cache with its usual size, which holds the 263,000 addresses of a query about the whole
/// machine here.
class BenchSources final : public FakeSources, private store::FrameNamer {
 public:
  using FakeSources::FakeSources;
  [[nodiscard]] store::FrameNamer& namer() override { return *this; }
  /// One instruction at each place.
  [[nodiscard]] MachineCode code_at(const CodeQuestion& question) override {
    MachineCode code;
    for (const std::uint64_t offset : question.offsets)
      code.functions.push_back({offset, 1, offset, {{offset, "\x90", "nop"}}});
    return code;
  }
  [[nodiscard]] std::uint64_t await_revision() const override {
    return is_live ? FakeSources::await_revision() : ++asked_;
  }

  bool is_live = false;  ///< set before the server begins

 private:
  std::vector<std::shared_ptr<const store::InlineChain>> name(std::span<const Frame> frames) override {
    return cache_.symbolise(frames);
  }
  std::uint64_t edition(std::span<const ModuleId> modules) override { return cache_.edition(modules); }
  [[nodiscard]] store::KeptIndex* kept_index() override { return &index_; }

  mutable std::atomic<std::uint64_t> asked_{0};
  store::KeptIndex index_{std::size_t{32} << 20};
  MadeUpSymbols symbols_;
  symbolizer::CachingSymbolizer cache_{symbols_, clock_};
};

/// As in store_bench.cc: down a fixed call graph in which a function's first callee is by far the most frequent.
std::vector<Frame> walk(std::uint32_t module, std::size_t number) {
  std::minstd_rand random(static_cast<std::uint32_t>(number) * 64 + module + 1);
  std::uniform_real_distribution<double> unit(0, 1);
  std::vector<Frame> frames;
  std::uint64_t function = 1;
  const std::size_t depth = 10 + random() % 40;
  for (std::size_t i = 0; i < depth; ++i) {
    const double skew = unit(random);
    const double first = i + 6 < depth ? 0.97 : 0.6;
    const std::uint64_t callee = skew < first ? 0 : skew < 0.99 ? 1 : 2;
    function = (function * 2654435761U + callee * 40503U + 17 + module) % kFunctions;
    frames.push_back({ModuleId{16 + module}, function});
  }
  return frames;
}

/// A tree in which every function calls three, until there are `nodes` of them: two thirds are leaves.
void add_tree(FakeSources& sources, std::int32_t nodes, int cpus) {
  const ProcessId process{nodes, 1};
  sources.add_process(process, "tree-" + std::to_string(nodes));
  const int leaves = nodes / 3 * 2;
  std::vector<Frame> frames;
  std::vector<int> path;
  for (int leaf = 0; leaf < leaves; ++leaf) {
    path.clear();
    for (int node = nodes / 3 + leaf; node > 0; node = (node - 1) / 3) path.push_back(node);
    frames.assign(1, {ModuleId{16}, 0});
    for (auto node = path.rbegin(); node != path.rend(); ++node) {
      frames.push_back({ModuleId{16}, static_cast<std::uint64_t>(*node) * 2654435761U % kFunctions});
    }
    const MonotonicTime now = sources.clock_.monotonic();
    for (int count = leaf % 5 == 0 ? 3 : 1; count > 0; --count) {
      sources.store_.add({now, process, nodes, "tree", frames, {}, static_cast<std::uint16_t>(leaf % cpus)});
    }
  }
}

/// A build: seven in ten of its processes are compilers.
void add_build(FakeSources& sources, int cpus) {
  constexpr std::array<std::string_view, 7> kOthers{"as", "ld", "sh", "make", "python3", "rustc", "git"};
  constexpr std::size_t kStacks = 6;
  for (int i = 0; i < kBuilders; ++i) {
    const std::string program{i % 10 < 7 ? "cc1plus" : kOthers[static_cast<std::size_t>(i) % kOthers.size()]};
    const ProcessId process{kFirstBuilder + i, 7};
    store::ProcessInfo info{
        process, program, "/usr/lib/build/" + program, 0, WallTime{FakeSources::kNowNs - 2 * kBuildAgeS * kNsPerSecond},
        {}};
    info.command_line = info.executable + " -O2 -c source/part_" + std::to_string(i) + ".cc";
    info.unit = "builder-" + std::to_string(i % 20) + ".service";
    info.cgroup = "/system.slice/" + info.unit;
    info.uid = 1000;
    sources.store_.update_process(info);
    const MonotonicTime now = sources.clock_.monotonic();
    for (std::size_t stack = 0; stack < kStacks; ++stack) {
      const auto frames = walk(kServices + 1, static_cast<std::size_t>(i) * kStacks + stack);
      for (int count = 0; count < 1 + i % 5; ++count) {
        sources.store_.add({now, process, process.pid, program, frames, {}, static_cast<std::uint16_t>(i % cpus)});
      }
    }
  }
}

/// What a busy host does, second by second.
class History {
 public:
  History(FakeSources& sources, int cpus) : sources_(sources), cpus_(cpus) {
    for (int service = 0; service < kServices; ++service) {
      sources.add_process({kFirstPid + service * 100, 1}, "service-" + std::to_string(service));
      auto& pool = pools_.emplace_back();
      for (std::size_t i = 0; i < kPool; ++i) pool.push_back(walk(static_cast<std::uint32_t>(service), i));
    }
    sources.add_process(kBusy, "busy");
  }

  void add_second() {
    const int per_second = cpus_ * kHz;
    for (int i = 0; i < per_second; ++i) {
      const std::uint64_t dice = random_();
      const std::size_t service = dice % 10 < 7 ? (dice >> 8) % 6 : (dice >> 8) % kServices;
      const double unit = static_cast<double>((dice >> 16) & 0xffff) / 65536;
      const auto pid = static_cast<std::int32_t>(kFirstPid + service * 100);
      const std::int32_t tid = pid + static_cast<std::int32_t>((dice >> 32) % (service < 6 ? 64 : 4));
      const MonotonicTime time{sources_.clock_.monotonic().ns + i * (kNsPerSecond / per_second)};
      sources_.store_.add({time,
                           {pid, 1},
                           tid,
                           "service",
                           pools_[service][static_cast<std::size_t>(unit * unit * unit * kPool)],
                           {},
                           static_cast<std::uint16_t>(i % cpus_)});
    }
    sources_.clock_.advance_ns(kNsPerSecond);
    sources_.store_.advance(sources_.clock_.monotonic());
  }

  /// The next second is one of the last half hour's.
  void add_recent() {
    const MonotonicTime now = sources_.clock_.monotonic();
    for (int i = 0; i < kHz; ++i) {
      const MonotonicTime time{now.ns + i * (kNsPerSecond / kHz)};
      sources_.store_.add({time, kBusy, kBusy.pid, "busy", pools_.front()[random_() % kPool], {}, 0});
    }
    if (now.ns / kNsPerSecond % kVisitEveryS != 0) return;
    constexpr std::array<store::WaitReason, 4> kReasons{store::WaitReason::kLock, store::WaitReason::kDisk,
                                                        store::WaitReason::kNetwork, store::WaitReason::kPoll};
    for (std::int32_t service = 0; service < kServices; ++service) {
      for (std::int32_t thread = 0; thread < (service < 6 ? 64 : 4); ++thread) {
        std::vector<Frame> frames = pools_[static_cast<std::size_t>(service)][random_() % kPool];
        frames.push_back(store::wait_frame(kReasons[random_() % kReasons.size()]));
        const std::int32_t pid = kFirstPid + service * 100;
        store::WaitSample visit;
        visit.sample = {now, {pid, 1}, pid + thread, "service", frames, {}};
        visit.last_seen = {now.ns - kVisitEveryS * kNsPerSecond};
        visit.waited_ns = (kVisitEveryS - 1) * kNsPerSecond;
        sources_.store_.add_wait(visit);
      }
    }
    sources_.store_.set_waits_seen(now);
  }

 private:
  FakeSources& sources_;
  const int cpus_;
  std::vector<std::vector<std::vector<Frame>>> pools_;
  std::mt19937_64 random_{1};
};

int run(int minutes, int cpus, std::string_view how) {
  const bool is_live = how == "live";
  // Before the server's threads exist, so that they inherit it and only sigwait() sees the signal.
  sigset_t ends;
  ::sigemptyset(&ends);
  ::sigaddset(&ends, SIGTERM);
  ::sigaddset(&ends, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &ends, nullptr);

  BenchSources sources({.budget_bytes = 1U << 30}, minutes * kNsPerMinute);
  History history(sources, cpus);
  for (int second = 0; second < minutes * 60; ++second) {
    if (second == std::max(minutes * 60 - kBuildAgeS, 0)) add_build(sources, cpus);
    if (second >= minutes * 60 - kRecentS) history.add_recent();
    history.add_second();
  }
  if (how != "build") {
    add_tree(sources, 200'000, cpus);
    add_tree(sources, 1'000'000, cpus);
  }
  sources.clock_.advance_ns(kNsPerSecond);
  sources.store_.advance(sources.clock_.monotonic());
  sources.is_live = is_live;
  sources.health_.has_waits = true;
  ServerOptions options;
  options.addresses = {{"127.0.0.1", 0}};
  options.when_quiet = give_back_freed_memory;
  const auto server = Server::listen(std::move(options), sources);
  if (!server) {
    std::fprintf(stderr, "%s\n", server.error().message().c_str());
    return 1;
  }
  std::printf("http://127.0.0.1:%u\n", static_cast<unsigned>((*server)->port()));
  std::fflush(stdout);
  constexpr timespec kSecond{.tv_sec = 1, .tv_nsec = 0};
  while (::sigtimedwait(&ends, nullptr, &kSecond) < 0) {
    if (is_live) history.add_second();
  }
  return 0;
}

}  // namespace
}  // namespace flamed::api

int main(int argc, char** argv) {
  flamed::keep_freed_memory();  // as the daemon does
  const int minutes = argc > 1 ? std::max(std::atoi(argv[1]), 1) : 24 * 60;
  const int cpus = argc > 2 ? std::clamp(std::atoi(argv[2]), 1, 1024) : 4;
  return flamed::api::run(minutes, cpus, argc > 3 ? argv[3] : "");
}
