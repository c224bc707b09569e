// SPDX-License-Identifier: Apache-2.0
#include "api/text/time_expression.h"

#include <limits>

#include "test/catch.h"

namespace flamed::api {
namespace {

/// 2026-03-29 is when clocks in Berlin go from 02:00 (+01:00) to 03:00 (+02:00), at 01:00 UTC.
constexpr std::int64_t kBerlinSummerStart = 1774746000;

std::int64_t berlin_offset_s(WallTime moment) { return moment.ns / kNsPerSecond < kBerlinSummerStart ? 3600 : 7200; }

std::int64_t utc_offset_s(WallTime) { return 0; }

WallTime at(const std::string& text) {
  const TimeContext context{WallTime{0}, utc_offset_s};
  const auto moment = parse_time(text, context);
  INFO(text);
  REQUIRE(moment.ok());
  return moment->moment;
}

TEST_CASE("every form of a moment is understood") {
  // Winter in Berlin: local time is 15:05:30.
  const WallTime now = at("2026-01-31T14:05:30.250Z");
  const TimeContext context{now, berlin_offset_s};
  struct Case {
    std::string_view text;
    std::string_view expected;
  };
  const Case cases[] = {
      {"now", "2026-01-31T14:05:30.250Z"},
      {"now-0s", "2026-01-31T14:05:30.250Z"},
      {"now-30s", "2026-01-31T14:05:00.250Z"},
      {"now-15m", "2026-01-31T13:50:30.250Z"},
      {"now-2h", "2026-01-31T12:05:30.250Z"},
      {"now-1d", "2026-01-30T14:05:30.250Z"},
      {"now-1h30m", "2026-01-31T12:35:30.250Z"},
      {"now-99999999999999999999999d", "1970-01-01T00:00:00.000Z"},
      {"2026-01-31T14:05:10Z", "2026-01-31T14:05:10.000Z"},
      {"2026-01-31t14:05:10z", "2026-01-31T14:05:10.000Z"},
      {"2026-01-31T14:05:10.123456789Z", "2026-01-31T14:05:10.123Z"},
      {"2026-01-31T14:05:10.1234567891234Z", "2026-01-31T14:05:10.123Z"},
      {"2026-01-31T14:05:10+02:00", "2026-01-31T12:05:10.000Z"},
      {"2026-01-31T14:05:10 02:00", "2026-01-31T12:05:10.000Z"},
      {"2026-01-31 14:05:10-05:30", "2026-01-31T19:35:10.000Z"},
      {"2024-02-29T00:00:00Z", "2024-02-29T00:00:00.000Z"},
      {"2016-12-31T23:59:60Z", "2017-01-01T00:00:00.000Z"},
      {"0", "1970-01-01T00:00:00.000Z"},
      {"1769868310", "2026-01-31T14:05:10.000Z"},
      {"1769868310.5", "2026-01-31T14:05:10.500Z"},
      {"1769868310123", "2026-01-31T14:05:10.123Z"},
      {"15:05", "2026-01-31T14:05:00.000Z"},
      {"15:05:30", "2026-01-31T14:05:30.000Z"},
      {"00:00", "2026-01-30T23:00:00.000Z"},
      {"15:06", "2026-01-30T14:06:00.000Z"},
      {"15:05:31", "2026-01-30T14:05:31.000Z"},
      {"23:59", "2026-01-30T22:59:00.000Z"},
      {"yesterday 15:05", "2026-01-30T14:05:00.000Z"},
      {"yesterday 23:59:10", "2026-01-30T22:59:10.000Z"},
  };
  for (const Case& c : cases) {
    INFO(c.text);
    const auto moment = parse_time(c.text, context);
    CHECK(moment.ok());
    if (moment) CHECK(format_time(moment->moment) == c.expected);
  }
}

TEST_CASE("text that is no moment is refused, and the valid forms are listed") {
  const TimeContext context{at("2026-01-31T14:05:30Z"), berlin_offset_s};
  const std::string_view texts[] = {"",
                                    " ",
                                    "yesterday",
                                    "yesterday ",
                                    "yesterday15:05",
                                    "yesterday  15:05",
                                    "yesterday 25:05",
                                    "tomorrow 15:05",
                                    "now+5m",
                                    "now-",
                                    "now-5",
                                    "now-5w",
                                    "now-m",
                                    "now-5m ",
                                    "Now",
                                    "2026-02-30T00:00:00Z",
                                    "2026-13-01T00:00:00Z",
                                    "2026-00-01T00:00:00Z",
                                    "2026-01-31T24:00:00Z",
                                    "2026-01-31T14:60:00Z",
                                    "2026-01-31T14:05:61Z",
                                    "2026-01-31T14:05:10",
                                    "2026-01-31T14:05Z",
                                    "2026-01-31",
                                    "2026-01-31T14:05:10.Z",
                                    "2026-01-31T14:05:10Zx",
                                    "2026-01-31T14:05:10+0200",
                                    "2026-01-31T14:05:10+24:00",
                                    "-5",
                                    "+5",
                                    "5.",
                                    ".5",
                                    "1e9",
                                    "0x10",
                                    "1769868310123.5.5",
                                    "24:00",
                                    "14:60",
                                    "14:5",
                                    "1:05",
                                    "14:05:",
                                    "14:05:99",
                                    "14:05pm"};
  for (std::string_view text : texts) {
    INFO(text);
    const auto moment = parse_time(text, context);
    REQUIRE_FALSE(moment.ok());
    CHECK(moment.error().message().find("now-15m") != std::string::npos);
  }
}

TEST_CASE("a moment outside 1970 to 2199 is refused without overflowing") {
  const TimeContext context{at("2026-01-31T14:05:30Z"), berlin_offset_s};
  const std::string_view texts[] = {"7258118400",
                                    "99999999999",
                                    "7258118400000",
                                    "18446744073709551615",
                                    "99999999999999999999999999999999",
                                    "99999999999999999999999999999999.5",
                                    "9999-12-31T23:59:59Z",
                                    "0000-01-01T00:00:00Z",
                                    "1970-01-01T00:00:00+00:01"};
  for (std::string_view text : texts) {
    INFO(text);
    const auto moment = parse_time(text, context);
    REQUIRE_FALSE(moment.ok());
    CHECK(moment.error().message().find("1970 to 2199") != std::string::npos);
  }
}

TEST_CASE("a refused text is quoted by its beginning only") {
  const TimeContext context{WallTime{0}, utc_offset_s};
  const auto moment = parse_time(std::string(5000, 'x'), context);
  REQUIRE_FALSE(moment.ok());
  CHECK(moment.error().message().size() < 400);
}

TEST_CASE("a clock time before a change of the clocks is read with the offset at that time") {
  // 08:00 in Berlin on the day on which summer time began.
  const TimeContext context{at("2026-03-29T06:00:00Z"), berlin_offset_s};
  CHECK(format_time(parse_time("01:30", context)->moment) == "2026-03-29T00:30:00.000Z");
  CHECK(format_time(parse_time("03:30", context)->moment) == "2026-03-29T01:30:00.000Z");
  CHECK(format_time(parse_time("09:00", context)->moment) == "2026-03-28T08:00:00.000Z");
}

TEST_CASE("the local day is that of the time zone, not of UTC") {
  // 00:30 on 1 February in Berlin is still 31 January in UTC.
  const TimeContext context{at("2026-01-31T23:30:00Z"), berlin_offset_s};
  CHECK(format_time(parse_time("00:15", context)->moment) == "2026-01-31T23:15:00.000Z");
  CHECK(format_time(parse_time("23:45", context)->moment) == "2026-01-31T22:45:00.000Z");
}

TEST_CASE("a time of day yields both the latest and the next such moment") {
  const TimeContext context{at("2026-01-31T14:05:30Z"), berlin_offset_s};
  for (const std::string_view text : {"now", "now-1h", "2026-01-31T14:06:00Z", "1769868360"}) {
    INFO(text);
    CHECK_FALSE(parse_time(text, context)->next.has_value());
  }
  const auto later = parse_time("15:06", context);
  CHECK(format_time(later->moment) == "2026-01-30T14:06:00.000Z");
  CHECK(format_time(later->next.value()) == "2026-01-31T14:06:00.000Z");
  CHECK(later->is_next_today);
  const auto over = parse_time("15:05:30", context);
  CHECK(format_time(over->moment) == "2026-01-31T14:05:30.000Z");
  CHECK(format_time(over->next.value()) == "2026-02-01T14:05:30.000Z");
  CHECK_FALSE(over->is_next_today);
  // Clocks go forward between the two.
  const TimeContext spring{at("2026-03-29T00:30:00Z"), berlin_offset_s};
  const auto after = parse_time("03:30", spring);
  CHECK(format_time(after->moment) == "2026-03-28T02:30:00.000Z");
  CHECK(format_time(after->next.value()) == "2026-03-29T01:30:00.000Z");
}

TEST_CASE("a window may end a little in the future, and then ends now") {
  const WallTime now = at("2026-01-31T14:07:00Z");
  const TimeContext context{now, utc_offset_s};
  struct Case {
    std::string_view from;  // empty: not given
    std::string_view to;
    std::string_view from_meant;
    std::string_view to_meant;
  };
  constexpr std::string_view kNow = "2026-01-31T14:07:00.000Z";
  const Case cases[] = {
      {"14:05", "14:10", "2026-01-31T14:05:00.000Z", kNow},
      {"", "14:10", "2026-01-31T13:52:00.000Z", kNow},
      {"", "14:22", "2026-01-31T13:52:00.000Z", kNow},
      {"now-1h", "14:10", "2026-01-31T13:07:00.000Z", kNow},
      {"now-2d", "14:10", "2026-01-29T14:07:00.000Z", kNow},
      {"2026-01-31T14:05:00Z", "14:10", "2026-01-31T14:05:00.000Z", kNow},
      // Further ahead, but yesterday's is before the start.
      {"14:05", "23:59", "2026-01-31T14:05:00.000Z", kNow},
      {"now-1h", "20:00", "2026-01-31T13:07:00.000Z", kNow},
      // Both are still to come, so both are yesterday's.
      {"14:08", "14:10", "2026-01-30T14:08:00.000Z", "2026-01-30T14:10:00.000Z"},
      {"20:00", "21:00", "2026-01-30T20:00:00.000Z", "2026-01-30T21:00:00.000Z"},
      // Over midnight.
      {"23:50", "00:10", "2026-01-30T23:50:00.000Z", "2026-01-31T00:10:00.000Z"},
      {"14:20", "14:10", "2026-01-30T14:20:00.000Z", kNow},
      // Further ahead than clocks differ: yesterday's.
      {"", "14:23", "2026-01-30T14:08:00.000Z", "2026-01-30T14:23:00.000Z"},
      {"now-2d", "20:00", "2026-01-29T14:07:00.000Z", "2026-01-30T20:00:00.000Z"},
      // Moments with a date.
      {"2026-01-31T14:05:00Z", "2026-01-31T14:10:00Z", "2026-01-31T14:05:00.000Z", kNow},
      {"2026-01-31T14:05:00Z", "2026-02-28T14:10:00Z", "2026-01-31T14:05:00.000Z", kNow},
      {"", "1769868600", "2026-01-31T13:52:00.000Z", kNow},
      {"2026-01-31T14:10:00Z", "2026-01-31T14:15:00Z", "2026-01-31T14:10:00.000Z", "2026-01-31T14:15:00.000Z"},
  };
  for (const Case& c : cases) {
    INFO("from=" << c.from << " to=" << c.to);
    std::optional<GivenTime> from;
    std::optional<WallTime> start;
    if (!c.from.empty()) {
      from = *parse_time(c.from, context);
      start = from->moment;
    }
    const auto window = resolve_window(start, end_meant(*parse_time(c.to, context), from, now), now);
    REQUIRE(window.ok());
    CHECK(format_time(window->from) == c.from_meant);
    CHECK(format_time(window->to) == c.to_meant);
  }
}

TEST_CASE("a window may end a little in the future on either side of midnight") {
  struct Case {
    std::string now;
    std::string_view from;  // empty: not given
    std::string_view to;
    std::string_view meant;
  };
  const Case cases[] = {
      {"2026-02-01T00:05:00Z", "23:50", "00:10", "2026-02-01T00:10:00.000Z"},
      {"2026-01-31T23:57:00Z", "23:55", "00:05", "2026-02-01T00:05:00.000Z"},
      {"2026-01-31T23:57:00Z", "now-1h", "00:05", "2026-02-01T00:05:00.000Z"},
      {"2026-01-31T23:57:00Z", "", "00:05", "2026-02-01T00:05:00.000Z"},
      // Today's first minutes.
      {"2026-01-31T23:57:00Z", "00:00", "00:05", "2026-01-31T00:05:00.000Z"},
      {"2026-01-31T23:57:00Z", "", "00:15", "2026-01-31T00:15:00.000Z"},
      // Both are over, and in the wrong order: resolve_window() refuses them.
      {"2026-01-31T15:00:00Z", "14:30", "14:10", "2026-01-31T14:10:00.000Z"},
  };
  for (const Case& c : cases) {
    INFO(c.now << " from=" << c.from << " to=" << c.to);
    const TimeContext context{at(c.now), utc_offset_s};
    std::optional<GivenTime> from;
    if (!c.from.empty()) from = *parse_time(c.from, context);
    CHECK(format_time(end_meant(*parse_time(c.to, context), from, context.now)) == c.meant);
  }
}

TEST_CASE("the window is the last 15 minutes by default") {
  const WallTime now = at("2026-01-31T14:00:00Z");
  const auto both = resolve_window(std::nullopt, std::nullopt, now);
  REQUIRE(both.ok());
  CHECK(format_time(both->from) == "2026-01-31T13:45:00.000Z");
  CHECK(both->to == now);
  const auto until = resolve_window(std::nullopt, at("2026-01-31T12:00:00Z"), now);
  REQUIRE(until.ok());
  CHECK(format_time(until->from) == "2026-01-31T11:45:00.000Z");
  const auto since = resolve_window(at("2026-01-31T12:00:00Z"), std::nullopt, now);
  REQUIRE(since.ok());
  CHECK(since->to == now);
}

TEST_CASE("an empty window is refused with both of its ends") {
  const WallTime now = at("2026-01-31T14:00:00Z");
  for (const auto& [from, to] : {std::pair{"2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z"},
                                 std::pair{"2026-01-31T12:00:01Z", "2026-01-31T12:00:00Z"}}) {
    const auto window = resolve_window(at(from), at(to), now);
    REQUIRE_FALSE(window.ok());
    CHECK(window.error().message().find(format_time(at(from))) != std::string::npos);
    CHECK(window.error().message().find(format_time(at(to))) != std::string::npos);
  }
  CHECK_FALSE(resolve_window(std::nullopt, WallTime{0}, now).ok());
}

TEST_CASE("a moment before 1970 is still written as a date") {
  CHECK(format_time(WallTime{-1}) == "1969-12-31T23:59:59.999Z");
}

}  // namespace
}  // namespace flamed::api
