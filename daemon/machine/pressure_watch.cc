// SPDX-License-Identifier: Apache-2.0
#include "daemon/machine/pressure_watch.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "base/result.h"

namespace flamed::daemon {
namespace {

constexpr std::size_t kMostBytes = 512;
/// NTP slews by less than this between two looks; a larger change is a step, or the machine was suspended.
constexpr std::int64_t kStepNs = kNsPerSecond / 2;

std::string describe(int error) {
  // psi_show() in kernel/sched/psi.c.
  if (error == ENOENT || error == EOPNOTSUPP) {
    return "this kernel keeps no account of pressure: it was built without CONFIG_PSI, or needs psi=1 on its command "
           "line";
  }
  return Error::from_errno("can't read /proc/pressure", error).message();
}

}  // namespace

std::optional<std::int64_t> parse_pressure_ns(std::string_view text) {
  constexpr std::string_view kLine = "some ";
  constexpr std::string_view kTotal = " total=";
  if (!text.starts_with(kLine)) return std::nullopt;
  const std::string_view line = text.substr(0, text.find('\n'));
  const std::size_t at = line.find(kTotal);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view number = line.substr(at + kTotal.size());
  std::int64_t us = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), us);
  if (error != std::errc{} || end != number.data() + number.size() || us < 0) return std::nullopt;
  return us > INT64_MAX / kNsPerUs ? std::nullopt : std::optional(us * kNsPerUs);
}

PressureWatch::PressureWatch(const Options& options, const Clock& clock)
    : options_(options),
      clock_(clock),
      is_on_(std::any_of(options.limits.begin(), options.limits.end(), [](const auto& limit) { return limit; })) {
  if (!is_on_) return;
  for (std::size_t i = 0; i < kResources; ++i) {
    const std::string path = options_.folder + "/" + std::string(kResourceNames[i]);
    files_[i] = Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!files_[i] && problem_.empty()) problem_ = describe(errno);
  }
}

std::optional<PressureWatch::Reading> PressureWatch::read() {
  Reading reading{clock_.wall(), clock_.monotonic()};
  // On a machine under pressure this thread may have lost its CPU in between.
  if (const Reading again{clock_.wall(), clock_.monotonic()}; again.offset_ns() > reading.offset_ns()) reading = again;
  for (std::size_t i = 0; i < kResources; ++i) {
    if (!files_[i]) return std::nullopt;
    std::array<char, kMostBytes> text{};
    const ssize_t size = ::pread(files_[i].get(), text.data(), text.size(), 0);
    const int error = errno;
    const auto total = size <= 0 ? std::nullopt : parse_pressure_ns({text.data(), static_cast<std::size_t>(size)});
    if (!total) {
      const std::lock_guard lock(mutex_);
      problem_ = size < 0 ? describe(error) : "/proc/pressure has another form than this version of flamed knows";
      return std::nullopt;
    }
    reading.totals[i] = *total;
  }
  const std::lock_guard lock(mutex_);
  problem_.clear();
  return reading;
}

void PressureWatch::look() {
  if (!is_on_) return;
  const std::optional<Reading> now = read();
  if (now && last_reading_) {
    const std::int64_t passed_ns = now->time.ns - last_reading_->time.ns;
    const std::int64_t by_wall_ns = now->wall.ns - last_reading_->wall.ns;
    if (passed_ns > 0 && by_wall_ns > 0 && by_wall_ns - passed_ns < kStepNs && passed_ns - by_wall_ns < kStepNs) {
      divide(*last_reading_, *now);
    } else {
      known_ns_ = 0;
      waited_ns_ = {};
    }
  }
  last_reading_ = now;
}

void PressureWatch::divide(const Reading& from, const Reading& to) {
  const auto passed_ns = static_cast<double>(to.wall.ns - from.wall.ns);
  for (std::int64_t at = from.wall.ns; at < to.wall.ns;) {
    minute_ = {at - at % kNsPerMinute};
    const std::int64_t minute_end = minute_.ns + kNsPerMinute;
    const std::int64_t end = std::min(to.wall.ns, minute_end);
    const double part = static_cast<double>(end - at) / passed_ns;
    for (std::size_t i = 0; i < kResources; ++i) {
      waited_ns_[i] += part * static_cast<double>(std::max<std::int64_t>(to.totals[i] - from.totals[i], 0));
    }
    known_ns_ += end - at;
    if (end == minute_end) end_minute();
    at = end;
  }
}

void PressureWatch::end_minute() {
  PressedMinute minute{minute_};
  bool is_pressed = false;
  const bool is_known = known_ns_ >= kLeastKnownNs;
  for (std::size_t i = 0; i < kResources && is_known; ++i) {
    minute.shares[i] = std::min(waited_ns_[i] / static_cast<double>(known_ns_), 1.0);
    minute.is_high[i] = options_.limits[i] && minute.shares[i] >= *options_.limits[i];
    is_pressed = is_pressed || minute.is_high[i];
  }
  known_ns_ = 0;
  waited_ns_ = {};
  if (!is_known) return;
  const std::lock_guard lock(mutex_);
  last_ = minute;
  const auto is_over = [&] {
    return pressed_.size() >= kMostMinutes || pressed_.front().start.ns < minute_.ns - options_.retention_ns;
  };
  while (!pressed_.empty() && is_over()) pressed_.pop_front();
  if (is_pressed) pressed_.push_back(minute);
}

std::vector<PressedMinute> PressureWatch::minutes(WallTime from, WallTime to) const {
  const std::lock_guard lock(mutex_);
  std::vector<PressedMinute> found;
  for (const PressedMinute& minute : pressed_) {
    if (from <= minute.start && minute.start < to) found.push_back(minute);
  }
  return found;
}

PressureWatch::State PressureWatch::state() const {
  const std::lock_guard lock(mutex_);
  return {is_on_, problem_, last_};
}

}  // namespace flamed::daemon
