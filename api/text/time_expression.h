// SPDX-License-Identifier: Apache-2.0
//
// Times as people write them in a URL. Pure: the current time and the time zone are arguments. Any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "store/model/profile.h"

namespace flamed::api {

/// What an expression is relative to.
struct TimeContext {
  WallTime now;
  /// Seconds that local clocks are ahead of UTC at a moment, daylight saving included.
  std::function<std::int64_t(WallTime)> local_offset_s;
};

/// The time zone of this host, as /etc/localtime or TZ give it.
std::int64_t system_local_offset_s(WallTime moment);

/// What parse_time() takes, for error messages and documents.
inline constexpr std::string_view kTimeForms =
    "RFC 3339 (2026-01-31T14:05:00Z), unix seconds or milliseconds, now, now-15m (s, m, h, d), "
    "or 14:05, 14:05:10 and yesterday 14:05 in the host's local time";

/// A parsed time.
struct GivenTime {
  WallTime moment;                 ///< for a time of day: the latest one in the past
  std::optional<WallTime> next{};  ///< for a time of day: the next one; else empty
  bool is_next_today = false;      ///< then `moment` is yesterday's
};

/// One time between 1970 and 2200:
///   2026-01-31T14:05:10.5+01:00   RFC 3339; a space may stand for the T, and for the + that a query string lost
///   1767225600, 1767225600.25     unix seconds; integers from 10^11 on are milliseconds
///   now, now-15m, now-1h30m       relative, in s, m, h and d
///   14:05, 14:05:10               local time today, or yesterday if today's is in the future
///   yesterday 14:05               local time
Result<GivenTime> parse_time(std::string_view text, const TimeContext& context);

/// The end of a window. If both ends are times of day, the end is the first such time after the start. A time of day at
/// most kLittleAheadNs ahead is taken as that future time; so is one later today if yesterday's is before the start.
WallTime end_meant(const GivenTime& end, const std::optional<GivenTime>& start, WallTime now);
inline constexpr std::int64_t kLittleAheadNs = 15 * kNsPerMinute;

/// RFC 3339 in UTC with milliseconds: 2026-01-31T14:05:10.500Z.
std::string format_time(WallTime moment);

inline constexpr std::int64_t kDefaultWindowNs = 15 * kNsPerMinute;

/// The half-open window [from, to): by default `to` is now and `from` 15 minutes before `to`. A `to` in the future is
/// now, unless `from` is in the future, too. Fails if the window is empty, and shows both times.
Result<store::WallWindow> resolve_window(std::optional<WallTime> from, std::optional<WallTime> to, WallTime now);

}  // namespace flamed::api
