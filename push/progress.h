// SPDX-License-Identifier: Apache-2.0
//
// Progress: how far the profiles of one measure have got to one receiver, and what to ask the daemon for next. Every
// sample is sent in one request or counted as dropped: stretches follow each other without gaps, and where the daemon
// has whole minutes alone, a minute of which a part was sent before is not sent again, and its rest is dropped.
//
// Pure: no clock, no files. One thread. Times are unix milliseconds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace flamed::push {

inline constexpr std::int64_t kMinuteMs = 60'000;

struct Stretch {
  std::int64_t from_ms = 0;
  std::int64_t to_ms = 0;  ///< exclusive

  friend bool operator==(const Stretch&, const Stretch&) = default;
};

/// What outlasts the program.
struct Mark {
  std::int64_t until_ms = 0;         ///< everything before was sent or dropped
  std::uint64_t minute_samples = 0;  ///< samples since the minute began that until_ms is in

  friend bool operator==(const Mark&, const Mark&) = default;
};
/// One line of text.
std::string to_text(const Mark& mark);
Result<Mark> parse_mark(std::string_view text);

class Progress {
 public:
  struct Options {
    std::int64_t step_ms = 15'000;  ///< a whole number of these is a minute
    std::int64_t lag_ms = 5'000;    ///< samples are complete when they are so old
    std::int64_t max_age_ms = 3'600'000;
  };
  /// `mark`: of an earlier run; empty: begins with the next step.
  Progress(const Options& options, const std::optional<Mark>& mark, std::int64_t now_ms);

  struct Step {
    enum class Kind : std::uint8_t {
      kSend,
      kCountCut,  ///< whole minutes, to be counted and dropped: a part of the first was sent before
      kCountOld,  ///< likewise: they are older than the receiver takes
    };
    Kind kind = Kind::kSend;
    Stretch stretch{};  ///< that it accounts for
    Stretch ask{};      ///< of the daemon: of a whole minute a little less, which gets just this minute even if the
                        ///< daemon's minutes began a moment earlier, since the clock is being adjusted
  };
  /// Empty: nothing is complete yet.
  [[nodiscard]] std::optional<Step> next(std::int64_t now_ms);
  /// When there will be something.
  [[nodiscard]] std::int64_t due_ms() const { return step_end() + options_.lag_ms; }

  /// Whether the daemon's answer covers just the stretch of the step. If not, next() says what to do instead, now or
  /// when the minute is over.
  [[nodiscard]] bool fits(const Step& step, const Stretch& used);

  /// The step's samples were sent, or are dropped.
  void done(const Step& step, std::uint64_t samples);
  /// Those of a step that counts: of all in its minutes, those that were not accounted for before. Ends the step.
  std::uint64_t count(const Step& step, std::uint64_t samples);

  [[nodiscard]] const Mark& mark() const { return mark_; }

 private:
  [[nodiscard]] std::int64_t step_end() const;

  const Options options_;
  Mark mark_;
  bool by_minute_ = false;  ///< single samples of the minute that mark_ is in are not kept
};

}  // namespace flamed::push
