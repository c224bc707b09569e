// SPDX-License-Identifier: Apache-2.0
//
// Gaps: stretches of time whose samples are missing, because they were not taken or were lost. Plain values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace flamed::store {

enum class GapReason : std::uint8_t {
  kCpuCameOnline,  ///< a CPU ran and was not sampled yet
  kTimerSilent,    ///< a CPU's timer had stopped without notice, until it was opened again
  kSuspended,      ///< the machine was suspended: nothing ran
  kClockSet,       ///< the wall clock was set forward: this time did not exist
  kLost,           ///< samples were taken and lost
  kNotRunning,     ///< flamed did not run
};
inline constexpr std::size_t kGapReasonCount = 6;

/// Stable names for metrics and answers, e.g. "timer_silent".
std::string_view name_of(GapReason reason);

struct Gap {
  WallTime from;
  WallTime to;
  GapReason reason = GapReason::kTimerSilent;
  std::optional<std::uint16_t> cpu{};  ///< empty: all of them, or an unknown one
  std::uint64_t lost_samples = 0;      ///< of kLost

  friend bool operator==(const Gap&, const Gap&) = default;
};

/// A sentence about an answer's gaps, except those of lost samples, which its quality counts; empty if there are none.
std::optional<std::string> describe(const std::vector<Gap>& gaps);

/// The newest gaps. Adjacent gaps of the same kind are merged, so that a lasting problem is one entry. The writer adds;
/// the result of view() never changes.
class GapLog {
 public:
  static constexpr std::size_t kMost = 512;
  using View = std::shared_ptr<const std::vector<Gap>>;

  void add(const Gap& gap);
  /// Forgets gaps that ended before.
  void forget_before(WallTime time);
  /// Never null.
  [[nodiscard]] View view() const { return gaps_; }

  struct Total {
    std::uint64_t count = 0;
    std::int64_t ns = 0;
  };
  /// Totals of all gaps since the start.
  [[nodiscard]] const std::array<Total, kGapReasonCount>& totals() const { return totals_; }

 private:
  View gaps_ = std::make_shared<const std::vector<Gap>>();  ///< in the order of arrival
  std::array<Total, kGapReasonCount> totals_{};
};

}  // namespace flamed::store
