// SPDX-License-Identifier: Apache-2.0
//
// Why a thread waits, by the kernel functions of its stack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace flamed::store {

enum class WaitReason : std::uint8_t {
  kRunQueue,  ///< it could run, but no CPU was free
  kDisk,      ///< a block device, or a file system that waits for one or for its server
  kLock,      ///< a lock or condition variable, or a lock on a file
  kNetwork,   ///< a socket
  kPipe,      ///< a pipe or FIFO
  kSleep,     ///< the time
  kPoll,      ///< whatever comes first: poll, select, epoll, accept, a signal, the terminal. Idle threads wait in these
  kPageFault,  ///< memory that is not there yet: a file's page, swap, the lock of the address space
  kOther,
};
inline constexpr std::size_t kWaitReasons = 9;

/// "run_queue", as in answers.
std::string_view name_of(WaitReason reason);

/// `functions`: names from the innermost on, as in /proc/kallsyms. Functions of the scheduler and those that only wait
/// (schedule(), mutex_lock(): the kernel's section __sched) may be missing, as the kernel leaves them out. Never
/// kRunQueue, which is a state and no place.
WaitReason wait_reason_of(std::span<const std::string_view> functions);

}  // namespace flamed::store
