// SPDX-License-Identifier: Apache-2.0
//
// Identities that several rooms need: processes, modules, places in a module.
#pragma once

#include <cstdint>
#include <functional>

#include "base/strong_id.h"

namespace flamed {

/// A process: the kernel reuses pids, so the pid alone is not an identity. `start_ticks` is field 22 of /proc/PID/stat:
/// start time since boot in units of 10 ms (USER_HZ is 100 on every architecture that matters here). The kernel's
/// `task->start_boottime` in nanoseconds divides down to the same number.
struct ProcessId {
  std::int32_t pid = 0;
  std::uint64_t start_ticks = 0;

  static constexpr std::uint64_t kNsPerTick = 10'000'000;

  friend constexpr auto operator<=>(const ProcessId&, const ProcessId&) = default;
};

/// A module: one mapped file, the kernel, the vdso, or one process's memory without a file. symbolizer::ModuleTable
/// assigns them, and never reuses one while stored data refers to it.
using ModuleId = StrongId<struct ModuleTag>;

/// Modules that exist from the start.
inline constexpr ModuleId kNoModule{0};
inline constexpr ModuleId kKernelModule{1};     ///< offset: the kernel address itself
inline constexpr ModuleId kVdsoModule{2};       ///< offset: from the start of the vdso image
inline constexpr ModuleId kTruncatedModule{3};  ///< root of a truncated stack; offset: a store::Truncation
inline constexpr ModuleId kHiddenModule{4};     ///< in place of a stack that the viewer may not see
/// Functions of managed runtimes. Offset: number of the function << 24 | line, 0 if that is not known.
inline constexpr ModuleId kRuntimeModule{5};
inline constexpr ModuleId kFirstFreeModule{16};

/// A place in code that stays valid after its process has ended. `offset` is in the file (not a virtual address) for
/// mapped files, a process address for memory without a file. For every frame but the innermost it points into the call
/// instruction (return address - 1), so that looking it up finds the caller's function and line even where the call is
/// the function's last instruction.
struct Frame {
  ModuleId module;
  std::uint64_t offset = 0;

  friend constexpr auto operator<=>(const Frame&, const Frame&) = default;
};

/// Set in the offset of a frame that belongs to the interpreter of a managed runtime, and is not shown by default.
inline constexpr std::uint64_t kInterpreterFrame = std::uint64_t{1} << 63;

constexpr bool is_interpreter(const Frame& frame) {
  return frame.module >= kFirstFreeModule && (frame.offset & kInterpreterFrame) != 0;
}
/// The place alone.
constexpr Frame without_mark(const Frame& frame) {
  return is_interpreter(frame) ? Frame{frame.module, frame.offset & ~kInterpreterFrame} : frame;
}

}  // namespace flamed

template <>
struct std::hash<flamed::ProcessId> {
  std::size_t operator()(const flamed::ProcessId& id) const noexcept {
    return static_cast<std::size_t>((static_cast<std::uint64_t>(id.pid) * 0x9e3779b97f4a7c15ULL) ^
                                    (id.start_ticks * 0xff51afd7ed558ccdULL));
  }
};

template <>
struct std::hash<flamed::Frame> {
  std::size_t operator()(const flamed::Frame& frame) const noexcept {
    std::uint64_t h = frame.offset * 0x9e3779b97f4a7c15ULL + frame.module.value;
    h ^= h >> 32;
    return static_cast<std::size_t>(h * 0xff51afd7ed558ccdULL);
  }
};
