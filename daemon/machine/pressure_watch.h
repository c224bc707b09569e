// SPDX-License-Identifier: Apache-2.0
//
// PressureWatch: which minutes the machine was under pressure, by the totals in /proc/pressure. They are read every
// few seconds, which costs three small reads.
//
// look() belongs to the main thread; the rest is for any thread.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/handle.h"
#include "base/pressure.h"

namespace flamed::daemon {

/// The time since boot in which at least one thread waited for the resource, of the text of /proc/pressure/NAME:
///
///     some avg10=0.00 avg60=0.31 avg300=0.19 total=1234567
///     full avg10=0.00 avg60=0.00 avg300=0.00 total=234567
///
/// in microseconds there. Empty if the text has another form.
std::optional<std::int64_t> parse_pressure_ns(std::string_view text);

class PressureWatch {
 public:
  /// A minute of which less is known, since flamed began or the machine was suspended in it, is not judged.
  static constexpr std::int64_t kLeastKnownNs = 50 * kNsPerSecond;
  static constexpr std::size_t kMostMinutes = 10'000;

  struct Options {
    PressureLimits limits = kUsualPressureLimits;
    std::int64_t retention_ns = 24 * 60 * kNsPerMinute;
    std::string folder = "/proc/pressure";
  };
  PressureWatch(const Options& options, const Clock& clock);

  /// Reads the totals. Call it every few seconds: what came between two calls is divided among their minutes.
  void look();

  /// The minutes that began in [from, to) and were under pressure, oldest first.
  [[nodiscard]] std::vector<PressedMinute> minutes(WallTime from, WallTime to) const;

  struct State {
    bool is_on = true;                    ///< some resource has a limit
    std::string problem;                  ///< why there is no account of pressure; empty: there is
    std::optional<PressedMinute> last{};  ///< of the last whole minute, whether it was under pressure or not
  };
  [[nodiscard]] State state() const;

 private:
  using Totals = std::array<std::int64_t, kResources>;  ///< nanoseconds
  struct Reading {
    WallTime wall;
    MonotonicTime time;
    Totals totals{};
    [[nodiscard]] std::int64_t offset_ns() const { return wall.ns - time.ns; }
  };

  /// Empty: there is no account; sets `problem_`.
  std::optional<Reading> read();
  void divide(const Reading& from, const Reading& to);
  void end_minute();

  const Options options_;
  const Clock& clock_;
  const bool is_on_;
  std::array<Fd, kResources> files_;
  std::optional<Reading> last_reading_;
  // Of the minute that is not over.
  WallTime minute_;
  std::int64_t known_ns_ = 0;
  std::array<double, kResources> waited_ns_{};

  mutable std::mutex mutex_;  ///< guards the members below
  std::string problem_;
  std::optional<PressedMinute> last_;
  std::deque<PressedMinute> pressed_;  ///< oldest first
};

}  // namespace flamed::daemon
