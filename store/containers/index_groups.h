// SPDX-License-Identifier: Apache-2.0
//
// IndexGroups: indices sorted by group, ascending within a group. A counting sort: two passes for any number of groups.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace flamed::store {

class IndexGroups {
 public:
  static constexpr std::uint32_t kNoGroup = 0xffffffffU;

  /// group_of(i) for each index below `indices`: less than `groups`, or kNoGroup. It is called twice.
  template <typename GroupOf>
  IndexGroups(std::size_t groups, std::size_t indices, const GroupOf& group_of) : first_(groups + 1, 0) {
    for (std::uint32_t i = 0; i < indices; ++i) {
      if (const std::uint32_t group = group_of(i); group != kNoGroup) ++first_[group + 1];
    }
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    ordered_.resize(first_.back());
    std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
    for (std::uint32_t i = 0; i < indices; ++i) {
      if (const std::uint32_t group = group_of(i); group != kNoGroup) ordered_[next[group]++] = i;
    }
  }

  [[nodiscard]] std::span<const std::uint32_t> of(std::uint32_t group) const {
    return std::span(ordered_).subspan(first_[group], first_[group + 1] - first_[group]);
  }
  [[nodiscard]] std::span<std::uint32_t> of(std::uint32_t group) {
    return std::span(ordered_).subspan(first_[group], first_[group + 1] - first_[group]);
  }
  /// The indices of all groups, one group after the other.
  [[nodiscard]] std::span<const std::uint32_t> all() const { return ordered_; }

 private:
  std::vector<std::uint32_t> first_;    ///< by group: into ordered_
  std::vector<std::uint32_t> ordered_;  ///< indices
};

}  // namespace flamed::store
