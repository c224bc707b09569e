// SPDX-License-Identifier: Apache-2.0
#include "api/text/time_expression.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <limits>

namespace flamed::api {
namespace {

constexpr std::int64_t kSecondsPerDay = 86'400;
constexpr std::int64_t kNsPerDay = kSecondsPerDay * kNsPerSecond;
/// 2200-01-01. In nanoseconds it is two billion seconds below 2^63, so sums of a time and an offset can't overflow.
constexpr std::int64_t kEndSeconds = 7'258'118'400;
/// As seconds this is the year 5138, as milliseconds 1973: no sensible time is on the wrong side.
constexpr std::uint64_t kFirstMilliseconds = 100'000'000'000;

/// Reads a text from the left; a reader that fails does not change the position.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  [[nodiscard]] bool at_end() const { return rest_.empty(); }

  bool take(std::string_view text) {
    if (rest_.substr(0, text.size()) != text) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  std::optional<char> take_any_of(std::string_view characters) {
    if (rest_.empty() || characters.find(rest_.front()) == std::string_view::npos) return std::nullopt;
    const char taken = rest_.front();
    rest_.remove_prefix(1);
    return taken;
  }

  /// Exactly `count` digits.
  std::optional<int> take_digits(std::size_t count) {
    if (rest_.size() < count) return std::nullopt;
    int value = 0;
    for (char c : rest_.substr(0, count)) {
      if (!is_digit(c)) return std::nullopt;
      value = value * 10 + (c - '0');
    }
    rest_.remove_prefix(count);
    return value;
  }

  /// One or more digits. Values beyond 64 bits become the largest one.
  std::optional<std::uint64_t> take_number() {
    constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
    std::size_t length = 0;
    std::uint64_t value = 0;
    while (length < rest_.size() && is_digit(rest_[length])) {
      const auto digit = static_cast<std::uint64_t>(rest_[length] - '0');
      value = value > (kMax - digit) / 10 ? kMax : value * 10 + digit;
      ++length;
    }
    if (length == 0) return std::nullopt;
    rest_.remove_prefix(length);
    return value;
  }

  /// The digits after a decimal point, in units of 10^-9. Digits beyond the ninth are cut off.
  std::optional<std::int64_t> take_fraction_ns() {
    std::size_t length = 0;
    std::int64_t value = 0;
    while (length < rest_.size() && is_digit(rest_[length])) {
      if (length < 9) value = value * 10 + (rest_[length] - '0');
      ++length;
    }
    if (length == 0) return std::nullopt;
    for (std::size_t i = length; i < 9; ++i) value *= 10;
    rest_.remove_prefix(length);
    return value;
  }

 private:
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  std::string_view rest_;
};

/// Seconds since midnight.
std::optional<std::int64_t> take_clock(Scanner& scanner, bool seconds_required) {
  const auto hour = scanner.take_digits(2);
  if (!hour || !scanner.take(":")) return std::nullopt;
  const auto minute = scanner.take_digits(2);
  if (!minute) return std::nullopt;
  int second = 0;
  if (seconds_required || !scanner.at_end()) {
    if (!scanner.take(":")) return std::nullopt;
    const auto taken = scanner.take_digits(2);
    if (!taken) return std::nullopt;
    second = *taken;
  }
  // 60 is a leap second: it counts as the second after it.
  if (*hour > 23 || *minute > 59 || second > 60) return std::nullopt;
  return std::int64_t{*hour} * 3600 + std::int64_t{*minute} * 60 + second;
}

/// Days since 1970-01-01.
std::optional<std::int64_t> take_date(Scanner& scanner) {
  const auto year = scanner.take_digits(4);
  if (!year || !scanner.take("-")) return std::nullopt;
  const auto month = scanner.take_digits(2);
  if (!month || !scanner.take("-")) return std::nullopt;
  const auto day = scanner.take_digits(2);
  if (!day) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year{*year}, std::chrono::month{static_cast<unsigned>(*month)},
                                         std::chrono::day{static_cast<unsigned>(*day)}};
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days{date}.time_since_epoch().count();
}

/// The offset from UTC in seconds.
std::optional<std::int64_t> take_utc_offset(Scanner& scanner) {
  if (scanner.take_any_of("Zz")) return 0;
  const auto sign = scanner.take_any_of("+- ");
  if (!sign) return std::nullopt;
  const auto hours = scanner.take_digits(2);
  if (!hours || !scanner.take(":")) return std::nullopt;
  const auto minutes = scanner.take_digits(2);
  if (!minutes || *hours > 23 || *minutes > 59) return std::nullopt;
  const std::int64_t seconds = std::int64_t{*hours} * 3600 + std::int64_t{*minutes} * 60;
  return *sign == '-' ? -seconds : seconds;
}

struct Moment {
  std::int64_t seconds = 0;
  std::int64_t ns = 0;
};

std::optional<Moment> parse_rfc3339(std::string_view text) {
  Scanner scanner(text);
  const auto days = take_date(scanner);
  if (!days || !scanner.take_any_of("Tt ")) return std::nullopt;
  const auto clock = take_clock(scanner, true);
  if (!clock) return std::nullopt;
  std::int64_t fraction_ns = 0;
  if (scanner.take(".")) {
    const auto taken = scanner.take_fraction_ns();
    if (!taken) return std::nullopt;
    fraction_ns = *taken;
  }
  const auto offset = take_utc_offset(scanner);
  if (!offset || !scanner.at_end()) return std::nullopt;
  return Moment{*days * kSecondsPerDay + *clock - *offset, fraction_ns};
}

std::optional<Moment> parse_unix(std::string_view text) {
  Scanner scanner(text);
  const auto whole = scanner.take_number();
  if (!whole) return std::nullopt;
  if (scanner.at_end() && *whole >= kFirstMilliseconds) {
    // Clamped beyond the valid range, so that the caller's range check fails without an overflow here.
    const std::uint64_t seconds = std::min<std::uint64_t>(*whole / 1000, kEndSeconds);
    return Moment{static_cast<std::int64_t>(seconds), static_cast<std::int64_t>(*whole % 1000) * kNsPerMs};
  }
  Moment moment{static_cast<std::int64_t>(std::min<std::uint64_t>(*whole, kEndSeconds)), 0};
  if (scanner.take(".")) {
    const auto fraction = scanner.take_fraction_ns();
    if (!fraction) return std::nullopt;
    moment.ns = *fraction;
  }
  if (!scanner.at_end()) return std::nullopt;
  return moment;
}

/// Nanoseconds before now, at most `limit_ns`.
std::optional<std::int64_t> parse_relative(std::string_view text, std::int64_t limit_ns) {
  Scanner scanner(text);
  if (!scanner.take("now")) return std::nullopt;
  if (scanner.at_end()) return 0;
  if (!scanner.take("-")) return std::nullopt;
  std::int64_t total_ns = 0;
  do {
    const auto count = scanner.take_number();
    const auto unit = scanner.take_any_of("smhd");
    if (!count || !unit) return std::nullopt;
    std::int64_t unit_ns = kNsPerSecond;
    if (*unit == 'm') unit_ns = kNsPerMinute;
    if (*unit == 'h') unit_ns = 60 * kNsPerMinute;
    if (*unit == 'd') unit_ns = kNsPerDay;
    const std::int64_t room = limit_ns - total_ns;
    total_ns = *count > static_cast<std::uint64_t>(room / unit_ns)
                   ? limit_ns
                   : total_ns + static_cast<std::int64_t>(*count) * unit_ns;
  } while (!scanner.at_end());
  return total_ns;
}

/// The time at which local clocks show `local_seconds` (counted as if in UTC).
std::int64_t local_to_utc(std::int64_t local_seconds, const TimeContext& context) {
  const auto offset_at = [&](std::int64_t seconds) {
    seconds = std::clamp<std::int64_t>(seconds, 0, kEndSeconds);
    return context.local_offset_s(WallTime{seconds * kNsPerSecond});
  };
  // The offset depends on the time and the time on the offset. Two rounds are enough, except in the hour that a clock
  // change skips, where any answer is as good.
  const std::int64_t guess = local_seconds - offset_at(context.now.ns / kNsPerSecond);
  return local_seconds - offset_at(guess);
}

std::optional<GivenTime> parse_local_clock(std::string_view text, const TimeContext& context) {
  Scanner scanner(text);
  const bool is_yesterday = scanner.take("yesterday ");
  const auto clock = take_clock(scanner, false);
  if (!clock || !scanner.at_end()) return std::nullopt;
  const std::int64_t now_s = context.now.ns / kNsPerSecond;
  const std::int64_t local_now_s = now_s + context.local_offset_s(context.now);
  const std::int64_t midnight_s = local_now_s - ((local_now_s % kSecondsPerDay) + kSecondsPerDay) % kSecondsPerDay;
  const auto of_day = [&](std::int64_t day) {
    return WallTime{local_to_utc(midnight_s + day * kSecondsPerDay + *clock, context) * kNsPerSecond};
  };
  if (is_yesterday) return GivenTime{of_day(-1)};
  const bool is_over = of_day(0).ns <= now_s * kNsPerSecond;
  return GivenTime{of_day(is_over ? 0 : -1), of_day(is_over ? 1 : 0), !is_over};
}

std::string quoted(std::string_view text) {
  constexpr std::size_t kShown = 64;
  std::string out = "\"";
  out += text.substr(0, kShown);
  if (text.size() > kShown) out += "…";
  out += '"';
  return out;
}

}  // namespace

std::int64_t system_local_offset_s(WallTime moment) {
  const auto seconds = static_cast<std::time_t>(moment.ns / kNsPerSecond);
  std::tm parts{};
  if (::localtime_r(&seconds, &parts) == nullptr) return 0;
  return parts.tm_gmtoff;
}

Result<GivenTime> parse_time(std::string_view text, const TimeContext& context) {
  if (const auto back_ns = parse_relative(text, context.now.ns)) return GivenTime{{context.now.ns - *back_ns}};
  std::optional<Moment> moment = parse_rfc3339(text);
  if (!moment) moment = parse_unix(text);
  if (!moment) {
    if (const auto clock = parse_local_clock(text, context)) return *clock;
    return Error(quoted(text) + " is not a time. Write " + std::string(kTimeForms) + ".");
  }
  if (moment->seconds < 0 || moment->seconds >= kEndSeconds) {
    return Error(quoted(text) +
                 " is outside the years 1970 to 2199. Unix times are seconds, or milliseconds from 100000000000 on.");
  }
  return GivenTime{{moment->seconds * kNsPerSecond + moment->ns}};
}

WallTime end_meant(const GivenTime& end, const std::optional<GivenTime>& start, WallTime now) {
  if (!end.next) return end.moment;
  const bool is_near = end.next->ns - now.ns <= kLittleAheadNs;
  if (start && end.moment <= start->moment) return end.is_next_today || is_near ? *end.next : end.moment;
  const bool follows_clock = start && start->next;
  return is_near && !follows_clock ? *end.next : end.moment;
}

std::string format_time(WallTime moment) {
  std::int64_t seconds = moment.ns / kNsPerSecond;
  std::int64_t rest_ns = moment.ns % kNsPerSecond;
  if (rest_ns < 0) {
    rest_ns += kNsPerSecond;
    --seconds;
  }
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  std::array<char, 80> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", parts.tm_year + 1900, parts.tm_mon + 1,
                parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, static_cast<int>(rest_ns / kNsPerMs));
  return text.data();
}

Result<store::WallWindow> resolve_window(std::optional<WallTime> from, std::optional<WallTime> to, WallTime now) {
  store::WallWindow window;
  window.to = to.value_or(now);
  if (from.value_or(WallTime{0}) < now) window.to = std::min(window.to, now);
  window.from = from.value_or(WallTime{std::max<std::int64_t>(window.to.ns - kDefaultWindowNs, 0)});
  if (window.from >= window.to) {
    return Error("The window is empty: from is " + format_time(window.from) + " and to is " + format_time(window.to) +
                 ". Choose a from before to.");
  }
  return window;
}

}  // namespace flamed::api
