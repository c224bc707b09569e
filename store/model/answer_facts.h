// SPDX-License-Identifier: Apache-2.0
//
// AnswerFacts: the members common to all answers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/model/gap.h"
#include "store/model/measure.h"
#include "store/model/quality.h"
#include "store/model/selection.h"
#include "store/model/wait_reason.h"

namespace flamed::store {

/// The share of the kernel's own accounts of CPU time that the samples stand for. With waiting time: of the time that
/// threads existed.
struct Coverage {
  /// CPU time of the selection in AnswerFacts::used, from /proc/stat or /proc/PID/stat; empty if not known.
  std::optional<std::uint64_t> cpu_ns_accounted{};
  std::optional<double> share{};  ///< sampled CPU time / cpu_ns_accounted; also empty if that is 0
  std::string reason{};           ///< a sentence if one of them is empty
  /// Only with waiting time: for how long the threads existed, all together, and by how much that may be wrong.
  std::optional<std::uint64_t> thread_ns{};
  std::uint64_t thread_error_ns = 0;
};

/// The share of time that was sampled with a period.
struct PeriodShare {
  std::int64_t period_ns = 0;
  double share = 0;  ///< of the time in AnswerFacts::used
};

struct AnswerFacts {
  /// "CPU time" in the names below is time of this measure.
  Measure measure = Measure::kCpu;
  DiskAccount disk_account = DiskAccount::kOfNone;  ///< now; of CPU time meaningless
  WallWindow asked;
  /// The answer has exactly the selection's samples in this window: `asked`, cut to the retained time, with each edge
  /// rounded outwards to a whole minute if the samples of that minute are no longer kept one by one, or to ten where
  /// the answer was made from sums of ten minutes.
  WallWindow used;
  /// Of the coarser edge of `used`: 1 if samples are kept one by one, else kNsPerMinute, or ten of them.
  std::int64_t resolution_ns = kNsPerMinute;
  /// The CPU time of one counted sample. If the period changed within the window, the greatest common divisor of the
  /// periods; a sample of n times this period counts as n samples.
  std::int64_t period_ns = 0;
  std::vector<PeriodShare> periods{};  ///< the shortest first; empty if nothing is retained
  /// Of the selection; `lost` is of the whole machine in all minutes of the window, since a lost sample has no process;
  /// 0 with `only_user`.
  Quality quality;
  std::vector<Gap> missing{};          ///< that overlap `used`, in the order of time
  std::optional<Coverage> coverage{};  ///< filled in by the API
  /// The only user whose processes the answer may cover. Empty: all users.
  std::optional<std::uint32_t> only_user{};
  /// For an answer without samples: whether the query has any at another retained time. Filled in by the API; empty:
  /// not known.
  std::optional<bool> matched_ever{};
  std::vector<std::string> warnings;  ///< what a person should know before trusting the answer, a sentence each

  [[nodiscard]] bool exact() const { return resolution_ns == 1; }
  /// The CPU time of so many samples.
  [[nodiscard]] std::uint64_t cpu_ns(std::uint64_t samples) const {
    return samples * static_cast<std::uint64_t>(period_ns);
  }
  /// The average weight of a counted sample: counts vary as if there were so many times fewer samples.
  [[nodiscard]] double mean_weight() const;
};

}  // namespace flamed::store
