// SPDX-License-Identifier: Apache-2.0
//
// What a thread waits for in a futex call, and who holds it if it is a mutex. glibc keeps the owner's thread id in the
// mutex, behind the word that the futex call names. Other users of futexes have something else there, and a process may
// write there what it likes: so the words count only if they fit each other and the call, and if the id is that of a
// thread of the same process. Pure but for HolderFinder.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "bpf/visits.h"

namespace flamed::daemon {

/// A futex call that waits for a lock.
struct FutexWait {
  std::uint64_t address = 0;  ///< 0: none
  std::uint32_t expected = 0;
  bool is_priority_inheriting = false;
};
/// Of the system call that the thread is in; none: it is no futex call that may be a mutex's of one process alone.
FutexWait futex_wait_of(const flamed_wait& wait);

/// Does the thread wait for a lock, if it waits for a futex? By the value that it expects there. Locks of glibc, musl,
/// Rust and Go have 2 for "locked, and threads wait", or a mark in the two uppermost bits. Condition variables,
/// semaphores and parked threads have a count, 0 or all bits set. A count may happen to be 2: then it is taken for a
/// lock, as is whatever is not known.
bool is_lock(const flamed_wait& wait);

/// glibc's pthread_mutex_t on 64-bit machines (sysdeps/nptl/bits/struct_mutex.h, __pthread_mutex_s): int __lock at 0,
/// unsigned __count at 4, int __owner at 8, unsigned __nusers at 12, int __kind at 16.
inline constexpr std::size_t kMutexBytes = 20;
/// The owner, as the process numbers its threads. Empty: this is no locked mutex that has waiters.
std::optional<std::uint32_t> mutex_owner(std::span<const std::byte, kMutexBytes> mutex, const FutexWait& wait);

/// A thread, from its /proc/PID/task/TID/status.
struct ThreadStatus {
  std::string name;            ///< any bytes
  std::uint32_t own_tid = 0;   ///< in its innermost pid namespace
  bool is_renumbered = false;  ///< that is not the host's one, as in a container
  std::uint32_t user = 0;      ///< as flamed_sample.owner: FLAMED_NO_OWNER, if its ids differ
};
std::optional<ThreadStatus> parse_thread_status(std::string_view text);

struct LockHolder {
  std::uint32_t tid = 0;  ///< 0: not known
  std::array<char, FLAMED_COMM_BYTES> comm{};
};

/// Finds threads of processes by the numbers that these give them: in a container, others than the host's. Then all
/// threads of the process are looked at and remembered. A process can name as many threads that do not exist as it
/// likes, so there is a limit to how many are looked at for each batch of requests.
class HolderFinder {
 public:
  /// `read_status` reads /proc/PID/task/TID/status; empty: there is no such thread. `threads_of` has at most so many of
  /// the process's tids.
  HolderFinder(std::function<std::string(std::int32_t pid, std::uint32_t tid)> read_status,
               std::function<std::vector<std::uint32_t>(std::int32_t pid, std::size_t most)> threads_of)
      : read_status_(std::move(read_status)), threads_of_(std::move(threads_of)) {}

  /// Other requests follow. By now the threads of a process may be others.
  void begin_batch();
  /// `user` is that of the thread that waits. Who may see that one must be allowed to see the holder, so of another
  /// user it is not told.
  LockHolder find(std::int32_t pid, std::uint32_t own_tid, std::uint32_t user);

 private:
  /// Threads that are looked at in one batch at most: those of most processes in containers.
  static constexpr std::size_t kMostLooks = 512;
  /// So many more for each further batch: a few for each of its requests, which cost as much as reading its stack.
  static constexpr std::size_t kLooksOfBatch = 64;
  static constexpr std::size_t kMostKnown = 4096;

  [[nodiscard]] std::optional<ThreadStatus> status_of(std::int32_t pid, std::uint32_t tid, std::uint32_t own_tid) const;
  /// False: the process is in no container, or its threads have been looked at in this batch.
  bool look_at_all(std::int32_t pid);

  const std::function<std::string(std::int32_t, std::uint32_t)> read_status_;
  const std::function<std::vector<std::uint32_t>(std::int32_t, std::size_t)> threads_of_;
  std::size_t looks_left_ = kMostLooks;
  std::unordered_set<std::int32_t> looked_at_;              ///< pids, of this batch
  std::unordered_map<std::uint64_t, std::uint32_t> known_;  ///< tids by pid and own tid; not to be trusted
};

}  // namespace flamed::daemon
