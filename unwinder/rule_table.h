// SPDX-License-Identifier: Apache-2.0
//
// RuleTable: numbers distinct Rules, so that a row needs 16 bits for one. Not thread-safe.
//
// A file's rows have a table of their own. To publish the rows of many files, the publisher interns their rules into a
// common table and renumbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/strong_id.h"
#include "unwinder/rule.h"

namespace flamed::unwinder {

using RuleId = StrongId<struct RuleTag, std::uint16_t>;

/// Present in every table.
inline constexpr RuleId kNoneRule{0};
inline constexpr RuleId kUnsupportedRule{1};

class RuleTable {
 public:
  /// The limit of 16 bits.
  static constexpr std::size_t kMaxRules = 65'536;

  /// `max_rules` is at least 2, for the initial rules, and at most kMaxRules.
  explicit RuleTable(std::size_t max_rules = kMaxRules);

  /// The number of `rule`, which is added if new; empty if the table is full and does not have it.
  [[nodiscard]] std::optional<RuleId> intern(const Rule& rule);

  /// `id` came from this table.
  [[nodiscard]] const Rule& rule(RuleId id) const { return rules_[id.value]; }
  [[nodiscard]] std::span<const Rule> rules() const { return rules_; }
  [[nodiscard]] std::size_t size() const { return rules_.size(); }

 private:
  void grow();

  std::size_t max_rules_;
  std::vector<Rule> rules_;
  /// Open addressing over a power of two of slots, at most half full; 0 is free, else the rule's number + 1.
  std::vector<std::uint32_t> slots_;
};

}  // namespace flamed::unwinder
