// SPDX-License-Identifier: Apache-2.0
//
// The table in which the iterator over threads remembers the wait that it found each in, and the states of threads.
#include <cstdint>
#include <vector>

#include "test/catch.h"

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#include "bpf/visits.h"

namespace flamed {
namespace {

constexpr std::uint64_t kStart = 123'456'789;

/// As waits.bpf.c does at a visit. True: the thread was in this wait already.
bool visit(known_waits& set, std::uint64_t key, std::uint64_t now) {
  known_wait* const wait = find_wait(&set, key);
  const bool is_known = wait->key == key;
  wait->key = key;
  wait->seen_ns = now;
  return is_known;
}

TEST_CASE("a thread is known in the wait that it was found in, and in no other") {
  known_waits set{};
  CHECK_FALSE(visit(set, wait_key(7, kStart, 40, 0, 0), 1));
  CHECK(visit(set, wait_key(7, kStart, 40, 0, 0), 2));
  CHECK_FALSE(visit(set, wait_key(7, kStart, 41, 0, 0), 3));
  CHECK(visit(set, wait_key(7, kStart, 41, 0, 0), 4));
}

TEST_CASE("a thread that was woken but waits for a CPU is in another wait") {
  known_waits set{};
  visit(set, wait_key(7, kStart, 40, 0, 0), 1);
  CHECK_FALSE(visit(set, wait_key(7, kStart, 40, 1, 0), 2));
}

TEST_CASE("a thread whose tid another one had before is not known") {
  known_waits set{};
  const std::uint64_t before = wait_key(7, kStart, 40, 0, 0);
  visit(set, before, 1);
  const std::uint64_t now = wait_key(7, kStart + 10'000'000, 40, 0, 0);
  const known_wait* const wait = find_wait(&set, now);
  CHECK_FALSE(is_same_thread(wait, now));
}

TEST_CASE("a thread's earlier wait says when it was last seen") {
  known_waits set{};
  visit(set, wait_key(7, kStart, 40, 0, 0), 11);
  const std::uint64_t now = wait_key(7, kStart, 45, 0, 0);
  const known_wait* const wait = find_wait(&set, now);
  REQUIRE(is_same_thread(wait, now));
  CHECK(wait->seen_ns == 11);
}

TEST_CASE("a full set forgets the thread that was not seen for longest") {
  known_waits set{};
  for (std::uint32_t i = 0; i < FLAMED_WAITS_PER_SET; ++i) {
    CHECK_FALSE(visit(set, wait_key(7 + i * FLAMED_WAIT_SETS, kStart, 1, 0, 0), 10 + i));
  }
  visit(set, wait_key(7, kStart, 1, 0, 0), 20);  // the first is now the newest
  CHECK_FALSE(visit(set, wait_key(7 + 9 * FLAMED_WAIT_SETS, kStart, 1, 0, 0), 21));
  CHECK(visit(set, wait_key(7, kStart, 1, 0, 0), 22));
  CHECK_FALSE(visit(set, wait_key(7 + FLAMED_WAIT_SETS, kStart, 1, 0, 0), 23));
}

TEST_CASE("a thread is recorded again in each epoch, in the same wait") {
  known_waits set{};
  visit(set, wait_key(7, kStart, 40, 0, wait_epoch(7, 0)), 1);
  constexpr std::uint64_t kEpochNs = 1ULL << FLAMED_EPOCH_SHIFT;
  CHECK(visit(set, wait_key(7, kStart, 40, 0, wait_epoch(7, kEpochNs / 2)), 2));
  const std::uint64_t later = wait_key(7, kStart, 40, 0, wait_epoch(7, kEpochNs));
  CHECK(is_same_thread(find_wait(&set, later), later));
  CHECK_FALSE(visit(set, later, 3));
}

/// As waits.bpf.c does with the table.
std::uint8_t due(known_waits& set, std::uint64_t key, bool is_old, std::uint32_t old_stacks) {
  known_wait* const wait = find_wait(&set, key);
  const std::uint8_t stack = stack_due(wait, key, is_old && !is_same_thread(wait, key) ? 1 : 0, old_stacks);
  if (stack != 0) wait->key = key | (stack == FLAMED_STACK_LATER ? FLAMED_STACK_IS_LATER : 0);
  wait->seen_ns = 1;
  return stack;
}

TEST_CASE("the stack of a thread that has just run is read at once") {
  known_waits set{};
  CHECK(due(set, wait_key(7, kStart, 40, 0, 0), false, 0) == FLAMED_STACK_WANTED);
  CHECK(due(set, wait_key(7, kStart, 40, 0, 0), false, 9) == 0);
  CHECK(due(set, wait_key(7, kStart, 41, 0, 0), false, 0) == FLAMED_STACK_WANTED);
  CHECK(due(set, wait_key(7, kStart, 41, 1, 0), false, 0) == FLAMED_STACK_WANTED);
}

TEST_CASE("the stack of a thread that has waited for long is read once, when there is time") {
  known_waits set{};
  const std::uint64_t key = wait_key(7, kStart, 40, 0, 0);
  CHECK(due(set, key, true, 0) == FLAMED_STACK_LATER);
  CHECK(due(set, key, true, 0) == 0);
  CHECK(due(set, key, true, 1) == FLAMED_STACK_DUE);
  CHECK(due(set, key, true, 1) == 0);
}

TEST_CASE("where there is time the stack of a thread that has waited for long is read at once") {
  known_waits set{};
  CHECK(due(set, wait_key(7, kStart, 40, 0, 0), true, 5) == FLAMED_STACK_DUE);
}

TEST_CASE("a thread that runs while its stack is left for later has the next one read at once") {
  known_waits set{};
  CHECK(due(set, wait_key(7, kStart, 40, 0, 0), true, 0) == FLAMED_STACK_LATER);
  CHECK(due(set, wait_key(7, kStart, 41, 0, 0), true, 0) == FLAMED_STACK_WANTED);
  CHECK(due(set, wait_key(7, kStart, 41, 0, 0), true, 9) == 0);
}

TEST_CASE("in a new epoch a stack that is known is not read again, and one that is not stays so") {
  known_waits set{};
  CHECK(due(set, wait_key(7, kStart, 40, 0, 0), false, 0) == FLAMED_STACK_WANTED);
  CHECK(due(set, wait_key(7, kStart, 40, 0, 1), false, 9) == FLAMED_STACK_KNOWN);
  CHECK(due(set, wait_key(8, kStart, 40, 0, 0), true, 0) == FLAMED_STACK_LATER);
  CHECK(due(set, wait_key(8, kStart, 40, 0, 1), false, 0) == FLAMED_STACK_LATER);
  CHECK(due(set, wait_key(8, kStart, 40, 0, 2), false, 1) == FLAMED_STACK_DUE);
  CHECK(due(set, wait_key(8, kStart, 40, 0, 3), false, 1) == FLAMED_STACK_KNOWN);
}

TEST_CASE("a turn is over when its time or its stacks are used up, but has one visit") {
  constexpr std::uint64_t kNow = 1000;
  flamed_visit_turn turn{};
  turn.longest_ns = 100;
  turn.new_stacks = 1;
  CHECK_FALSE(is_over(&turn, kNow));
  CHECK_FALSE(is_over(&turn, kNow + 100));
  CHECK(is_over(&turn, kNow + 101));
  turn.began_ns = 0;
  turn.longest_ns = 0;
  CHECK_FALSE(is_over(&turn, kNow));
  --turn.new_stacks;
  CHECK(is_over(&turn, kNow));
}

/// A round in which all of these threads are found in new waits. Returns those that had their turn.
std::vector<std::uint32_t> make_round(flamed_owner_share& share, std::uint32_t round, std::uint32_t threads) {
  flamed_visit_turn turn{};
  turn.round = round;
  turn.allowance_ns = 3 * FLAMED_STACK_NS;
  std::vector<std::uint32_t> visited;
  begin_share(&share, &turn);
  for (std::uint32_t tid = 1; tid <= threads; ++tid) {
    if (!has_turn(&share, &turn, 0, tid)) continue;
    spend_visit(&share, tid, FLAMED_STACK_WANTED);
    visited.push_back(tid);
  }
  return visited;
}

TEST_CASE("an owner's threads share what visits may cost, and each has its turn") {
  using Tids = std::vector<std::uint32_t>;
  flamed_owner_share share{};
  CHECK(make_round(share, 1, 7) == Tids{1, 2, 3});
  CHECK(make_round(share, 2, 7) == Tids{4, 5, 6});
  CHECK(make_round(share, 3, 7) == Tids{7});
  CHECK(share.passed_over == 0);
  CHECK(make_round(share, 4, 7) == Tids{1, 2, 3});
  // Those that had not had their turn have ended.
  CHECK(make_round(share, 5, 2).empty());
  CHECK(make_round(share, 6, 2) == Tids{1, 2});
}

TEST_CASE("an owner is found to be large when its share is used up, once in a round") {
  flamed_visit_turn turn{};
  flamed_owner_share share{};
  CHECK_FALSE(has_turn(&share, &turn, 7, 1));
  CHECK_FALSE(has_turn(&share, &turn, 7, 2));
  CHECK(turn.new_large == 1);
  CHECK(turn.large[0] == 7);
  share.passed_over = 0;
  share.is_large = 1;
  CHECK_FALSE(has_turn(&share, &turn, 7, 1));
  CHECK(turn.new_large == 1);
}

TEST_CASE("an owner whose share sufficed begins anew") {
  flamed_owner_share share{};
  CHECK(make_round(share, 1, 3).size() == 3);
  CHECK(make_round(share, 2, 3).size() == 3);
}

TEST_CASE("an owner that had no threads in new waits for a round begins anew") {
  flamed_owner_share share{};
  make_round(share, 1, 5);
  CHECK(make_round(share, 3, 2).size() == 2);
}

TEST_CASE("visits without a stack cost less") {
  flamed_owner_share share{};
  share.left_ns = FLAMED_STACK_NS;
  spend_visit(&share, 1, FLAMED_STACK_LATER);
  spend_visit(&share, 2, FLAMED_STACK_KNOWN);
  CHECK(share.left_ns == FLAMED_STACK_NS - 2 * FLAMED_RECORD_NS);
}

TEST_CASE("a turn tells of as many large owners as it has room for") {
  flamed_visit_turn turn{};
  for (std::uint32_t owner = 0; owner < 2 * FLAMED_MOST_NEW_LARGE; ++owner) note_large(&turn, owner);
  CHECK(turn.new_large == FLAMED_MOST_NEW_LARGE);
  CHECK(turn.large[FLAMED_MOST_NEW_LARGE - 1] == FLAMED_MOST_NEW_LARGE - 1);
}

TEST_CASE("threads begin their epochs at different times") {
  constexpr std::uint64_t kNow = 900ULL << 30;
  int next = 0;
  for (std::uint32_t tid = 0; tid < 1024; ++tid) next += wait_epoch(tid, kNow) == 0 ? 0 : 1;
  CHECK(next > 800);
  CHECK(next < 1000);
}

TEST_CASE("threads of one process are spread over the sets") {
  for (std::uint32_t tid = 1000; tid < 1000 + FLAMED_WAIT_SETS - 1; ++tid) {
    if (wait_set(tid) == wait_set(tid + 1)) FAIL(tid << " shares a set with the next one");
  }
}

TEST_CASE("the largest tid has a key of its own") {
  constexpr std::uint32_t kLargest = (1U << FLAMED_TID_BITS) - 1;
  CHECK(wait_key(kLargest, kStart, 40, 0, 0) != wait_key(kLargest - 1, kStart, 40, 0, 0));
  CHECK(wait_key(kLargest, kStart, 40, 0, 0) != wait_key(kLargest, kStart, 41, 0, 0));
}

TEST_CASE("a thread's state follows from the kernel's, unless it stands in a run queue") {
  CHECK(wait_state(0, 1) == FLAMED_WAITS_FOR_CPU);
  CHECK(wait_state(0x1, 1) == FLAMED_WAITS_FOR_CPU);  // preempted on its way to sleep
  CHECK(wait_state(0x1, 0) == FLAMED_SLEEPS);
  CHECK(wait_state(0x2, 0) == FLAMED_BLOCKED);
  CHECK(wait_state(0x102, 0) == FLAMED_BLOCKED);  // TASK_KILLABLE
  CHECK(wait_state(0x4, 0) == FLAMED_STOPPED);
  CHECK(wait_state(0x8, 0) == FLAMED_STOPPED);
  CHECK(wait_state(0x8000, 0) == FLAMED_STOPPED);
  CHECK(wait_state(0x2001, 0) == FLAMED_SLEEPS);  // TASK_INTERRUPTIBLE | TASK_FREEZABLE
}

}  // namespace
}  // namespace flamed
