// SPDX-License-Identifier: Apache-2.0
#include "daemon/sampler/side_band_shares.h"

#include <cstdint>
#include <map>
#include <vector>

#include "test/catch.h"

namespace flamed::daemon {
namespace {

constexpr std::int32_t kBuilder = 100, kChurner = 200, kOther = 300;

struct Fixture {
  std::map<std::int32_t, std::uint32_t> owners{{kBuilder, 1000}, {kChurner, 1001}, {kOther, 1001}};
  int asked = 0;
  SideBandShares shares{{.free_per_program = 10, .per_second = 5, .at_once = 20, .muted_ns = 2 * kNsPerSecond},
                        [this](std::int32_t pid) {
                          ++asked;
                          const auto found = owners.find(pid);
                          return found == owners.end() ? 1000U : found->second;
                        }};
  std::int64_t now_ns = kNsPerSecond;

  /// How many of these simultaneous records are read.
  int admitted(std::int32_t pid, int records) {
    int count = 0;
    for (int i = 0; i < records; ++i) {
      if (shares.admits(pid, {now_ns})) ++count;
    }
    return count;
  }
  void pass(std::int64_t ns) { now_ns += ns; }
};

TEST_CASE("each program gets the records that its start takes, however many programs there are") {
  Fixture fixture;
  for (std::int32_t pid = 1000; pid < 3000; ++pid) {
    fixture.shares.began_program(pid);
    CHECK(fixture.admitted(pid, 10) == 10);
  }
  CHECK(fixture.asked == 0);
  CHECK(fixture.shares.take_muted().empty());
}

TEST_CASE("beyond that, a user's processes share a saved-up amount and a rate, and other users are not affected") {
  Fixture fixture;
  for (const std::int32_t pid : {kChurner, kOther, kBuilder}) fixture.shares.began_program(pid);
  CHECK(fixture.admitted(kChurner, 1000) == 10 + 20);
  CHECK(fixture.admitted(kOther, 1000) == 10);  // of the same user
  CHECK(fixture.admitted(kBuilder, 25) == 25);
  CHECK(fixture.asked == 3);
  fixture.pass(2 * kNsPerSecond);
  CHECK(fixture.admitted(kChurner, 1000) == 10);
  CHECK(fixture.admitted(kOther, 1000) == 0);
  CHECK(fixture.asked == 3);
}

TEST_CASE("a muted process stays muted for a while, and skipped records are reported until none are left") {
  Fixture fixture;
  fixture.admitted(kChurner, 50);
  std::vector<SideBandShares::Muted> muted = fixture.shares.take_muted();
  REQUIRE(muted.size() == 1);
  CHECK(muted[0].pid == kChurner);
  CHECK(muted[0].user == 1001);
  CHECK(muted[0].from == MonotonicTime{kNsPerSecond});
  CHECK(muted[0].skipped == 30);
  CHECK(muted[0].is_new);

  fixture.pass(kNsPerSecond);  // five more would be allowed
  CHECK(fixture.admitted(kChurner, 1) == 0);
  muted = fixture.shares.take_muted();
  REQUIRE(muted.size() == 1);
  CHECK(muted[0].from == MonotonicTime{2 * kNsPerSecond});
  CHECK(muted[0].skipped == 1);
  CHECK_FALSE(muted[0].is_new);
  CHECK(fixture.shares.take_muted().empty());

  fixture.pass(kNsPerSecond / 2);
  CHECK(fixture.admitted(kChurner, 1) == 0);
  muted = fixture.shares.take_muted();
  REQUIRE(muted.size() == 1);
  CHECK(muted[0].is_new);
  fixture.pass(kNsPerSecond);
  CHECK(fixture.admitted(kChurner, 5) == 5);
  CHECK(fixture.shares.take_muted().empty());
}

TEST_CASE("skipped records of an ended process are reported once, and the pid's next process begins anew") {
  Fixture fixture;
  for (int i = 0; i < 3; ++i) {
    fixture.admitted(kChurner, 50);
    fixture.shares.ended(kChurner);
    const std::vector<SideBandShares::Muted> muted = fixture.shares.take_muted();
    REQUIRE(muted.size() == 1);
    CHECK(muted[0].user == 1001);
    CHECK(muted[0].skipped == (i == 0 ? 30 : 50));
    CHECK(muted[0].is_new);
  }
  CHECK(fixture.shares.take_muted().empty());
  fixture.owners[kChurner] = 1000;
  CHECK(fixture.admitted(kChurner, 50) == 20);
}

TEST_CASE("a fork gets no free records, and the program that it executes does") {
  Fixture fixture;
  fixture.shares.began_program(kChurner);
  for (std::int32_t child = 1000; child < 2000; ++child) {
    fixture.owners[child] = 1001;
    CHECK(fixture.admitted(child, 10) == (child < 1002 ? 10 : 0));
    if (child % 2 == 1) fixture.shares.ended(child);
  }
  CHECK(fixture.shares.take_muted().size() == 998);
  fixture.shares.began_program(1998);
  CHECK(fixture.admitted(1998, 50) == 10);
}

TEST_CASE("records without a pid are counted like others") {
  Fixture fixture;
  CHECK(fixture.admitted(-1, 5) == 5);
  CHECK(fixture.admitted(0, 5) == 5);
}

TEST_CASE("unordered records of two CPUs get no more than the rate") {
  Fixture fixture;
  fixture.admitted(kChurner, 30);
  int count = 0;
  for (int i = 0; i < 100; ++i) {
    fixture.now_ns = kNsPerSecond * (i % 2 == 0 ? 5 : 4);
    count += fixture.admitted(kChurner, 1);
  }
  CHECK(count == 20);
}

}  // namespace
}  // namespace flamed::daemon
