// SPDX-License-Identifier: Apache-2.0
#include "api/access/group_members.h"

#include <algorithm>
#include <vector>

#include "test/catch.h"
#include "test/support/manual_clock.h"

namespace flamed::api {
namespace {

TEST_CASE("a group's members are looked up at most once in five seconds") {
  ManualClock clock{{kNsPerSecond}, {0}};
  int asked = 0;
  bool is_member = false;
  GroupMembers members(
      [&](uid_t user) {
        ++asked;
        return is_member && user == 1000;
      },
      clock);
  CHECK_FALSE(members.has(1000));
  is_member = true;
  clock.advance_ns(GroupMembers::kLifeNs - 1);
  CHECK_FALSE(members.has(1000));
  CHECK(asked == 1);
  clock.advance_ns(1);
  CHECK(members.has(1000));
  CHECK_FALSE(members.has(1001));
  CHECK(asked == 3);
}

TEST_CASE("a user is a member of their primary group") { CHECK(is_in_group(0, "root")); }

TEST_CASE("a user's groups have the primary one; a user without an account has none") {
  const std::vector<gid_t> groups = groups_of_user(0);
  CHECK(std::find(groups.begin(), groups.end(), gid_t{0}) != groups.end());
  CHECK(groups_of_user(4'000'000'000U).empty());
}

TEST_CASE("a user without an account is in no group, and a group that does not exist has no members") {
  CHECK_FALSE(is_in_group(4'000'000'000U, "root"));
  CHECK_FALSE(is_in_group(0, "no-such-group-here"));
}

}  // namespace
}  // namespace flamed::api
