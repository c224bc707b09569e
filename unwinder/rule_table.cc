// SPDX-License-Identifier: Apache-2.0
#include "unwinder/rule_table.h"

#include <algorithm>

namespace flamed::unwinder {

RuleTable::RuleTable(std::size_t max_rules)
    : max_rules_(std::clamp<std::size_t>(max_rules, 2, kMaxRules)), slots_(256) {
  static_cast<void>(intern(Rule{}));
  Rule unsupported;
  unsupported.cfa = CfaKind::kUnsupported;
  static_cast<void>(intern(unsupported));
}

std::optional<RuleId> RuleTable::intern(const Rule& rule) {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = std::hash<Rule>{}(rule)&mask;
  while (slots_[slot] != 0) {
    if (rules_[slots_[slot] - 1] == rule) return RuleId{static_cast<std::uint16_t>(slots_[slot] - 1)};
    slot = (slot + 1) & mask;
  }
  if (rules_.size() >= max_rules_) return std::nullopt;
  rules_.push_back(rule);
  slots_[slot] = static_cast<std::uint32_t>(rules_.size());
  if (rules_.size() * 2 > slots_.size()) grow();
  return RuleId{static_cast<std::uint16_t>(rules_.size() - 1)};
}

void RuleTable::grow() {
  slots_.assign(slots_.size() * 2, 0);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    std::size_t slot = std::hash<Rule>{}(rules_[i]) & mask;
    while (slots_[slot] != 0) slot = (slot + 1) & mask;
    slots_[slot] = static_cast<std::uint32_t>(i + 1);
  }
}

}  // namespace flamed::unwinder
