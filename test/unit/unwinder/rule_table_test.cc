// SPDX-License-Identifier: Apache-2.0
#include "unwinder/rule_table.h"

#include "test/catch.h"

namespace flamed::unwinder {
namespace {

Rule sp_plus(std::int32_t offset) {
  Rule rule;
  rule.cfa = CfaKind::kSpOffset;
  rule.cfa_offset = offset;
  return rule;
}

TEST_CASE("A rule table starts with the rules for unknown and unsupported frames") {
  RuleTable table;
  CHECK(table.size() == 2);
  CHECK(table.rule(kNoneRule) == Rule{});
  CHECK(table.rule(kUnsupportedRule).cfa == CfaKind::kUnsupported);
  CHECK(table.intern(Rule{}) == kNoneRule);
}

TEST_CASE("Equal rules get the same number, different rules different numbers, while the table grows") {
  RuleTable table;
  for (std::int32_t i = 0; i < 10'000; ++i) REQUIRE(table.intern(sp_plus(i * 8)).has_value());
  CHECK(table.size() == 10'002);
  for (std::int32_t i = 0; i < 10'000; ++i) {
    const auto id = table.intern(sp_plus(i * 8));
    REQUIRE(id.has_value());
    CHECK(id->value == i + 2);
    CHECK(table.rule(*id) == sp_plus(i * 8));
  }
}

TEST_CASE("A full table finds its rules but takes no more") {
  RuleTable table(3);
  CHECK(table.intern(sp_plus(8)).has_value());
  CHECK_FALSE(table.intern(sp_plus(16)).has_value());
  CHECK(table.intern(sp_plus(8)).has_value());
}

TEST_CASE("A table numbers 65,536 rules and no more") {
  RuleTable table;
  for (std::int32_t i = 0; i < 65'534; ++i) REQUIRE(table.intern(sp_plus(i)).has_value());
  CHECK(table.intern(sp_plus(65'533))->value == 65'535);
  CHECK_FALSE(table.intern(sp_plus(65'534)).has_value());
}

}  // namespace
}  // namespace flamed::unwinder
