// SPDX-License-Identifier: Apache-2.0
//
// AnswerFacts: what every answer says of itself, whatever its shape.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/model/gap.h"
#include "store/model/quality.h"
#include "store/model/selection.h"

namespace flamed::store {

/// How much of the CPU time that the kernel itself accounted the samples stand for.
struct Coverage {
  /// Of the selection in AnswerFacts::used, by /proc/stat or /proc/PID/stat; empty where it is not known.
  std::optional<std::uint64_t> cpu_ns_accounted{};
  std::optional<double> share{};  ///< sampled CPU time / cpu_ns_accounted; empty also where that is 0
  std::string reason{};           ///< a sentence where one of them is empty
};

/// For how long samples were taken with a period.
struct PeriodShare {
  std::int64_t period_ns = 0;
  double share = 0;  ///< of the time in AnswerFacts::used
};

struct AnswerFacts {
  WallWindow asked;
  /// Every sample of the selection within is in the answer, and none from outside: `asked`, cut to what is retained,
  /// with each edge moved outwards to a whole minute where the samples of that minute are no longer kept one by one.
  WallWindow used;
  /// Of the coarser edge of `used`: 1 where samples are kept one by one, else kNsPerMinute.
  std::int64_t resolution_ns = kNsPerMinute;
  /// What one sample of an answer stands for. Where the period changed within the window it is the greatest common
  /// divisor of the periods, and a sample that stood for n of it is counted as n samples.
  std::int64_t period_ns = 0;
  std::vector<PeriodShare> periods{};  ///< the shortest first; empty where nothing is retained
  /// Of the selection; `lost` is the whole machine's in all minutes touched, since a lost sample has no process; 0 with
  /// `only_user`.
  Quality quality;
  std::vector<Gap> missing{};          ///< that lie in `used` at least in part, in the order of time
  std::optional<Coverage> coverage{};  ///< filled in by who knows the kernel's accounts
  /// Of samples that the answer could be made of: only those of this user's own processes. Empty: all.
  std::optional<std::uint32_t> only_user{};
  /// Of an answer without samples: whether what is asked for has any at another time that is retained. Filled in by who
  /// looks further; empty: not known.
  std::optional<bool> matched_ever{};
  std::vector<std::string> warnings;  ///< what a person should know before trusting this, a sentence each

  [[nodiscard]] bool exact() const { return resolution_ns == 1; }
  /// What so many samples of the answer stand for.
  [[nodiscard]] std::uint64_t cpu_ns(std::uint64_t samples) const {
    return samples * static_cast<std::uint64_t>(period_ns);
  }
  /// As how many a sample is counted, on average over all that are counted: they vary as if they were so many fewer.
  [[nodiscard]] double mean_weight() const;
};

}  // namespace flamed::store
