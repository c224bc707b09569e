// SPDX-License-Identifier: Apache-2.0
//
// What the kernel counts as locked memory: perf buffers, and before 5.11 BPF maps and programs too. There it refuses
// with EPERM, as for lack of rights; facts of the system show which of the two it was.
#pragma once

#include <cerrno>
#include <cstdint>
#include <optional>

#include "base/result.h"

namespace flamed::daemon {

/// The code of an error whose cause is locked memory.
inline constexpr int kLockedMemoryIsShort = ENOBUFS;

struct LockedMemoryFacts {
  std::optional<std::uint64_t> limit_bytes{};  ///< RLIMIT_MEMLOCK; empty: unlimited
  bool may_raise_limit = false;                ///< CAP_SYS_RESOURCE
  bool counts_bpf = false;                     ///< the kernel counts BPF maps and programs
  bool answers_bpf = false;                    ///< no seccomp filter or security module refuses bpf(2)
};
LockedMemoryFacts read_locked_memory_facts();

/// `error` is from creating a BPF map or program. If the cause is locked memory, adds it and what to do.
Error explain_bpf_memory(const Error& error, const LockedMemoryFacts& facts);
/// The same with the current facts, which are read only if needed.
Error explain_bpf_memory(const Error& error);

/// `error` is from mapping a perf buffer.
Error explain_perf_memory(const Error& error, const LockedMemoryFacts& facts);
Error explain_perf_memory(const Error& error);

}  // namespace flamed::daemon
