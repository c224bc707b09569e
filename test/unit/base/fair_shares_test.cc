// SPDX-License-Identifier: Apache-2.0
#include "base/fair_shares.h"

#include "test/catch.h"

namespace flamed {
namespace {

struct Fixture {
  /// What is lost when a user wants this many, with room for `limit`.
  std::size_t make_room(std::uint32_t user, std::size_t amount, std::size_t limit) {
    std::size_t lost = 0;
    while (shares.total() + amount > limit) {
      const auto loss = shares.next_loss(user);
      REQUIRE(loss);
      shares.release(loss->key);
      ++lost;
    }
    return lost;
  }
  FairShares<int> shares;
};

TEST_CASE("a fair share is what users who want more than an equal part get, once the others are served in full") {
  CHECK(fair_share({}, 100) == 100);
  CHECK(fair_share({30, 40}, 100) == 100);
  CHECK(fair_share({500}, 100) == 100);
  CHECK(fair_share({10, 500}, 100) == 90);
  CHECK(fair_share({60, 10, 70}, 100) == 45);
  CHECK(fair_share({70, 60, 50}, 90) == 30);
  CHECK(fair_share({1, 2}, 0) == 0);
}

TEST_CASE("nothing is lost where nothing is held") {
  const FairShares<int> shares;
  CHECK_FALSE(shares.next_loss(1));
  CHECK(shares.total() == 0);
  CHECK(shares.of(1) == 0);
}

TEST_CASE("the user who holds most loses what they held longest") {
  FairShares<int> shares;
  shares.hold(1, 1000);
  shares.hold(2, 1000);
  shares.hold(3, 0);
  CHECK(shares.total() == 3);
  CHECK(shares.of(1000) == 2);
  REQUIRE(shares.next_loss(0));
  CHECK(shares.next_loss(0)->key == 1);
  CHECK(shares.next_loss(0)->user == 1000);
  shares.release(1);
  shares.release(1);
  CHECK(shares.total() == 2);
  // Both hold one: the user who wants more loses it.
  CHECK(shares.next_loss(0)->key == 3);
  CHECK(shares.next_loss(1000)->key == 2);
}

TEST_CASE("an item that is held again is the newest, and counts once") {
  FairShares<int> shares;
  shares.hold(1, 0, 10);
  shares.hold(2, 0, 10);
  shares.hold(1, 0, 5);
  CHECK(shares.total() == 15);
  CHECK(shares.next_loss(0)->key == 2);
  shares.hold(2, 7, 1);
  CHECK(shares.of(0) == 5);
  CHECK(shares.of(7) == 1);
}

TEST_CASE("amounts count, not the number of items") {
  FairShares<int> shares;
  for (int i = 0; i < 10; ++i) shares.hold(i, 0, 1);
  shares.hold(100, 7, 50);
  CHECK(shares.next_loss(0)->key == 100);
}

TEST_CASE("a lone user may have all of it, and a second one gets half") {
  Fixture fixture;
  for (int i = 0; i < 100; ++i) {
    CHECK(fixture.make_room(1000, 1, 100) == 0);
    fixture.shares.hold(i, 1000);
  }
  for (int i = 100; i < 200; ++i) {
    CHECK(fixture.make_room(0, 1, 100) == 1);
    fixture.shares.hold(i, 0);
  }
  CHECK(fixture.shares.of(1000) == 50);
  CHECK(fixture.shares.of(0) == 50);
}

}  // namespace
}  // namespace flamed
