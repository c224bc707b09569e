// SPDX-License-Identifier: Apache-2.0
//
// SlotSums: for runs of sealed slots, how often each process was seen with each stack. Most stacks come again in most
// minutes and in most threads, so the sum of an hour is hardly larger than one of its minutes. A reader that needs a
// run's sum and does not find it makes it and keeps it here; the least used ones go when the room is used up.
// Shared by the store and its snapshots; any thread.
//
// Another one holds how often each process was seen on each side of single slots: with kUserSide and kKernelSide
// instead of stacks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "store/ring/histogram.h"

namespace flamed::store {

/// Slots [first, first + count) by their sequence, and the sum of their editions. Sequences are never used again, a
/// sealed slot never changes, and whatever takes its place has a higher edition: a run always means the same. Whoever
/// uses the sum must hold all of its slots, or its ids may mean something else.
struct SlotRun {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::uint64_t editions = 0;
  friend auto operator<=>(const SlotRun&, const SlotRun&) = default;
};

inline constexpr StackId kUserSide{0};
inline constexpr StackId kKernelSide{1};  ///< what was taken in the kernel

class SlotSums {
 public:
  explicit SlotSums(std::size_t limit_bytes) : limit_bytes_(limit_bytes) {}
  SlotSums(const SlotSums&) = delete;
  SlotSums& operator=(const SlotSums&) = delete;

  /// The histogram's threads are places in the ProcessTable. Null: nobody made it, or it had to go.
  [[nodiscard]] std::shared_ptr<const Histogram> find(SlotRun run);
  void keep(SlotRun run, std::shared_ptr<const Histogram> sum);

  /// At most the limit.
  [[nodiscard]] std::size_t used_bytes() const;

 private:
  struct Kept {
    std::shared_ptr<const Histogram> sum;
    std::uint64_t used_at = 0;  ///< of uses_
  };
  [[nodiscard]] static std::size_t bytes_of(const Histogram& sum) { return sum.byte_count() + 256; }

  const std::size_t limit_bytes_;
  mutable std::mutex mutex_;  ///< guards what follows; held for a look-up
  std::map<SlotRun, Kept> sums_;
  std::size_t used_bytes_ = 0;
  std::uint64_t uses_ = 0;
};

}  // namespace flamed::store
