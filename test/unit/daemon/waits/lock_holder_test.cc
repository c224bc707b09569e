// SPDX-License-Identifier: Apache-2.0
//
// Who holds a mutex: when the words behind a futex are believed, and which thread they name.
#include "daemon/waits/lock_holder.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "test/catch.h"

namespace flamed::daemon {
namespace {

using Mutex = std::array<std::byte, kMutexBytes>;

Mutex mutex_of(std::uint32_t lock, std::uint32_t count, std::uint32_t owner, std::uint32_t users, std::uint32_t kind) {
  const std::array<std::uint32_t, 5> words{lock, count, owner, users, kind};
  Mutex mutex{};
  std::memcpy(mutex.data(), words.data(), mutex.size());
  return mutex;
}

flamed_wait in_futex(std::uint64_t operation, std::uint64_t expected) {
  flamed_wait wait{};
  wait.known = FLAMED_KNOWS_SYSTEM_CALL | FLAMED_KNOWS_REGISTERS;
  wait.state = FLAMED_SLEEPS;
  wait.system_call = SYS_futex;
  wait.arguments[0] = 0x7f0000001000;
  wait.arguments[1] = operation;
  wait.arguments[2] = expected;
  return wait;
}

constexpr FutexWait kContended{.address = 0x7f0000001000, .expected = 2};
constexpr FutexWait kInheriting{.address = 0x7f0000001000, .expected = 0, .is_priority_inheriting = true};

TEST_CASE("only calls that wait for a futex of one process alone may be for a mutex") {
  CHECK(futex_wait_of(in_futex(FUTEX_WAIT_PRIVATE, 2)).address == 0x7f0000001000);
  CHECK(futex_wait_of(in_futex(FUTEX_WAIT_PRIVATE, 2)).expected == 2);
  CHECK(futex_wait_of(in_futex(FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME, 2)).address != 0);
  CHECK(futex_wait_of(in_futex(FUTEX_LOCK_PI_PRIVATE, 0)).is_priority_inheriting);
  CHECK(futex_wait_of(in_futex(FUTEX_WAIT, 2)).address == 0);
  CHECK(futex_wait_of(in_futex(FUTEX_WAKE_PRIVATE, 2)).address == 0);
  flamed_wait other = in_futex(FUTEX_WAIT_PRIVATE, 2);
  other.system_call = SYS_read;
  CHECK(futex_wait_of(other).address == 0);
  other = in_futex(FUTEX_WAIT_PRIVATE, 2);
  other.known = FLAMED_KNOWS_SYSTEM_CALL;  // of a 32-bit program, whose calls have other numbers
  CHECK(futex_wait_of(other).address == 0);
  other = in_futex(FUTEX_WAIT_PRIVATE, 2);
  other.state = FLAMED_WAITS_FOR_CPU;
  CHECK(futex_wait_of(other).address == 0);
}

TEST_CASE("what a futex call expects tells locks from signals of other threads") {
  constexpr std::uint64_t kRealTime = FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME;
  CHECK(is_lock(in_futex(FUTEX_WAIT_PRIVATE, 2)));                // glibc's mutex, runtime.lock() of Go
  CHECK(is_lock(in_futex(FUTEX_WAIT_BITSET_PRIVATE, 2)));         // Rust's Mutex
  CHECK(is_lock(in_futex(kRealTime, 2)));                         // pthread_mutex_timedlock()
  CHECK(is_lock(in_futex(kRealTime, 3)));                         // pthread_rwlock_wrlock()
  CHECK(is_lock(in_futex(FUTEX_WAIT_PRIVATE, 0x80000010)));       // musl's mutex
  CHECK(is_lock(in_futex(FUTEX_WAIT_BITSET_PRIVATE, 1U << 30)));  // Rust's RwLock
  CHECK(is_lock(in_futex(FUTEX_LOCK_PI_PRIVATE, 0)));
  CHECK_FALSE(is_lock(in_futex(kRealTime, 0)));                           // pthread_cond_wait(), sem_wait()
  CHECK_FALSE(is_lock(in_futex(FUTEX_WAIT_BITSET_PRIVATE, 17)));          // Condvar of Rust
  CHECK_FALSE(is_lock(in_futex(FUTEX_WAIT_BITSET_PRIVATE, 0xffffffff)));  // std::thread::park() of Rust
  CHECK_FALSE(is_lock(in_futex(FUTEX_WAIT_PRIVATE, 0)));                  // an idle thread of Go
  CHECK_FALSE(is_lock(in_futex(FUTEX_WAIT_REQUEUE_PI_PRIVATE, 2)));
  flamed_wait other = in_futex(FUTEX_WAIT_PRIVATE, 0);
  other.known = FLAMED_KNOWS_SYSTEM_CALL;
  CHECK(is_lock(other));
}

TEST_CASE("the words of each kind of locked mutex name its owner") {
  CHECK(mutex_owner(mutex_of(2, 0, 4711, 1, PTHREAD_MUTEX_TIMED_NP), kContended) == 4711);
  CHECK(mutex_owner(mutex_of(2, 3, 4711, 1, PTHREAD_MUTEX_RECURSIVE_NP), kContended) == 4711);
  CHECK(mutex_owner(mutex_of(2, 0, 4711, 1, PTHREAD_MUTEX_ERRORCHECK_NP), kContended) == 4711);
  CHECK(mutex_owner(mutex_of(2, 0, 4711, 1, PTHREAD_MUTEX_ADAPTIVE_NP), kContended) == 4711);
  const std::uint32_t robust = 4711 | FUTEX_WAITERS;
  CHECK(mutex_owner(mutex_of(robust, 0, 4711, 1, 0x10), {.address = 1, .expected = robust}) == 4711);
  CHECK(mutex_owner(mutex_of(robust, 0, 4711, 1, 0x20), kInheriting) == 4711);
}

TEST_CASE("words that do not fit each other or the call name nobody") {
  CHECK_FALSE(mutex_owner(mutex_of(1, 0, 4711, 1, 0), kContended));      // nobody waits
  CHECK_FALSE(mutex_owner(mutex_of(0, 0, 4711, 1, 0), kContended));      // not locked
  CHECK_FALSE(mutex_owner(mutex_of(2, 0, 0, 1, 0), kContended));         // just being handed on
  CHECK_FALSE(mutex_owner(mutex_of(2, 0, 4711, 0, 0), kContended));      // no users
  CHECK_FALSE(mutex_owner(mutex_of(2, 0, 1U << 22, 1, 0), kContended));  // no thread id
  CHECK_FALSE(mutex_owner(mutex_of(2, 1, 4711, 1, 0), kContended));      // counted, but not recursive
  CHECK_FALSE(mutex_owner(mutex_of(2, 0, 4711, 1, 1), kContended));      // recursive, but not counted
  CHECK_FALSE(mutex_owner(mutex_of(2, 0, 4711, 1, 0x80), kContended));   // shared among processes
  CHECK_FALSE(mutex_owner(mutex_of(2, 0, 4711, 1, 0xdeadbeef), kContended));
  CHECK_FALSE(mutex_owner(mutex_of(7, 0, 4711, 1, 0), {.address = 1, .expected = 7}));  // a condition variable
  CHECK_FALSE(mutex_owner(mutex_of(4712 | FUTEX_WAITERS, 0, 4711, 1, 0x20), kInheriting));
  CHECK_FALSE(mutex_owner(mutex_of(4711 | FUTEX_WAITERS, 0, 4711, 1, 0), kInheriting));
}

TEST_CASE("a locked mutex of this machine's C library names this thread") {
  pthread_mutexattr_t attributes{};
  ::pthread_mutexattr_init(&attributes);
  const int type = GENERATE(as<int>{}, PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK);
  ::pthread_mutexattr_settype(&attributes, type);
  pthread_mutex_t lock{};
  REQUIRE(::pthread_mutex_init(&lock, &attributes) == 0);
  REQUIRE(::pthread_mutex_lock(&lock) == 0);
  Mutex bytes{};
  std::memcpy(bytes.data(), &lock, bytes.size());
  ::pthread_mutex_unlock(&lock);
  ::pthread_mutex_destroy(&lock);
  CHECK_FALSE(mutex_owner(bytes, kContended));  // nobody waits
  const std::uint32_t contended = 2;            // as the first thread that waits would have it
  std::memcpy(bytes.data(), &contended, sizeof(contended));
  CHECK(mutex_owner(bytes, kContended) == static_cast<std::uint32_t>(::syscall(SYS_gettid)));
}

std::string status_text(const std::string& name, const std::string& tids, const std::string& users = "7\t7\t7\t7") {
  return "Name:\t" + name + "\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t100\nPid:\t101\nUid:\t" + users +
         "\nGid:\t8\t8\t8\t8\nNStgid:\t100\nNSpid:\t" + tids + "\nVmPeak:\t1 kB\n";
}

TEST_CASE("a thread's status has its name, its number in its own namespace, and its user") {
  const auto status = parse_thread_status(status_text("pool worker", "5007\t77\t7"));
  REQUIRE(status);
  CHECK(status->name == "pool worker");
  CHECK(status->own_tid == 7);
  CHECK(status->is_renumbered);
  CHECK(status->user == 7);
  CHECK_FALSE(parse_thread_status(status_text("x", "5"))->is_renumbered);
  CHECK(parse_thread_status(status_text("x", "5", "7\t8\t7\t7"))->user == FLAMED_NO_OWNER);
  CHECK(parse_thread_status(status_text("NSpid:\t9\\n", "5"))->own_tid == 5);
  CHECK_FALSE(parse_thread_status(""));
  CHECK_FALSE(parse_thread_status("Name:\tx"));
  CHECK_FALSE(parse_thread_status(status_text("x", "")));
  CHECK_FALSE(parse_thread_status(status_text("x", "7y")));
  CHECK_FALSE(parse_thread_status(status_text("x", "99999999999")));
}

TEST_CASE("a thread's name is as the thread has it, without the kernel's escapes") {
  const auto name_of = [](const std::string& escaped) { return parse_thread_status(status_text(escaped, "5"))->name; };
  CHECK(name_of(R"(a\\b)") == R"(a\b)");
  CHECK(name_of(R"(a\nb)") == "a\nb");
  CHECK(name_of(R"(a\\nb)") == R"(a\nb)");
  CHECK(name_of(R"(a\tb\)") == R"(a\tb\)");  // of no kernel
}

/// Process 100 with these threads: the host's number, and the status.
struct Threads {
  std::map<std::uint32_t, std::string> status;
  int reads = 0;
  HolderFinder finder{[this](std::int32_t pid, std::uint32_t tid) {
                        ++reads;
                        const auto found = status.find(tid);
                        return pid == 100 && found != status.end() ? found->second : std::string();
                      },
                      [this](std::int32_t, std::size_t most) {
                        std::vector<std::uint32_t> tids;
                        for (const auto& thread : status) {
                          if (tids.size() < most) tids.push_back(thread.first);
                        }
                        ++searches;
                        return tids;
                      }};
  int searches = 0;
};

/// The batches of a round over this many threads of process 100, each of which names another holder that does not
/// exist.
void name_nobody(Threads& threads, std::uint32_t requests) {
  constexpr std::uint32_t kBatch = 32;
  for (std::uint32_t i = 0; i < requests; ++i) {
    if (i % kBatch == 0) threads.finder.begin_batch();
    CHECK(threads.finder.find(100, 1'000'000 + i, 7).tid == 0);
  }
}

TEST_CASE("a holder on the host is the thread with that number") {
  Threads threads{{{100, status_text("main", "100")}, {105, status_text("a name of fifteen", "105")}}};
  const LockHolder holder = threads.finder.find(100, 105, 7);
  CHECK(holder.tid == 105);
  CHECK(std::string(holder.comm.data()) == "a name of fifte");
  CHECK(threads.reads == 1);
  CHECK(threads.finder.find(100, 106, 7).tid == 0);
  CHECK(threads.finder.find(101, 105, 7).tid == 0);
}

TEST_CASE("a holder in a container is found by the number that it has there") {
  // The container's thread 105 is the host's 5105; its thread 2 has the number 105 on the host.
  Threads threads{{{100, status_text("first", "100\t1")},
                   {105, status_text("second", "105\t2")},
                   {5105, status_text("worker", "5105\t105")}}};
  CHECK(threads.finder.find(100, 105, 7).tid == 5105);
  const int reads = std::exchange(threads.reads, 0);
  CHECK(threads.finder.find(100, 105, 7).tid == 5105);
  CHECK(threads.reads < reads);
  CHECK(threads.finder.find(100, 2, 7).tid == 105);
  CHECK(threads.searches == 1);
  // It ends, and another one gets its number on the host.
  threads.status[5105] = status_text("worker", "5105\t106");
  CHECK(threads.finder.find(100, 105, 7).tid == 0);
  threads.finder.begin_batch();
  CHECK(threads.finder.find(100, 106, 7).tid == 5105);
}

TEST_CASE("a holder of another user than the thread that waits is not told") {
  Threads threads{{{105, status_text("worker", "105", "9\t9\t9\t9")}}};
  CHECK(threads.finder.find(100, 105, 7).tid == 0);
  CHECK(threads.finder.find(100, 105, FLAMED_NO_OWNER).tid == 0);
  CHECK(threads.finder.find(100, 105, 9).tid == 105);
}

TEST_CASE("a thread that names a holder that does not exist costs a look at it on the host") {
  Threads threads;
  for (std::uint32_t tid = 100; tid < 5100; ++tid) threads.status[tid] = status_text("worker", std::to_string(tid));
  name_nobody(threads, 640);
  CHECK(threads.searches == 0);
  CHECK(threads.reads == 640 + 20);  // and one at the process in each batch
}

TEST_CASE("in a container it costs a few looks, however many threads there are") {
  Threads threads{{{100, status_text("first", "100\t1")}}};
  for (std::uint32_t i = 0; i < 5000; ++i) {
    const std::string tid = std::to_string(10'000 + i);
    threads.status[10'000 + i] = status_text("worker", tid + "\t" + std::to_string(i + 2));
  }
  name_nobody(threads, 640);
  CHECK(threads.reads <= 640 + 512 + 20 * 64);
  // A holder with its number on the host is found all the same.
  threads.status[10'001] = status_text("worker", "10001");
  CHECK(threads.finder.find(100, 10'001, 7).tid == 10'001);
}

}  // namespace
}  // namespace flamed::daemon
