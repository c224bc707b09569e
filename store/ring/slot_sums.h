// SPDX-License-Identifier: Apache-2.0
//
// SlotSums: the samples of each pair of process and stack in runs of sealed slots. Most stacks recur in most minutes
// and threads, so the sum of an hour is hardly larger than one of its minutes. A reader that does not find a run's sum
// computes it and stores it here; the least used sums are dropped when there is no room. Shared by the store and its
// snapshots; any thread.
//
// A second SlotSums has the samples of each process on each side of single slots: with kUserSide and kKernelSide
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

/// Slots [first, first + count) by their sequence, and the sum of their editions. Sequences are never reused, a sealed
/// slot never changes, and its replacement has a higher edition: a run always means the same samples. The user of a sum
/// must hold all of its slots, since otherwise its ids may have been reused.
struct SlotRun {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::uint64_t editions = 0;
  friend auto operator<=>(const SlotRun&, const SlotRun&) = default;
};

inline constexpr StackId kUserSide{0};
inline constexpr StackId kKernelSide{1};  ///< samples taken in the kernel

class SlotSums {
 public:
  explicit SlotSums(std::size_t limit_bytes) : limit_bytes_(limit_bytes) {}
  SlotSums(const SlotSums&) = delete;
  SlotSums& operator=(const SlotSums&) = delete;

  /// The histogram's threads are indices into the ProcessTable. Null: not computed, or dropped.
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
  mutable std::mutex mutex_;  ///< guards the members below; held for a look-up
  std::map<SlotRun, Kept> sums_;
  std::size_t used_bytes_ = 0;
  std::uint64_t uses_ = 0;
};

}  // namespace flamed::store
