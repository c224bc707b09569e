// SPDX-License-Identifier: Apache-2.0
//
// Generations: which of the retained slots a value was named by last, in one byte. A generation is one slot while there
// are few of them, else a power of two of slots that follow each other, so that 255 generations reach across all. What
// a slot named is then reclaimed with the generation's last slot: a 96th of the ring later at most.
#pragma once

#include <algorithm>
#include <cstdint>

namespace flamed::store {

class Generations {
 public:
  using Stamp = std::uint8_t;
  static constexpr Stamp kNever = 0;

  /// Slots are numbered by ascending sequences.
  Generations() = default;
  /// Reaches from `oldest` to `newest`, and a good deal further.
  Generations(std::uint32_t oldest, std::uint32_t newest) {
    while ((newest >> shift_) - (oldest >> shift_) >= kFilled) ++shift_;
    first_ = oldest >> shift_;
  }

  /// False: there is no stamp for so young a slot.
  [[nodiscard]] bool reaches(std::uint32_t sequence) const { return (sequence >> shift_) < first_ + kMost; }
  /// Slots that are older than the oldest have its stamp.
  [[nodiscard]] Stamp of(std::uint32_t sequence) const {
    const std::uint32_t generation = std::max(sequence >> shift_, first_);
    return static_cast<Stamp>(std::min(generation - first_ + 1, kMost));
  }
  /// The youngest slot that has the stamp, which must not be kNever.
  [[nodiscard]] std::uint32_t last_of(Stamp stamp) const { return ((first_ + stamp) << shift_) - 1; }
  [[nodiscard]] bool is_before(Stamp stamp, std::uint32_t sequence) const {
    return stamp == kNever || last_of(stamp) < sequence;
  }

 private:
  static constexpr std::uint32_t kMost = 255;
  static constexpr std::uint32_t kFilled = 192;

  std::uint32_t first_ = 0;  ///< generation of stamp 1
  unsigned shift_ = 0;       ///< log2 of the slots of a generation
};

}  // namespace flamed::store
