// SPDX-License-Identifier: Apache-2.0
//
// Samples as flamed does, with the same timers on all CPUs, but with a program that does nothing. What is left is the
// cost of the interrupts. Ends on SIGTERM or SIGINT.
//
//   nothing_sampler HERTZ
#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <vector>

#include "base/handle.h"
#include "daemon/sampler/perf_event.h"

// Written by bpftool, in C.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#include "test/bench/probes/nothing.skel.h"
#pragma GCC diagnostic pop

namespace flamed::test {
namespace {

using Skeleton = Handle<::nothing_bpf*, ::nothing_bpf__destroy>;

int run(int hertz) {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT}) ::sigaddset(&signals, signal);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  const Skeleton skeleton(::nothing_bpf__open_and_load());
  if (!skeleton) {
    std::fprintf(stderr, "cannot load the empty program\n");
    return 1;
  }
  const int program = ::bpf_program__fd(skeleton.get()->progs.nothing);
  // Like the sampler's.
  perf_event_attr attributes{};
  attributes.size = sizeof(attributes);
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_CPU_CLOCK;
  attributes.sample_period = static_cast<std::uint64_t>(1'000'000'000 / hertz);
  attributes.exclude_idle = 1;
  attributes.disabled = 1;
  std::vector<Fd> timers;
  const int cpus = ::libbpf_num_possible_cpus();
  for (int cpu = 0; cpu < cpus; ++cpu) {
    Result<Fd> timer = daemon::open_perf_event(attributes, cpu, "timer");
    if (!timer) continue;  // offline
    if (::ioctl(timer->get(), PERF_EVENT_IOC_SET_BPF, program) != 0 ||
        ::ioctl(timer->get(), PERF_EVENT_IOC_ENABLE, 0) != 0) {
      std::fprintf(stderr, "no timer on CPU %d\n", cpu);
      return 1;
    }
    timers.push_back(std::move(timer).value());
  }
  if (timers.empty()) {
    std::fprintf(stderr, "no timer on any CPU\n");
    return 1;
  }
  std::printf("ready\n");
  std::fflush(stdout);
  int signal = 0;
  ::sigwait(&signals, &signal);
  return 0;
}

}  // namespace
}  // namespace flamed::test

int main(int argc, char** argv) try {
  return flamed::test::run(argc > 1 ? std::max(1, std::atoi(argv[1])) : 99);
} catch (const std::exception& exception) {
  std::fprintf(stderr, "nothing_sampler: %s\n", exception.what());
  return 1;
}
