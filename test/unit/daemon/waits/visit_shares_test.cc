// SPDX-License-Identifier: Apache-2.0
//
// Whose threads are in the list of those that are visited often, and since when all threads of the others were.
#include "daemon/waits/visit_shares.h"

#include <cstdint>
#include <optional>
#include <vector>

#include "test/catch.h"

namespace flamed::daemon {
namespace {

constexpr std::uint32_t kMany = FLAMED_MOST_LISTED;

/// A share after a round.
flamed_owner_share share(std::uint64_t threads, std::uint64_t passed_over, std::uint64_t passed_before) {
  flamed_owner_share share{};
  share.threads = threads;
  share.passed_over = passed_over;
  share.passed_before = passed_before;
  return share;
}

/// Threads of an owner leave records. Returns the owner that was found to be large, if any.
std::optional<std::uint32_t> visit(VisitShares& shares, std::uint32_t owner, std::uint32_t first, std::uint32_t count) {
  std::optional<std::uint32_t> large;
  for (std::uint32_t tid = first; tid < first + count; ++tid) {
    if (const auto found = shares.visited(tid, owner)) large = found;
  }
  return large;
}

TEST_CASE("threads that left records are listed by their tids, until they are gone") {
  VisitShares shares;
  CHECK_FALSE(visit(shares, 1, 20, 2));
  CHECK_FALSE(visit(shares, 0, 10, 1));
  CHECK_FALSE(visit(shares, 1, 20, 2));
  CHECK(shares.tids() == std::vector<std::uint32_t>{10, 20, 21});
  shares.gone(20);
  shares.gone(99);
  CHECK(shares.tids() == std::vector<std::uint32_t>{10, 21});
}

TEST_CASE("when the list is full, the owner with most threads is large, and has none in it") {
  VisitShares shares;
  visit(shares, 1, 1, 100);
  CHECK(visit(shares, 2, 1000, kMany) == std::optional<std::uint32_t>(2));
  CHECK(shares.large().contains(2));
  CHECK(shares.tids().size() == 100);
  CHECK_FALSE(visit(shares, 2, 1000, kMany));
  CHECK(shares.tids().size() == 100);
  CHECK_FALSE(visit(shares, 1, 500'000, 50));
  CHECK(shares.tids().size() == 150);
}

TEST_CASE("a thread that belongs to a large owner now is listed no more") {
  VisitShares shares;
  visit(shares, 1, 10, 2);
  CHECK(shares.make_large(2));
  CHECK_FALSE(shares.visited(11, 2));
  CHECK(shares.tids() == std::vector<std::uint32_t>{10});
}

TEST_CASE("threads that have just begun are listed, but no more than some, and whose they are is found later") {
  VisitShares shares;
  shares.started(5);
  CHECK(shares.tids() == std::vector<std::uint32_t>{5});
  shares.visited(5, 1);
  for (std::uint32_t tid = 1000; tid < 1000 + kMany; ++tid) shares.started(tid);
  CHECK(shares.tids().size() < kMany / 4);
  for (std::uint32_t tid = 1000; tid < 1000 + kMany; ++tid) shares.gone(tid);
  CHECK(shares.tids() == std::vector<std::uint32_t>{5});
  shares.make_large(1);
  CHECK(shares.tids().empty());
}

TEST_CASE("each owner has the same part of a turn, the large ones' for the round over all threads") {
  VisitShares shares;
  shares.make_large(9);
  CHECK(shares.share_of_list() == 0);
  visit(shares, 1, 10, 5);
  CHECK(shares.share_of_list() == Approx(0.5));
  visit(shares, 2, 20, 1);
  visit(shares, 3, 30, 1);
  CHECK(shares.share_of_list() == Approx(0.75));
}

TEST_CASE("a large owner's threads were all visited since the rounds began that it took") {
  VisitShares shares;
  shares.begin_round({100});
  shares.begin_round({200});
  shares.make_large(7);
  CHECK(shares.large().at(7).seen.ns == 100);
  // Some were passed over in three rounds; the fourth one visited the last of them.
  CHECK(shares.end_round(7, share(5000, 300, 0)));
  CHECK(shares.large().at(7).seen.ns == 100);
  shares.begin_round({300});
  CHECK(shares.end_round(7, share(5000, 200, 300)));
  shares.begin_round({400});
  CHECK(shares.end_round(7, share(5000, 0, 200)));
  CHECK(shares.large().at(7).seen.ns == 200);
  // And a round that visited all of them.
  shares.begin_round({500});
  CHECK(shares.end_round(7, share(5000, 0, 0)));
  CHECK(shares.large().at(7).seen.ns == 500);
}

TEST_CASE("an owner is large no more when a round has visited all of its threads, and these are few") {
  VisitShares shares;
  shares.begin_round({100});
  shares.make_large(7);
  CHECK(shares.end_round(7, share(100, 1, 0)));
  shares.begin_round({200});
  CHECK(shares.end_round(7, share(100, 0, 1)));
  shares.begin_round({300});
  CHECK(shares.end_round(7, share(FLAMED_MANY_THREADS, 0, 0)));
  shares.begin_round({400});
  CHECK_FALSE(shares.end_round(7, share(100, 0, 0)));
  CHECK(shares.large().empty());
}

TEST_CASE("with very many owners both tables keep to their limits") {
  VisitShares shares;
  for (std::uint32_t owner = 0; owner < 20'000; ++owner) shares.visited(owner + 1, owner);
  CHECK(shares.large().size() <= 256);
  CHECK(shares.tids().size() <= kMany);
}

}  // namespace
}  // namespace flamed::daemon
