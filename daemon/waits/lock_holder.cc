// SPDX-License-Identifier: Apache-2.0
#include "daemon/waits/lock_holder.h"

#include <linux/futex.h>
#include <sys/syscall.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

namespace flamed::daemon {
namespace {

// Of __kind (nptl/pthreadP.h).
constexpr std::uint32_t kTypes = 3;
constexpr std::uint32_t kRecursive = 1;
constexpr std::uint32_t kRobust = 0x10;
constexpr std::uint32_t kInherits = 0x20;
constexpr std::uint32_t kElision = 0x300;
/// Without 0x40, as it has the priority that protects it in its lock, and 0x80: its owner may be in another process.
constexpr std::uint32_t kKinds = kTypes | kRobust | kInherits | kElision;

/// __lock of a mutex that is neither robust nor inherits: locked, and threads wait.
constexpr std::uint32_t kLockedWithWaiters = 2;
/// FUTEX_CMD_MASK is signed.
constexpr std::uint64_t kCommandMask = ~std::uint64_t{FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME};
/// FUTEX_LOCK_PI2 is newer than the headers of Debian 12's glibc.
constexpr std::uint64_t kLockPi2 = 13;
/// musl's locks, robust ones, and Rust's for readers and writers: threads wait.
constexpr std::uint32_t kLockMarks = 0xc0000000;
/// std::thread::park() of Rust.
constexpr std::uint32_t kParked = 0xffffffff;
constexpr std::uint32_t kMostTid = 1U << FLAMED_TID_BITS;

/// The words of the line that begins so, without it.
std::vector<std::uint32_t> numbers_of(std::string_view text, std::string_view line) {
  std::vector<std::uint32_t> numbers;
  std::size_t at = text.find(line);
  if (at == std::string_view::npos) return numbers;
  at += line.size();
  const std::string_view rest = text.substr(at, text.find('\n', at) - at);
  const char* word = rest.data();
  const char* const end = word + rest.size();
  while (word != end) {
    std::uint32_t number = 0;
    if (*word == '\t' || *word == ' ') {
      ++word;
      continue;
    }
    const auto [next, error] = std::from_chars(word, end, number);
    if (error != std::errc{}) return {};
    numbers.push_back(number);
    word = next;
  }
  return numbers;
}

/// The kernel escapes line feeds and backslashes in a name, and nothing else (proc_task_name()).
std::string unescaped(std::string_view text) {
  std::string name;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_escape = text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == '\\' || text[i + 1] == 'n');
    if (is_escape) ++i;
    name += is_escape && text[i] == 'n' ? '\n' : text[i];
  }
  return name;
}

std::uint64_t key_of(std::int32_t pid, std::uint32_t own_tid) {
  return static_cast<std::uint64_t>(pid) << 32 | own_tid;
}

/// 32-bit programs, whose calls have other numbers, have no registers here.
bool is_futex_call(const flamed_wait& wait) {
  constexpr std::uint8_t kNeeded = FLAMED_KNOWS_SYSTEM_CALL | FLAMED_KNOWS_REGISTERS;
  return (wait.known & kNeeded) == kNeeded && wait.state == FLAMED_SLEEPS && wait.system_call == SYS_futex;
}

}  // namespace

FutexWait futex_wait_of(const flamed_wait& wait) {
  if (!is_futex_call(wait)) return {};
  const std::uint64_t operation = wait.arguments[1];
  const auto expected = static_cast<std::uint32_t>(wait.arguments[2]);
  if ((operation & FUTEX_PRIVATE_FLAG) == 0) return {};
  switch (operation & kCommandMask) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
      return {wait.arguments[0], expected, false};
    case FUTEX_LOCK_PI:
    case kLockPi2:
      return {wait.arguments[0], expected, true};
    default:
      return {};
  }
}

bool is_lock(const flamed_wait& wait) {
  if (!is_futex_call(wait)) return true;
  const auto expected = static_cast<std::uint32_t>(wait.arguments[2]);
  switch (wait.arguments[1] & kCommandMask) {
    case FUTEX_WAIT:
      return expected == kLockedWithWaiters || (expected & kLockMarks) != 0;
    case FUTEX_WAIT_BITSET:
      // glibc's locks for readers and writers wait for 2 or 3.
      return expected == kLockedWithWaiters || expected == (kLockedWithWaiters | 1) ||
             (expected != kParked && (expected & kLockMarks) != 0);
    case FUTEX_WAIT_REQUEUE_PI:
      return false;
    default:
      return true;
  }
}

std::optional<std::uint32_t> mutex_owner(std::span<const std::byte, kMutexBytes> mutex, const FutexWait& wait) {
  std::array<std::uint32_t, kMutexBytes / sizeof(std::uint32_t)> words{};
  std::memcpy(words.data(), mutex.data(), kMutexBytes);
  const auto [lock, count, owner, users, kind] = words;
  if ((kind & ~kKinds) != 0 || owner == 0 || owner >= kMostTid || users == 0 || users >= kMostTid) return std::nullopt;
  if (((kind & kTypes) == kRecursive) != (count != 0)) return std::nullopt;
  if (((kind & kInherits) != 0) != wait.is_priority_inheriting) return std::nullopt;
  if ((kind & (kRobust | kInherits)) != 0)
    return (lock & FUTEX_TID_MASK) == owner ? std::optional(owner) : std::nullopt;
  return lock == kLockedWithWaiters && lock == wait.expected ? std::optional(owner) : std::nullopt;
}

std::optional<ThreadStatus> parse_thread_status(std::string_view text) {
  constexpr std::string_view kName = "Name:\t";
  if (!text.starts_with(kName)) return std::nullopt;
  ThreadStatus status;
  const std::size_t end = std::min(text.find('\n'), text.size());
  status.name = unescaped(text.substr(kName.size(), end - kName.size()));
  const std::string_view rest = text.substr(end);
  const std::vector<std::uint32_t> users = numbers_of(rest, "\nUid:");
  const std::vector<std::uint32_t> groups = numbers_of(rest, "\nGid:");
  const std::vector<std::uint32_t> tids = numbers_of(rest, "\nNSpid:");
  if (users.size() != 4 || groups.size() != 4 || tids.empty()) return std::nullopt;
  // Real, effective and saved one; the fourth is for files.
  const auto are_same = [](const auto& ids) { return ids[0] == ids[1] && ids[0] == ids[2]; };
  status.user = are_same(users) && are_same(groups) ? users[0] : FLAMED_NO_OWNER;
  status.own_tid = tids.back();
  status.is_renumbered = tids.size() > 1;
  return status;
}

void HolderFinder::begin_batch() {
  looks_left_ = std::min(looks_left_ + kLooksOfBatch, kMostLooks);
  looked_at_.clear();
}

std::optional<ThreadStatus> HolderFinder::status_of(std::int32_t pid, std::uint32_t tid, std::uint32_t own_tid) const {
  std::optional<ThreadStatus> status = parse_thread_status(read_status_(pid, tid));
  return status && status->own_tid == own_tid ? std::move(status) : std::nullopt;
}

bool HolderFinder::look_at_all(std::int32_t pid) {
  if (looks_left_ == 0 || !looked_at_.insert(pid).second) return false;
  --looks_left_;
  const std::optional<ThreadStatus> first = parse_thread_status(read_status_(pid, static_cast<std::uint32_t>(pid)));
  if (!first || !first->is_renumbered) return false;
  if (known_.size() + kMostLooks > kMostKnown) known_.clear();
  for (const std::uint32_t tid : threads_of_(pid, looks_left_)) {
    if (looks_left_ == 0) break;
    --looks_left_;
    const std::optional<ThreadStatus> status = parse_thread_status(read_status_(pid, tid));
    if (status) known_[key_of(pid, status->own_tid)] = tid;
  }
  return true;
}

LockHolder HolderFinder::find(std::int32_t pid, std::uint32_t own_tid, std::uint32_t user) {
  std::uint32_t tid = own_tid;
  std::optional<ThreadStatus> status = status_of(pid, tid, own_tid);
  const auto try_known = [&] {
    const auto known = known_.find(key_of(pid, own_tid));
    if (known == known_.end()) return;
    tid = known->second;
    status = status_of(pid, tid, own_tid);
  };
  if (!status) try_known();
  if (!status && look_at_all(pid)) try_known();
  if (!status || status->user != user) return {};
  LockHolder holder{tid, {}};
  status->name.copy(holder.comm.data(), holder.comm.size() - 1);
  return holder;
}

}  // namespace flamed::daemon
