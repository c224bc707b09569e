// SPDX-License-Identifier: Apache-2.0
//
// Moments as people write them in a URL. Pure: the present and the time zone come in as arguments. Any thread.
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
    "or 14:05 and 14:05:10 in the host's local time";

/// A moment as it was written.
struct GivenTime {
  WallTime moment;                 ///< of a time of day the latest one that is over
  std::optional<WallTime> next{};  ///< of a time of day the one that is still to come, else empty
  bool is_next_today = false;      ///< so `moment` is yesterday's
};

/// One moment between 1970 and 2200:
///   2026-01-31T14:05:10.5+01:00   RFC 3339; a space may stand for the T, and for the + that a query string lost
///   1767225600, 1767225600.25     unix seconds; integers from 10^11 on are milliseconds
///   now, now-15m, now-1h30m       relative, in s, m, h and d
///   14:05, 14:05:10               local time today, or yesterday where today's would be in the future
Result<GivenTime> parse_time(std::string_view text, const TimeContext& context);

/// What is meant by the end of a window. Of two times of day the second is the first one after the other. A time of day
/// that is no more than kLittleAheadNs ahead is that; so is one that is still to come today where yesterday's would be
/// before the start.
WallTime end_meant(const GivenTime& end, const std::optional<GivenTime>& start, WallTime now);
inline constexpr std::int64_t kLittleAheadNs = 15 * kNsPerMinute;

/// RFC 3339 in UTC with milliseconds: 2026-01-31T14:05:10.500Z.
std::string format_time(WallTime moment);

inline constexpr std::int64_t kDefaultWindowNs = 15 * kNsPerMinute;

/// The half-open window [from, to): `to` is now and `from` 15 minutes before `to` where they are not given. A `to` that
/// is still to come is now, unless `from` is, too. Fails when nothing lies between them, and says what both came out
/// as.
Result<store::WallWindow> resolve_window(std::optional<WallTime> from, std::optional<WallTime> to, WallTime now);

}  // namespace flamed::api
