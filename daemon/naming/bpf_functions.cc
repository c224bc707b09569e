// SPDX-License-Identifier: Apache-2.0
#include "daemon/naming/bpf_functions.h"

#include <bpf/bpf.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/handle.h"

namespace flamed::daemon {
namespace {

/// More than any host has, of programs and of functions in one (BPF_MAX_SUBPROGS in linux/bpf_verifier.h is 256).
constexpr std::size_t kMostPrograms = 16'384;
constexpr std::uint32_t kMostFunctions = 1'024;

void append_functions(int program, std::uint32_t id, std::vector<symbolizer::KernelFunction>& functions) {
  bpf_prog_info counts{};
  std::uint32_t size = sizeof(counts);
  if (::bpf_obj_get_info_by_fd(program, &counts, &size) != 0) return;
  const std::uint32_t wanted = std::min({counts.nr_jited_ksyms, counts.nr_jited_func_lens, kMostFunctions});
  if (wanted == 0) return;

  std::vector<std::uint64_t> starts(wanted);
  std::vector<std::uint32_t> lengths(wanted);
  bpf_prog_info info{};
  info.nr_jited_ksyms = info.nr_jited_func_lens = wanted;
  info.jited_ksyms = reinterpret_cast<std::uintptr_t>(starts.data());
  info.jited_func_lens = reinterpret_cast<std::uintptr_t>(lengths.data());
  size = sizeof(info);
  if (::bpf_obj_get_info_by_fd(program, &info, &size) != 0) return;
  for (std::size_t i = 0; i < wanted; ++i) {
    if (starts[i] != 0 && lengths[i] != 0) functions.push_back({starts[i], lengths[i], id});
  }
}

}  // namespace

std::vector<symbolizer::KernelFunction> read_bpf_functions() {
  std::vector<symbolizer::KernelFunction> functions;
  std::uint32_t id = 0;
  for (std::size_t i = 0; i < kMostPrograms && ::bpf_prog_get_next_id(id, &id) == 0; ++i) {
    // It may be unloaded by now.
    if (const Fd program(::bpf_prog_get_fd_by_id(id)); program) append_functions(program.get(), id, functions);
  }
  return functions;
}

}  // namespace flamed::daemon
