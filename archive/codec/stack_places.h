// SPDX-License-Identifier: Apache-2.0
//
// StackPlaces: where each stack of a session's dictionary is among those that are like it, so that the stacks of a
// thread have numbers close to each other. Pure; one thread.
//
// A group has the stacks that begin with the same outermost frame, thus those of one program for the most part; and of
// these either the ends, which samples have, or the others, which are callers. An end is a stack that no other one of
// the same additions calls from. A stack's rank is its place in its group, in the order of numbers. Both stay as they
// are when the dictionary grows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "archive/codec/additions.h"
#include "archive/codec/minute.h"

namespace flamed::archive {

class StackPlaces {
 public:
  struct Place {
    std::uint32_t group = 0, rank = 0;
  };

  /// Of each minute, in their order. If they come again with more, they replace what was added since.
  void add(const Additions& additions);
  /// The dictionary with all that was added.
  [[nodiscard]] const DictionarySize& size() const { return size_; }

  [[nodiscard]] Place of(std::uint32_t stack) const;
  /// Of memory.
  [[nodiscard]] std::size_t bytes() const;

  [[nodiscard]] std::size_t groups() const { return groups_.size(); }
  /// Stacks by rank, ascending.
  [[nodiscard]] std::span<const std::uint32_t> group(std::size_t number) const { return groups_[number]; }

 private:
  void drop_from(std::uint32_t stack);

  DictionarySize size_;
  std::vector<std::uint16_t> group_of_ = {0};                   ///< by stack; stack 0 has no frames
  std::vector<std::vector<std::uint32_t>> groups_ = {{0}, {}};  ///< ends, then others, of each outermost frame
};

}  // namespace flamed::archive
