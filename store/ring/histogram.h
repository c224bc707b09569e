// SPDX-License-Identifier: Apache-2.0
//
// Histogram: the number of samples of each pair of thread and stack in one slot, packed into bytes. An immutable value.
//
// Layout, all numbers unsigned LEB128, for each thread in ascending order:
//
//   thread - previous thread (the first: thread)
//   number of the thread's stacks, and size of their entries in bytes, so that a reader can step over threads that it
//     does not want
//   for each stack in ascending order:
//     (stack - previous stack) << 1 | more       (the first: stack << 1 | more)
//     if more: (count - 1) << 1 | cut            (else the count is 1 and the stack is not cut)
//
// In a minute a thread has most stacks once, so most entries are one number of two or three bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "store/containers/leb128.h"
#include "store/ring/call_tree.h"

namespace flamed::store {

/// A stack in a slot. A cut stack has only the outer frames of a longer one, because there was no room for the inner
/// ones: which function ran is unknown (Truncation::kStoreFull).
struct StackRef {
  StackId stack;
  bool cut = false;

  /// Sorts by stack. Ids are below 2^31.
  [[nodiscard]] std::uint32_t key() const { return (stack.value << 1) | (cut ? 1U : 0U); }
  static StackRef from_key(std::uint32_t key) { return {StackId{key >> 1}, (key & 1U) != 0}; }
};

/// Writer-side row of a slot that is still open.
struct HistogramEntry {
  std::uint32_t thread = 0;
  std::uint32_t stack_key = 0;
  std::uint32_t count = 0;
};

class Histogram {
 public:
  Histogram() = default;
  /// Each (thread, stack) at most once, in any order. `places`, if given, gets the position of each entry among the
  /// histogram's stacks, from 0 in the order of visits.
  explicit Histogram(std::span<const HistogramEntry> entries, std::vector<std::uint32_t>* places = nullptr);

  /// visit(thread, bytes): the bytes are for for_each_stack() and live as long as the histogram.
  template <typename F>
  void for_each_thread(F&& visit) const {
    for_each_thread_counted(
        [&](std::uint32_t thread, std::span<const std::uint8_t> bytes, std::size_t) { visit(thread, bytes); });
  }
  /// visit(thread, bytes, number of stacks)
  template <typename F>
  void for_each_thread_counted(F&& visit) const {
    const std::uint8_t* at = bytes_.data();
    const std::uint8_t* end = at + bytes_.size();
    std::uint64_t thread = 0;
    while (at != end) {
      thread += read_leb128(at);
      const auto stacks = static_cast<std::size_t>(read_leb128(at));
      const auto size = static_cast<std::size_t>(read_leb128(at));
      visit(static_cast<std::uint32_t>(thread), std::span<const std::uint8_t>(at, size), stacks);
      at += size;
    }
  }

  /// visit(StackRef, count)
  template <typename F>
  static void for_each_stack(std::span<const std::uint8_t> bytes, F&& visit) {
    const std::uint8_t* at = bytes.data();
    const std::uint8_t* end = at + bytes.size();
    std::uint64_t stack = 0;
    while (at != end) {
      std::uint64_t head = read_leb128(at);
      stack += head >> 1;
      std::uint64_t extra = (head & 1U) != 0 ? read_leb128(at) : 0;
      visit(StackRef{StackId{static_cast<std::uint32_t>(stack)}, (extra & 1U) != 0}, (extra >> 1) + 1);
    }
  }

  [[nodiscard]] std::size_t entry_count() const { return entry_count_; }
  [[nodiscard]] std::size_t byte_count() const { return bytes_.size(); }

 private:
  std::vector<std::uint8_t> bytes_;
  std::size_t entry_count_ = 0;
};

}  // namespace flamed::store
