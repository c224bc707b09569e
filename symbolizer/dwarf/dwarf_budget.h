// SPDX-License-Identifier: Apache-2.0
//
// DwarfBudget: bounds the work of one request. Debug information can refer to the same bytes again and again, so the
// size of a file is no bound.
#pragma once

#include <cstdint>

namespace flamed::symbolizer {

class DwarfBudget {
 public:
  /// In entries, attributes and rows read: about 10 ns each. A Java VM needs 40 million for all its 19 million entries
  /// and the 6 million rows of its line tables.
  static constexpr std::uint64_t kDefaultSteps = 1'000'000'000;

  explicit DwarfBudget(std::uint64_t steps = kDefaultSteps) : left_(steps) {}

  /// False once the budget is exceeded, and from then on.
  bool spend(std::uint64_t steps) {
    if (steps > left_) {
      left_ = 0;
      return false;
    }
    left_ -= steps;
    return left_ != 0;
  }

 private:
  std::uint64_t left_;
};

}  // namespace flamed::symbolizer
