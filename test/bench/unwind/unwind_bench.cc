// SPDX-License-Identifier: Apache-2.0
//
// The cost of one sample in the kernel, by the depth of the user stack: flamed by unwind tables, the kernel's own walk
// by frame pointers (bpf_get_stack), and flamed's walk by frame pointers. One JSON object on stdout. Needs root, and
// the environment that bench.py sets.
//
//   unwind_bench [repetitions] [milliseconds] [hertz]      (default 7, 1000, 999)
//
// All three are measured in turn, on one program that was built with and without frame pointers. The BPF programs are
// attached to timers of the measured process only, so that samples of other processes don't count; the daemons' own
// timers tick once a second. The kernel's statistics count a whole chain of tail calls for its first program:
// walk_user_stack, which is only tail-called, has none of its own.
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/handle.h"

// Written by bpftool, in C.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#include "test/bench/unwind/get_stack.skel.h"
#pragma GCC diagnostic pop

#include "test/support/child_process.h"
#include "test/support/running_daemon.h"

namespace flamed::test {
namespace {

using Milliseconds = std::chrono::milliseconds;
using Skeleton = Handle<::get_stack*, ::get_stack__destroy>;

constexpr int kDepths[] = {10, 30, 60, 120};
/// Frames outside of the recursion: _start, two of libc, main, the one at depth 0, work.
constexpr int kOtherFrames = 6;

[[noreturn]] void fail(const std::string& what) { throw std::runtime_error(what); }

bpf_prog_info info_of(int program) {
  bpf_prog_info info{};
  __u32 size = sizeof(info);
  if (::bpf_obj_get_info_by_fd(program, &info, &size) != 0) fail("bpf_obj_get_info_by_fd");
  return info;
}

/// The BPF program with that name among the descriptors of a process.
std::optional<Fd> find_program(pid_t pid, const std::string& name) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fdinfo")) {
    std::ifstream lines(entry.path());
    for (std::string line; std::getline(lines, line);) {
      if (line.rfind("prog_id:", 0) != 0) continue;
      Fd program(::bpf_prog_get_fd_by_id(static_cast<__u32>(std::stoul(line.substr(8)))));
      if (program && info_of(program.get()).name == name) return program;
    }
  }
  return std::nullopt;
}

/// One of them is loaded only after sampling has begun.
Fd program_of(pid_t pid, const std::string& name) {
  for (int i = 0; i < 100; ++i) {
    if (std::optional<Fd> program = find_program(pid, name)) return std::move(*program);
    std::this_thread::sleep_for(Milliseconds(100));
  }
  fail("process " + std::to_string(pid) + " has no BPF program " + name);
}

/// bpf_get_stack() on its own, with perf buffers, as profilers have them.
class KernelWalk {
 public:
  KernelWalk() : skeleton_(::get_stack__open_and_load()) {
    if (!skeleton_) fail("cannot load the program around bpf_get_stack");
    constexpr std::size_t kPages = 128;  // half a MiB for each CPU
    buffers_.reset(::perf_buffer__new(::bpf_map__fd(skeleton_.get()->maps.rings), kPages, &KernelWalk::count,
                                      &KernelWalk::count_lost, this, nullptr));
    if (!buffers_) fail("cannot open perf buffers");
  }
  [[nodiscard]] int program() const { return ::bpf_program__fd(skeleton_.get()->progs.get_stack); }
  /// Empties the buffers, and returns the average number of frames in their records.
  double drain() {
    frames_ = records_ = 0;
    ::perf_buffer__consume(buffers_.get());
    return records_ == 0 ? 0 : static_cast<double>(frames_) / static_cast<double>(records_);
  }

 private:
  using Buffers = Handle<perf_buffer*, ::perf_buffer__free>;

  static void count(void* self, int /*cpu*/, void* /*data*/, __u32 bytes) {
    // struct record of get_stack.bpf.c follows the length. Both together are padded to 8 bytes.
    constexpr __u32 kAround = 4 + 8;
    static_cast<KernelWalk*>(self)->frames_ += (bytes - kAround) / 8;
    static_cast<KernelWalk*>(self)->records_ += 1;
  }
  static void count_lost(void* /*self*/, int /*cpu*/, __u64 /*records*/) {}

  Skeleton skeleton_;
  Buffers buffers_;
  std::uint64_t frames_ = 0;
  std::uint64_t records_ = 0;
};

struct Run {
  double nanoseconds = 0;  ///< per sample
  double samples = 0;
};

/// Samples one process with one program for a while.
Run measure(int program, pid_t pid, Milliseconds duration, int hertz) {
  perf_event_attr attributes{};
  attributes.size = sizeof(attributes);
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_CPU_CLOCK;
  attributes.sample_period = static_cast<std::uint64_t>(1'000'000'000 / hertz);
  attributes.disabled = 1;
  Fd timer(static_cast<int>(::syscall(SYS_perf_event_open, &attributes, pid, -1, -1, PERF_FLAG_FD_CLOEXEC)));
  if (!timer || ::ioctl(timer.get(), PERF_EVENT_IOC_SET_BPF, program) != 0) fail("no timer for the measured process");
  ::kill(pid, SIGCONT);
  const bpf_prog_info before = info_of(program);
  ::ioctl(timer.get(), PERF_EVENT_IOC_ENABLE, 0);
  std::this_thread::sleep_for(duration);
  ::ioctl(timer.get(), PERF_EVENT_IOC_DISABLE, 0);
  const bpf_prog_info after = info_of(program);
  ::kill(pid, SIGSTOP);
  Run run;
  run.samples = static_cast<double>(after.run_cnt - before.run_cnt);
  run.nanoseconds = static_cast<double>(after.run_time_ns - before.run_time_ns) / std::max(1.0, run.samples);
  return run;
}

struct Walk {
  std::string name;
  int program;
  std::string victim;
  std::map<int, std::unique_ptr<ChildProcess>> victims;  ///< by depth
  std::map<int, std::vector<double>> nanoseconds;        ///< by depth
};

nlohmann::json spread(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {{"min", values.front()}, {"median", values[values.size() / 2]}, {"max", values.back()}};
}

double median(std::vector<double> values) { return spread(std::move(values))["median"]; }

nlohmann::json report_of(const Walk& walk) {
  nlohmann::json depths;
  for (const auto& [depth, values] : walk.nanoseconds) depths[std::to_string(depth)] = spread(values);
  const double shallow = median(walk.nanoseconds.at(10));
  const double deep = median(walk.nanoseconds.at(120));
  return {{"ns_per_sample", depths}, {"ns_per_frame", (deep - shallow) / 110}};
}

/// The share of a process's whole stacks, by the daemon's count.
double whole_share(const RunningDaemon& daemon, pid_t pid) {
  double whole = 0;
  double all = 0;
  for (const auto& [stack, count] : daemon.folded("/profile?format=folded&pid=" + std::to_string(pid))) {
    all += static_cast<double>(count);
    if (stack.rfind("[truncated", 0) != 0) whole += static_cast<double>(count);
  }
  return all == 0 ? 0 : whole / all;
}

int run(int repetitions, Milliseconds duration, int hertz) {
  const Fd statistics(::bpf_enable_stats(BPF_STATS_RUN_TIME));
  if (!statistics) fail("cannot turn on the kernel's statistics of BPF programs");
  RunningDaemon by_tables({"--frequency", "1"});
  RunningDaemon by_frame_pointers({"--frequency", "1", "--unwind", "frame-pointers"});
  const Fd tables = program_of(by_tables.process().pid(), "sample_cpu");
  const Fd called = program_of(by_tables.process().pid(), "walk_user_stack");
  const Fd frame_pointers = program_of(by_frame_pointers.process().pid(), "sample_cpu");
  KernelWalk kernel_walk;

  const std::string plain = std::string(std::getenv("FLAMED_VICTIMS")) + "/victim_chains";
  const std::string kept = std::string(std::getenv("FLAMED_BENCHES")) + "/unwind/victim_chains_with_frame_pointers";
  Walk walks[] = {{"tables", tables.get(), plain, {}, {}},
                  {"get_stack", kernel_walk.program(), kept, {}, {}},
                  {"frame_pointers", frame_pointers.get(), kept, {}, {}}};
  std::map<int, double> kernel_frames;
  // One more round to warm up: the daemon sees the processes, and rows are built.
  for (int round = -1; round < repetitions; ++round) {
    for (const int depth : kDepths) {
      for (Walk& walk : walks) {
        std::unique_ptr<ChildProcess>& process = walk.victims[depth];
        if (!process) {
          process = std::make_unique<ChildProcess>(
              std::vector<std::string>{walk.victim, "recursion", std::to_string(depth - kOtherFrames)});
        }
        const Run measured = measure(walk.program, process->pid(), duration, hertz);
        if (walk.name == "get_stack") kernel_frames[depth] = kernel_walk.drain();
        if (round >= 0) walk.nanoseconds[depth].push_back(measured.nanoseconds);
      }
    }
  }

  nlohmann::json report;
  for (const Walk& walk : walks) report[walk.name] = report_of(walk);
  for (const auto& [depth, frames] : kernel_frames) report["get_stack"]["frames"][std::to_string(depth)] = frames;
  report["tables"]["whole_share"] = whole_share(by_tables, walks[0].victims[120]->pid());
  report["tables"]["runs_counted_of_called_program"] = info_of(called.get()).run_cnt;
  report["ratio_at_30_frames"] = median(walks[0].nanoseconds[30]) / median(walks[1].nanoseconds[30]);
  utsname system{};
  ::uname(&system);
  report["kernel"] = system.release;
  report["repetitions"] = repetitions;
  report["milliseconds"] = duration.count();
  report["hertz"] = hertz;
  std::printf("%s\n", report.dump(2).c_str());
  return 0;
}

}  // namespace
}  // namespace flamed::test

int main(int argc, char** argv) {
  try {
    const int repetitions = argc > 1 ? std::atoi(argv[1]) : 7;
    const int milliseconds = argc > 2 ? std::atoi(argv[2]) : 1000;
    const int hertz = argc > 3 ? std::atoi(argv[3]) : 999;
    return flamed::test::run(repetitions, flamed::test::Milliseconds(milliseconds), hertz);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "unwind_bench: %s\n", error.what());
    return 1;
  }
}
