// SPDX-License-Identifier: Apache-2.0
//
// Generations: the last retained slot that refers to a value, in one byte. While there are few slots, each is a
// generation. Of many slots, the youngest are a generation each, and the older ones are grouped by an aligned power of
// two, so that 255 generations cover all. A value is then reclaimed with its generation's last slot: a 96th of the ring
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
  /// Covers `oldest` to `newest`, and some slots after.
  Generations(std::uint32_t oldest, std::uint32_t newest) : single_from_(oldest) {
    if (newest - oldest < kGroups) return;
    single_from_ = newest + 1 - kSingle;
    while (((single_from_ - 1) >> shift_) - (oldest >> shift_) >= kGroups) ++shift_;
    first_ = oldest >> shift_;
    groups_ = ((single_from_ - 1) >> shift_) - first_ + 1;
  }

  /// False: the slot is too young for a stamp.
  [[nodiscard]] bool reaches(std::uint32_t sequence) const {
    return sequence < single_from_ || sequence - single_from_ < kMost - groups_;
  }
  /// Slots older than the oldest one get its stamp.
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
  static constexpr std::uint32_t kGroups = 192;  ///< or the number of slots, if that is less
  static constexpr std::uint32_t kSingle = 32;

  std::uint32_t single_from_ = 0;  ///< from here on each slot is a generation
  std::uint32_t groups_ = 0;       ///< number of groups before it
  std::uint32_t first_ = 0;        ///< the first group
  unsigned shift_ = 0;             ///< log2 of a group's slots
};

}  // namespace flamed::store
