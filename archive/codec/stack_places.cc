// SPDX-License-Identifier: Apache-2.0
#include "archive/codec/stack_places.h"

#include <algorithm>

namespace flamed::archive {
namespace {

/// The last two are of all outermost frames for which there is no room: stacks without end could be made of as many.
constexpr std::size_t kMostGroups = 8192;

}  // namespace

void StackPlaces::add(const Additions& additions) {
  const std::uint32_t first = additions.before.stacks;
  drop_from(first);
  group_of_.resize(first + additions.stacks.size());  // at first 1 for a caller
  for (const StackAddition& stack : additions.stacks) {
    if (stack.caller >= first) group_of_[stack.caller] = 1;
  }
  std::uint32_t number = first;
  for (const StackAddition& stack : additions.stacks) {
    std::size_t group = group_of_[stack.caller] & ~std::size_t{1};
    if (stack.caller == 0) {
      if (groups_.size() < kMostGroups) groups_.resize(groups_.size() + 2);
      group = groups_.size() - 2;
    }
    group += group_of_[number];
    groups_[group].push_back(number);
    group_of_[number++] = static_cast<std::uint16_t>(group);
  }
  size_ = additions.after();
}

void StackPlaces::drop_from(std::uint32_t stack) {
  for (; group_of_.size() > stack; group_of_.pop_back()) groups_[group_of_.back()].pop_back();
  // Each outermost frame has a stack in one of its two.
  while (groups_.back().empty() && groups_[groups_.size() - 2].empty()) groups_.resize(groups_.size() - 2);
}

std::size_t StackPlaces::bytes() const {
  std::size_t bytes =
      group_of_.capacity() * sizeof(std::uint16_t) + groups_.capacity() * sizeof(std::vector<std::uint32_t>);
  for (const auto& group : groups_) bytes += group.capacity() * sizeof(std::uint32_t);
  return bytes;
}

StackPlaces::Place StackPlaces::of(std::uint32_t stack) const {
  const std::uint32_t number = group_of_[stack];
  const std::vector<std::uint32_t>& group = groups_[number];
  const auto place = std::lower_bound(group.begin(), group.end(), stack);
  return {number, static_cast<std::uint32_t>(place - group.begin())};
}

}  // namespace flamed::archive
