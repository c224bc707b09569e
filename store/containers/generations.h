// SPDX-License-Identifier: Apache-2.0
//
// Generations: which of the retained slots a value was named by last, in one byte. A generation is one slot while there
// are few of them. Of many, the youngest are one each, and the others go by powers of two, aligned, so that 255
// generations reach across all. What a slot named is then reclaimed with the generation's last slot: a 96th of the ring
// later at most.
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
  /// Reaches from `oldest` to `newest`, and some way further.
  Generations(std::uint32_t oldest, std::uint32_t newest) : single_from_(oldest) {
    if (newest - oldest < kGroups) return;
    single_from_ = newest + 1 - kSingle;
    while (((single_from_ - 1) >> shift_) - (oldest >> shift_) >= kGroups) ++shift_;
    first_ = oldest >> shift_;
    groups_ = ((single_from_ - 1) >> shift_) - first_ + 1;
  }

  /// False: there is no stamp for so young a slot.
  [[nodiscard]] bool reaches(std::uint32_t sequence) const {
    return sequence < single_from_ || sequence - single_from_ < kMost - groups_;
  }
  /// Slots that are older than the oldest have its stamp.
  [[nodiscard]] Stamp of(std::uint32_t sequence) const {
    if (sequence >= single_from_) {
      return static_cast<Stamp>(std::min(groups_ + (sequence - single_from_) + 1, kMost));
    }
    return static_cast<Stamp>(groups_ == 0 ? 1 : std::max(sequence >> shift_, first_) - first_ + 1);
  }
  /// The youngest slot that has the stamp, which must not be kNever.
  [[nodiscard]] std::uint32_t last_of(Stamp stamp) const {
    if (stamp > groups_) return single_from_ + (stamp - groups_ - 1);
    return std::min((first_ + stamp) << shift_, single_from_) - 1;
  }
  [[nodiscard]] bool is_before(Stamp stamp, std::uint32_t sequence) const {
    return stamp == kNever || last_of(stamp) < sequence;
  }

 private:
  static constexpr std::uint32_t kMost = 255;
  static constexpr std::uint32_t kGroups = 192;  ///< or as many slots, if there are no more
  static constexpr std::uint32_t kSingle = 32;

  std::uint32_t single_from_ = 0;  ///< from here on each slot is a generation
  std::uint32_t groups_ = 0;       ///< generations before
  std::uint32_t first_ = 0;        ///< the first of them
  unsigned shift_ = 0;             ///< log2 of their slots
};

}  // namespace flamed::store
