// SPDX-License-Identifier: Apache-2.0
//
// From the waits whose stacks were taken, by chance, to times that add up to the exact totals of each place. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bpf/off_cpu.h"

namespace flamed::daemon {

/// Of a wait that was standing at the end, and whose stack was read then: in the place of a system call.
inline constexpr std::int32_t kStandingWait = -4;

/// A wait whose stack was taken.
struct OffCpuWait {
  std::uint32_t tid = 0;
  std::uint64_t number = 0;  ///< flamed_wait.switches: with the tid it names the stack
  std::int32_t call = 0;     ///< its place
  std::int64_t blocked_ns = 0;
  std::int64_t queued_ns = 0;
  std::uint32_t chance = FLAMED_SURE;  ///< by which it was taken, of FLAMED_SURE
};

/// All waits of a thread at one place.
struct OffCpuTotal {
  std::uint32_t tid = 0;
  std::uint32_t tgid = 0;
  std::int32_t call = 0;
  std::int64_t blocked_ns = 0;
  std::int64_t queued_ns = 0;
};

/// The time that a stack stands for.
struct OffCpuTime {
  std::uint32_t tid = 0;
  std::uint32_t tgid = 0;
  std::uint64_t number = 0;  ///< 0: of no stack
  std::int64_t blocked_ns = 0;
  std::int64_t queued_ns = 0;
};

/// A wait stands for its time divided by its chance, and all waits of a place together for the place's total. A total
/// of which no stack has any time is told without a stack.
std::vector<OffCpuTime> divide_times(std::span<const OffCpuTotal> totals, std::span<const OffCpuWait> waits);

}  // namespace flamed::daemon
