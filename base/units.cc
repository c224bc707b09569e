// SPDX-License-Identifier: Apache-2.0
#include "base/units.h"

#include <array>
#include <charconv>
#include <utility>

#include "base/clock.h"

namespace flamed {
namespace {

using Unit = std::pair<std::string_view, std::uint64_t>;

constexpr std::array<Unit, 4> kDurations{{{"d", 24ULL * 60 * kNsPerMinute},
                                          {"h", 60ULL * kNsPerMinute},
                                          {"m", 1ULL * kNsPerMinute},
                                          {"s", 1ULL * kNsPerSecond}}};
constexpr std::array<Unit, 6> kSizes{{{"GiB", 1ULL << 30},
                                      {"MiB", 1ULL << 20},
                                      {"KiB", 1ULL << 10},
                                      {"G", 1ULL << 30},
                                      {"M", 1ULL << 20},
                                      {"K", 1ULL << 10}}};

bool take_number(std::string_view& text, std::uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

template <std::size_t kCount>
const Unit* take_unit(std::string_view& text, const std::array<Unit, kCount>& units) {
  for (const Unit& unit : units) {
    if (!text.starts_with(unit.first)) continue;
    text.remove_prefix(unit.first.size());
    return &unit;
  }
  return nullptr;
}

}  // namespace

Result<std::int64_t> parse_duration_ns(std::string_view text) {
  const Error error("'" + std::string(text) +
                    "' is not a duration; write a number and s, m, h or d, such as 90m or 24h");
  std::int64_t total = 0;
  if (text.empty()) return error;
  while (!text.empty()) {
    std::uint64_t number = 0;
    if (!take_number(text, number)) return error;
    const Unit* unit = take_unit(text, kDurations);
    std::int64_t part = 0;
    if (unit == nullptr || __builtin_mul_overflow(number, unit->second, &part) ||
        __builtin_add_overflow(total, part, &total)) {
      return error;
    }
  }
  return total;
}

Result<std::uint64_t> parse_size_bytes(std::string_view text) {
  const Error error("'" + std::string(text) + "' is not a size; write a number and KiB, MiB or GiB, such as 256MiB");
  std::uint64_t number = 0;
  if (!take_number(text, number)) return error;
  if (text.empty()) return number;
  const Unit* unit = take_unit(text, kSizes);
  std::uint64_t bytes = 0;
  if (unit == nullptr || !text.empty() || __builtin_mul_overflow(number, unit->second, &bytes)) return error;
  return bytes;
}

std::string format_duration(std::int64_t ns) {
  std::string text;
  auto rest = static_cast<std::uint64_t>(ns);
  for (const Unit& unit : kDurations) {
    if (rest >= unit.second) {
      text += std::to_string(rest / unit.second);
      text += unit.first;
      rest %= unit.second;
    }
  }
  return text.empty() ? "0s" : text;
}

std::string format_size(std::uint64_t bytes) {
  for (std::size_t i = 0; i < 3; ++i) {
    const Unit& unit = kSizes[i];
    if (bytes != 0 && bytes % unit.second == 0) return std::to_string(bytes / unit.second) + std::string(unit.first);
  }
  return std::to_string(bytes);
}

}  // namespace flamed
