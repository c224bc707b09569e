// SPDX-License-Identifier: Apache-2.0
//
// DwarfBudget: how much work one question may cost. Debug information can refer to the same bytes from everywhere, so
// the size of a file alone bounds nothing.
#pragma once

#include <cstdint>

namespace flamed::symbolizer {

class DwarfBudget {
 public:
  /// In entries, attributes and rows read: about 10 ns each. All 19 million entries of a Java VM, the 6 million rows of
  /// its line tables and what leads to them are 40 million.
  static constexpr std::uint64_t kDefaultSteps = 1'000'000'000;

  explicit DwarfBudget(std::uint64_t steps = kDefaultSteps) : left_(steps) {}

  /// False once more was spent than there was, and from then on.
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
