// SPDX-License-Identifier: Apache-2.0
#include "push/progress.h"

#include <charconv>

namespace flamed::push {
namespace {

std::int64_t floor_to(std::int64_t ms, std::int64_t unit) { return ms - ms % unit; }
std::int64_t ceil_to(std::int64_t ms, std::int64_t unit) { return floor_to(ms + unit - 1, unit); }

/// By which minutes of the daemon may differ from those of the clock.
constexpr std::int64_t kDriftMs = 100;

template <typename Number>
bool take_number(std::string_view& text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

}  // namespace

std::string to_text(const Mark& mark) {
  return std::to_string(mark.until_ms) + " " + std::to_string(mark.minute_samples) + "\n";
}

Result<Mark> parse_mark(std::string_view text) {
  constexpr std::int64_t kLatestMs = 7'258'118'400'000;  // 2200-01-01
  Mark mark;
  const bool is_whole = take_number(text, mark.until_ms) && text.starts_with(' ') &&
                        (text.remove_prefix(1), take_number(text, mark.minute_samples)) && text == "\n";
  if (!is_whole || mark.until_ms < 0 || mark.until_ms > kLatestMs) return Error("not two numbers");
  return mark;
}

Progress::Progress(const Options& options, const std::optional<Mark>& mark, std::int64_t now_ms)
    : options_(options), mark_(mark.value_or(Mark{now_ms - options.lag_ms, 0})) {
  if (!mark) mark_.until_ms = ceil_to(mark_.until_ms, options.step_ms);
}

std::int64_t Progress::step_end() const {
  const std::int64_t unit = by_minute_ ? kMinuteMs : options_.step_ms;
  return floor_to(mark_.until_ms, unit) + unit;
}

std::optional<Progress::Step> Progress::next(std::int64_t now_ms) {
  // The clock was set back: what follows has other times.
  if (mark_.until_ms > now_ms + kMinuteMs) mark_ = {ceil_to(now_ms - options_.lag_ms, options_.step_ms), 0};
  const std::int64_t oldest_ms = ceil_to(now_ms - options_.max_age_ms, kMinuteMs);
  if (mark_.until_ms < oldest_ms) {
    const Stretch stretch{floor_to(mark_.until_ms, kMinuteMs), oldest_ms};
    return Step{Step::Kind::kCountOld, stretch, stretch};
  }
  if (now_ms < due_ms()) return std::nullopt;
  const Stretch stretch{mark_.until_ms, step_end()};
  if (!by_minute_) return Step{Step::Kind::kSend, stretch, stretch};
  const Stretch minute{floor_to(stretch.from_ms, kMinuteMs), stretch.to_ms};
  const bool is_whole = stretch.from_ms == minute.from_ms;
  return Step{is_whole ? Step::Kind::kSend : Step::Kind::kCountCut,
              minute,
              {minute.from_ms + kDriftMs, minute.to_ms - kDriftMs}};
}

bool Progress::fits(const Step& step, const Stretch& used) {
  // An empty one, of time of which nothing is kept, is between no times.
  if (used.from_ms >= used.to_ms || step.kind != Step::Kind::kSend) return true;
  const std::int64_t tolerance_ms = by_minute_ ? kDriftMs : 0;
  if (used.from_ms >= step.stretch.from_ms - tolerance_ms && used.to_ms <= step.stretch.to_ms + tolerance_ms)
    return true;
  // Wider than a minute: minutes overlap, since the clock was set. Sent as it is, rather than never.
  if (by_minute_) return true;
  by_minute_ = true;
  return false;
}

void Progress::done(const Step& step, std::uint64_t samples) {
  const bool is_same_minute = floor_to(mark_.until_ms, kMinuteMs) == floor_to(step.stretch.to_ms, kMinuteMs);
  mark_.minute_samples = is_same_minute ? mark_.minute_samples + samples : 0;
  mark_.until_ms = step.stretch.to_ms;
  by_minute_ = false;
}

std::uint64_t Progress::count(const Step& step, std::uint64_t samples) {
  const std::uint64_t accounted = std::min(samples, mark_.minute_samples);
  done(step, samples);
  return samples - accounted;
}

}  // namespace flamed::push
