// SPDX-License-Identifier: Apache-2.0
//
// What the kernel counts as locked memory: perf buffers, and before 5.11 BPF maps and programs too. There it refuses
// with EPERM, as it does for lack of rights; from what the system shows it can be told which of both it was.
#pragma once

#include <cerrno>
#include <cstdint>
#include <optional>

#include "base/result.h"

namespace flamed::daemon {

/// The code of an error whose cause is locked memory.
inline constexpr int kLockedMemoryIsShort = ENOBUFS;

struct LockedMemoryFacts {
  std::optional<std::uint64_t> limit_bytes{};  ///< RLIMIT_MEMLOCK; empty: there is none
  bool may_raise_limit = false;                ///< CAP_SYS_RESOURCE
  bool counts_bpf = false;                     ///< the kernel counts BPF maps and programs
  bool answers_bpf = false;                    ///< no seccomp filter or security module stands before bpf(2)
};
LockedMemoryFacts read_locked_memory_facts();

/// `error` of who asked for a BPF map or program, with the cause and what to do where the cause is locked memory.
Error explain_bpf_memory(const Error& error, const LockedMemoryFacts& facts);
/// The same with the facts of now, which are read only where they matter.
Error explain_bpf_memory(const Error& error);

/// Of who asked for a perf buffer and may have it.
Error explain_perf_memory(const Error& error, const LockedMemoryFacts& facts);
Error explain_perf_memory(const Error& error);

}  // namespace flamed::daemon
