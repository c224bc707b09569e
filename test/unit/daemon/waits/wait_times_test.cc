// SPDX-License-Identifier: Apache-2.0
//
// How the time between two visits of a thread is divided.
#include "daemon/waits/wait_times.h"

#include <array>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "base/clock.h"
#include "test/catch.h"

namespace flamed::daemon {
namespace {

constexpr std::uint32_t kTid = 4711;
constexpr std::int64_t kBeginNs = 100 * kNsPerSecond;

/// A thread as the kernel counts it.
struct CountedThread {
  std::int64_t now_ns = kBeginNs;
  std::int64_t queued_since_ns = 0;
  std::int64_t disk_since_ns = 0;
  std::int64_t last_seen_ns = 0;
  flamed_wait wait = at_first();

  static flamed_wait at_first() {
    flamed_wait counted{};
    counted.thread_start_ns = 77;
    counted.run_ns = 5'000;
    counted.queued_ns = 3'000;
    counted.state = FLAMED_SLEEPS;
    return counted;
  }

  void run(std::int64_t ns) {
    if (wait.state == FLAMED_WAITS_FOR_CPU) wait.queued_ns += static_cast<std::uint64_t>(now_ns - queued_since_ns);
    end_disk();
    now_ns += ns;
    wait.run_ns += static_cast<std::uint64_t>(ns);
    ++wait.switches;
    wait.state = 0;
  }
  void sleep(std::int64_t ns) {
    wait.state = FLAMED_SLEEPS;
    now_ns += ns;
  }
  /// For a block device, which the kernel counts when it is over.
  void wait_for_disk(std::int64_t ns) {
    if ((wait.known & FLAMED_IS_COUNTED_AS_DISK) == 0) disk_since_ns = now_ns;
    wait.known |= FLAMED_IS_COUNTED_AS_DISK;
    wait.state = FLAMED_BLOCKED;
    now_ns += ns;
  }
  void end_disk() {
    if ((wait.known & FLAMED_IS_COUNTED_AS_DISK) != 0)
      wait.disk_ns += static_cast<std::uint64_t>(now_ns - disk_since_ns);
    wait.known &= static_cast<__u8>(~FLAMED_IS_COUNTED_AS_DISK);
  }
  void stand_in_queue(std::int64_t ns) {
    end_disk();
    if (wait.state != FLAMED_WAITS_FOR_CPU) queued_since_ns = now_ns;
    wait.state = FLAMED_WAITS_FOR_CPU;
    now_ns += ns;
  }
  /// A visit that finds it in another wait than before.
  std::optional<WaitTimes::Times> visit(WaitTimes& times) {
    wait.last_seen_ns = static_cast<std::uint64_t>(last_seen_ns);
    last_seen_ns = now_ns;
    return times.visited(kTid, {now_ns}, wait);
  }
  /// One that finds it where it was.
  void see() { last_seen_ns = now_ns; }
};

TEST_CASE("a thread's first visit says nothing about the time before") {
  WaitTimes times;
  CountedThread thread;
  CHECK_FALSE(thread.visit(times));
  CHECK(times.threads() == 1);
}

TEST_CASE("all the time between visits that was neither run nor queued was waited") {
  WaitTimes times;
  CountedThread thread;
  thread.visit(times);
  thread.sleep(400);
  thread.run(250);
  thread.sleep(300);
  const auto told = thread.visit(times);
  REQUIRE(told);
  CHECK(told->before_ns == 0);
  CHECK(told->now_ns == 700);
  CHECK(told->queued_ns == 0);
}

TEST_CASE("a thread that was seen where it was has waited there until then") {
  WaitTimes times;
  CountedThread thread;
  thread.visit(times);
  thread.sleep(5'000);
  thread.see();
  thread.sleep(200);
  thread.run(100);
  thread.sleep(300);
  const auto told = thread.visit(times);
  REQUIRE(told);
  CHECK(told->before_ns == 5'000);
  CHECK(told->now_ns == 500);
}

TEST_CASE("time in run queues is told apart, also if no visit found the thread there") {
  WaitTimes times;
  CountedThread thread;
  thread.visit(times);
  thread.sleep(400);
  thread.stand_in_queue(50);
  thread.run(250);
  thread.sleep(300);
  const auto told = thread.visit(times);
  REQUIRE(told);
  CHECK(told->now_ns == 700);
  CHECK(told->queued_ns == 50);
}

TEST_CASE("a visit in the run queue stands for the time in run queues, and leaves the waits to the next one") {
  WaitTimes times;
  CountedThread thread;
  thread.visit(times);
  thread.stand_in_queue(80);
  thread.run(10);
  thread.sleep(400);
  thread.stand_in_queue(50);
  auto told = thread.visit(times);
  REQUIRE(told);
  CHECK(told->now_ns == 80);  // the present 50 are counted when they are over
  thread.stand_in_queue(30);
  thread.run(250);
  thread.sleep(300);
  told = thread.visit(times);
  REQUIRE(told);
  CHECK(told->now_ns == 700);
  CHECK(told->queued_ns == 80);
}

TEST_CASE("time in a run queue that was seen to go on is told once") {
  WaitTimes times;
  CountedThread thread;
  thread.visit(times);
  thread.sleep(100);
  thread.stand_in_queue(50);
  thread.visit(times);
  thread.stand_in_queue(1'000);
  thread.see();
  thread.stand_in_queue(20);
  thread.run(250);
  thread.sleep(300);
  const auto told = thread.visit(times);
  REQUIRE(told);
  CHECK(told->before_ns == 1'000);
  CHECK(told->queued_ns == 70);
  CHECK(told->now_ns == 400);
}

/// As above, where the kernel counts waits for block devices.
struct DiskThread : CountedThread {
  DiskThread() {
    wait.known = FLAMED_KNOWS_DISK;
    wait.disk_ns = 9'000;
  }
};

TEST_CASE("a visit in a wait for a disk stands for these waits, and leaves the others to the next one") {
  WaitTimes times;
  DiskThread thread;
  thread.visit(times);
  thread.sleep(400);
  thread.run(10);
  thread.wait_for_disk(70);
  thread.run(10);
  thread.wait_for_disk(30);
  auto told = thread.visit(times);
  REQUIRE(told);
  CHECK(told->now_ns == 70);  // the present 30 are counted when they are over
  thread.run(10);
  thread.sleep(200);
  told = thread.visit(times);
  REQUIRE(told);
  CHECK(told->before_ns == 30);
  CHECK(told->now_ns == 600);
  CHECK(told->disk_ns == 0);
}

TEST_CASE("a visit in another wait leaves those for disks to one that finds them, if it comes in time") {
  WaitTimes times;
  DiskThread thread;
  thread.visit(times);
  thread.wait_for_disk(70);
  thread.run(10);
  thread.sleep(400);
  auto told = thread.visit(times);
  REQUIRE(told);
  CHECK(told->now_ns == 400);
  CHECK(told->disk_ns == 0);
  SECTION("it does") {
    thread.run(10);
    thread.wait_for_disk(50);
    thread.run(10);
    thread.wait_for_disk(20);
    told = thread.visit(times);
    REQUIRE(told);
    CHECK(told->now_ns == 120);
  }
  SECTION("it does not") {
    thread.sleep(WaitTimes::kDiskPatienceNs);
    thread.see();
    thread.run(10);
    thread.sleep(5);
    told = thread.visit(times);
    REQUIRE(told);
    CHECK(told->before_ns == WaitTimes::kDiskPatienceNs);
    CHECK(told->now_ns == 5);
    CHECK(told->disk_ns == 70);
  }
}

TEST_CASE("a wait for a disk that was seen to go on is told once, and all of it with its stack") {
  WaitTimes times;
  DiskThread thread;
  thread.visit(times);
  thread.sleep(100);
  thread.run(10);
  thread.wait_for_disk(50);
  thread.visit(times);
  thread.wait_for_disk(1'000);
  thread.see();
  thread.wait_for_disk(20);
  thread.run(250);
  thread.sleep(300);
  const auto told = thread.visit(times);
  REQUIRE(told);
  CHECK(told->before_ns == 1'070);
  CHECK(told->now_ns == 400);
}

TEST_CASE(
    "waits for disks that the kernel counts twice, or that began before the first visit, are no more than all waits") {
  WaitTimes times;
  DiskThread thread;
  thread.wait_for_disk(500);
  thread.visit(times);
  thread.wait_for_disk(20);
  thread.run(10);
  thread.wait_for_disk(30);
  thread.run(10);
  thread.wait.disk_ns += 1'000;
  thread.sleep(100);
  const auto told = thread.visit(times);
  REQUIRE(told);
  CHECK(told->before_ns + told->now_ns + told->disk_ns == 150);
  thread.run(10);
  thread.sleep(WaitTimes::kDiskPatienceNs);
  const auto later = thread.visit(times);
  REQUIRE(later);
  CHECK(later->before_ns + later->now_ns + later->disk_ns == WaitTimes::kDiskPatienceNs);
}

TEST_CASE("threads whose waits for disks the kernel counts are counted") {
  WaitTimes times;
  CountedThread thread;
  DiskThread other;
  thread.visit(times);
  CHECK(times.threads_with_disk() == 0);
  other.wait.thread_start_ns = 99;  // with the same tid: another thread
  other.visit(times);
  CHECK(times.threads() == 1);
  CHECK(times.threads_with_disk() == 1);
  SECTION("until they end") { times.ended(kTid); }
  SECTION("until they are forgotten") {
    times.forget_before([&](std::uint32_t) { return MonotonicTime{other.now_ns + 1}; });
  }
  SECTION("until another one has their tid") {
    thread.visit(times);
    CHECK(times.threads() == 1);
  }
  CHECK(times.threads_with_disk() == 0);
}

TEST_CASE("over many visits every nanosecond of a thread that waits for disks is told once") {
  WaitTimes times;
  DiskThread thread;
  thread.visit(times);
  std::minstd_rand random(3);
  const auto some_ns = [&](std::int64_t most) { return std::uniform_int_distribution<std::int64_t>(1, most)(random); };
  enum Kind { kOther, kQueue, kDisk, kKinds };
  std::array<std::int64_t, kKinds> spent{};
  std::array<std::int64_t, kKinds> said{};
  Kind before = kOther;
  const auto tell = [&](Kind now) {
    const auto told = thread.visit(times);
    REQUIRE(told);
    said[before] += told->before_ns;
    said[now] += told->now_ns;
    said[kQueue] += told->queued_ns;
    said[kDisk] += told->disk_ns;
    before = now;
  };
  for (int i = 0; i < 20'000; ++i) {
    const auto kind = static_cast<Kind>(some_ns(kKinds) - 1);
    const auto wait = [&] {
      const std::int64_t ns = some_ns(50'000);
      spent[kind] += ns;
      if (kind == kOther) thread.sleep(ns);
      if (kind == kQueue) thread.stand_in_queue(ns);
      if (kind == kDisk) thread.wait_for_disk(ns);
    };
    wait();
    if (some_ns(4) == 1) {
      tell(kind);
      if (some_ns(2) == 1) {
        wait();
        thread.see();
      }
      wait();
    }
    thread.run(some_ns(9'000));
  }
  // So that nothing is left.
  for (int i = 0; i < 2; ++i) {
    thread.sleep(WaitTimes::kDiskPatienceNs);
    spent[kOther] += WaitTimes::kDiskPatienceNs;
    tell(kOther);
    thread.run(1);
  }
  CHECK(said == spent);
}

TEST_CASE("over many visits every nanosecond is told once") {
  WaitTimes times;
  CountedThread thread;
  thread.visit(times);
  std::minstd_rand random(3);
  const auto some_ns = [&](std::int64_t most) { return std::uniform_int_distribution<std::int64_t>(1, most)(random); };
  std::int64_t waited = 0;
  std::int64_t queued = 0;
  std::int64_t told_waited = 0;
  std::int64_t told_queued = 0;
  bool was_queued = false;
  const auto tell = [&](bool is_queued) {
    const auto told = thread.visit(times);
    REQUIRE(told);
    (was_queued ? told_queued : told_waited) += told->before_ns;
    (is_queued ? told_queued : told_waited) += told->now_ns;
    told_queued += told->queued_ns;
    was_queued = is_queued;
  };
  for (int i = 0; i < 10'000; ++i) {
    std::int64_t ns = some_ns(5'000);
    thread.sleep(ns);
    waited += ns;
    if (i % 3 == 0) tell(false);
    ns = some_ns(50'000);
    if (i % 3 == 0) {
      thread.sleep(ns);
      waited += ns;
      thread.see();
    }
    ns = some_ns(2'000);
    thread.stand_in_queue(ns);
    queued += ns;
    if (i % 5 == 0) tell(true);
    thread.run(some_ns(9'000));
  }
  thread.sleep(1);
  tell(false);
  CHECK(told_waited == waited + 1);
  CHECK(told_queued == queued);
}

TEST_CASE("a new thread with an old one's tid begins anew") {
  WaitTimes times;
  CountedThread thread;
  thread.visit(times);
  CountedThread other;
  other.now_ns = kBeginNs + 500;
  other.wait.thread_start_ns = 78;
  other.wait.run_ns = 0;
  CHECK_FALSE(other.visit(times));
  other.sleep(100);
  other.run(1);
  const auto told = other.visit(times);
  REQUIRE(told);
  CHECK(told->now_ns == 100);
}

TEST_CASE("an ended thread is forgotten") {
  WaitTimes times;
  CountedThread thread;
  thread.visit(times);
  times.ended(kTid);
  CHECK(times.threads() == 0);
  CHECK_FALSE(thread.visit(times));
}

TEST_CASE("a thread that leaves another record in the same wait has nothing new to tell") {
  WaitTimes times;
  CountedThread thread;
  thread.visit(times);
  thread.run(10);
  thread.sleep(100);
  REQUIRE(thread.visit(times));
  thread.sleep(1000);
  const auto again = thread.visit(times);
  REQUIRE(again);
  CHECK(again->is_known);
  CHECK(again->before_ns + again->now_ns + again->queued_ns == 0);
  thread.sleep(500);
  thread.see();
  thread.run(10);
  thread.sleep(50);
  const auto other = thread.visit(times);
  REQUIRE(other);
  CHECK_FALSE(other->is_known);
  CHECK(other->before_ns == 1500);
  CHECK(other->now_ns == 50);
}

TEST_CASE("threads that leave no record any more are forgotten") {
  WaitTimes times;
  CountedThread thread;
  thread.visit(times);
  CHECK(times.forget_before([&](std::uint32_t) { return MonotonicTime{thread.now_ns}; }).empty());
  CHECK(times.forget_before([&](std::uint32_t) { return MonotonicTime{thread.now_ns + 1}; }) ==
        std::vector<std::uint32_t>{kTid});
  CHECK(times.threads() == 0);
}

TEST_CASE("threads of an owner that is visited seldom are remembered for longer") {
  WaitTimes times;
  const flamed_wait wait = CountedThread::at_first();
  for (const std::uint32_t owner : {7U, 8U}) times.visited(owner, {kBeginNs}, wait, owner);
  const auto late = [](std::uint32_t owner) { return MonotonicTime{kBeginNs + (owner == 7 ? 0 : 1)}; };
  CHECK(times.forget_before(late) == std::vector<std::uint32_t>{8});
}

TEST_CASE("the threads of one owner leave room for those of others") {
  WaitTimes times;
  const flamed_wait wait = CountedThread::at_first();
  for (std::uint32_t tid = 1; tid <= WaitTimes::kMostThreads; ++tid) times.visited(tid, {kBeginNs}, wait, 7);
  CHECK(times.threads() == WaitTimes::kMostOfOneOwner);
  times.visited(WaitTimes::kMostThreads + 1, {kBeginNs}, wait, 8);
  CHECK(times.threads() == WaitTimes::kMostOfOneOwner + 1);
  times.ended(1);
  times.visited(WaitTimes::kMostThreads, {kBeginNs}, wait, 7);
  CHECK(times.threads() == WaitTimes::kMostOfOneOwner + 1);
}

}  // namespace
}  // namespace flamed::daemon
