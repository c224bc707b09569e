// SPDX-License-Identifier: Apache-2.0
//
// Why a thread waits, by the kernel functions of its stack, and who holds the lock for which it waits.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/identity.h"

namespace flamed::store {

enum class WaitReason : std::uint8_t {
  kRunQueue,   ///< it could run, but no CPU was free
  kDisk,       ///< a block device, or a file system that waits for one or for its server
  kLock,       ///< a lock of the program, or a lock on a file
  kCondition,  ///< a futex, but no lock: another thread is to wake it, as by a condition variable or a semaphore
  kNetwork,    ///< a socket
  kPipe,       ///< a pipe or FIFO
  kSleep,      ///< the time
  kPoll,  ///< whatever comes first: poll, select, epoll, accept, a signal, the terminal. Idle threads wait in these
  kPageFault,  ///< memory that is not there yet: a file's page, swap, the lock of the address space
  kOther,
};
inline constexpr std::size_t kWaitReasons = 10;

/// Of how many threads the kernel counts the waits for block devices (kernel.task_delayacct). Of these kDisk is as
/// exact as kRunQueue; of the others it is a sample, like the other reasons.
enum class DiskAccount : std::uint8_t { kOfNone, kOfSome, kOfAll };

/// "none", "some" or "all", as in answers.
constexpr std::string_view name_of(DiskAccount account) {
  return account == DiskAccount::kOfNone ? "none" : account == DiskAccount::kOfSome ? "some" : "all";
}

/// Nanoseconds by reason.
using WaitSums = std::array<std::uint64_t, kWaitReasons>;

/// "run_queue", as in answers.
std::string_view name_of(WaitReason reason);

/// What one kernel function says.
struct WaitPlace {
  std::optional<WaitReason> fault{};  ///< decides wherever it is on the stack
  std::optional<WaitReason> place{};  ///< the innermost one decides
};
WaitPlace wait_place_of(std::string_view function);
/// `places`: from the innermost function on. Never kCondition, which depends on what the futex call waits for.
WaitReason wait_reason_of(std::span<const WaitPlace> places);

/// `functions`: names from the innermost on, as in /proc/kallsyms. Functions of the scheduler and those that only wait
/// (schedule(), mutex_lock(): the kernel's section __sched) may be missing, as the kernel leaves them out. Never
/// kRunQueue, which is a state and no place.
WaitReason wait_reason_of(std::span<const std::string_view> functions);

/// Does it wait for work? Such waits are left out of answers unless they are asked for.
constexpr bool is_idle(WaitReason reason) { return reason == WaitReason::kPoll; }

/// The innermost frame of a stack that waits: of the kernel, at an address that no function has, neither in memory (the
/// kernel's addresses have the uppermost bit) nor on disk (archive::kPastKernelFrames).
constexpr std::uint64_t kReasonMark = std::uint64_t{1} << 61;
constexpr Frame wait_frame(WaitReason reason) {
  return {kKernelModule, kReasonMark + static_cast<std::uint64_t>(reason)};
}
constexpr std::optional<WaitReason> wait_reason_in(const Frame& frame) {
  if (frame.module != kKernelModule || frame.offset < kReasonMark || frame.offset >= kReasonMark + kWaitReasons) {
    return std::nullopt;
  }
  return static_cast<WaitReason>(frame.offset - kReasonMark);
}

/// In front of the reason, if it is a lock and its holder is known: the thread that holds it. A frame of the kernel,
/// too. `name`: a number for its name, see symbolizer::RuntimeFunctions; 0: there is none.
constexpr std::uint64_t kHolderMark = std::uint64_t{1} << 62;  ///< the kernel's addresses have the bit above
constexpr std::uint64_t kHolderTidBits = 24;
constexpr Frame holder_frame(std::uint32_t name, std::uint32_t tid) {
  return {kKernelModule, kHolderMark | std::uint64_t{name} << kHolderTidBits | tid};
}
struct HolderFrame {
  std::uint32_t name = 0;
  std::uint32_t tid = 0;
};
constexpr std::optional<HolderFrame> holder_in(const Frame& frame) {
  if (frame.module != kKernelModule || frame.offset >> 62 != 1) return std::nullopt;
  return HolderFrame{static_cast<std::uint32_t>(frame.offset >> kHolderTidBits),
                     static_cast<std::uint32_t>(frame.offset & ((1U << kHolderTidBits) - 1))};
}

/// In front of the reason, in answers of the exact mode: who ended the wait, by its place in a list of their names that
/// comes with the answer.
constexpr std::uint64_t kWakerMark = kReasonMark + (std::uint64_t{1} << 32);
constexpr Frame waker_frame(std::uint32_t place) { return {kKernelModule, kWakerMark + place}; }
constexpr std::optional<std::uint32_t> waker_in(const Frame& frame) {
  if (frame.module != kKernelModule || frame.offset >> 32 != kWakerMark >> 32) return std::nullopt;
  return static_cast<std::uint32_t>(frame.offset);
}

}  // namespace flamed::store
