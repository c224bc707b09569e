// SPDX-License-Identifier: Apache-2.0
//
// Counts the system calls that the processes of a control group make, and prints the number.
//
//   system_call_counter CGROUP_ID SECONDS
#include <bpf/libbpf.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "base/handle.h"

// Written by bpftool, in C.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#include "test/bench/probes/system_calls.skel.h"
#pragma GCC diagnostic pop

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const flamed::Handle<::system_calls_bpf*, ::system_calls_bpf__destroy> skeleton(::system_calls_bpf__open());
  if (!skeleton) return 1;
  skeleton.get()->rodata->cgroup_id = std::strtoull(argv[1], nullptr, 10);
  if (::system_calls_bpf__load(skeleton.get()) != 0 || ::system_calls_bpf__attach(skeleton.get()) != 0) {
    std::fprintf(stderr, "this kernel has no tracepoint for system calls\n");
    return 1;
  }
  const auto& count = skeleton.get()->bss->system_calls;
  const auto before = __atomic_load_n(&count, __ATOMIC_RELAXED);
  std::this_thread::sleep_for(std::chrono::seconds(std::atoi(argv[2])));
  std::printf("%llu\n", static_cast<unsigned long long>(__atomic_load_n(&count, __ATOMIC_RELAXED) - before));
  return 0;
}
