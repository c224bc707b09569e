// SPDX-License-Identifier: Apache-2.0
#include "store/model/gap.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

namespace flamed::store {
namespace {

/// A drain begins at the end of the one before: losses of consecutive drains are one gap.
constexpr std::int64_t kTouchNs = 100 * kNsPerMs;
/// How many of the newest gaps may be extended: one for each CPU with a problem at the same time.
constexpr std::size_t kTried = 64;

constexpr std::array<std::pair<GapReason, std::string_view>, 5> kSpoken{{
    {GapReason::kCpuCameOnline, "a CPU that had just come online was not sampled yet"},
    {GapReason::kTimerSilent, "a CPU's timer had gone silent"},
    {GapReason::kSuspended, "the machine was suspended"},
    {GapReason::kClockSet, "the clock was set forward"},
    {GapReason::kNotRunning, "flamed did not run"},
}};

std::string seconds(std::int64_t ns) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f s", static_cast<double>(ns) / kNsPerSecond);
  return text.data();
}

bool touches(const Gap& earlier, const Gap& later) {
  return earlier.reason == later.reason && earlier.cpu == later.cpu && later.from.ns <= earlier.to.ns + kTouchNs &&
         earlier.from <= later.from;
}

}  // namespace

std::string_view name_of(GapReason reason) {
  switch (reason) {
    case GapReason::kCpuCameOnline:
      return "cpu_came_online";
    case GapReason::kTimerSilent:
      return "timer_silent";
    case GapReason::kSuspended:
      return "suspended";
    case GapReason::kClockSet:
      return "clock_set";
    case GapReason::kLost:
      return "samples_lost";
    case GapReason::kNotRunning:
      return "not_running";
  }
  return "unknown";
}

std::optional<std::string> describe(const std::vector<Gap>& gaps) {
  std::array<std::size_t, kGapReasonCount> counts{};
  std::array<std::int64_t, kGapReasonCount> ns{};
  for (const Gap& gap : gaps) {
    const auto reason = static_cast<std::size_t>(gap.reason);
    ++counts[reason];
    ns[reason] += gap.to.ns - gap.from.ns;
  }
  std::string parts;
  for (const auto& [reason, what] : kSpoken) {
    const auto place = static_cast<std::size_t>(reason);
    if (counts[place] == 0) continue;
    parts += (parts.empty() ? "" : ", ") + std::string(what) + " (" + seconds(ns[place]) +
             (counts[place] == 1 ? ")" : " in " + std::to_string(counts[place]) + " parts)");
  }
  if (parts.empty()) return std::nullopt;
  return "Time without samples: " + parts + ". See \"missing\" for when.";
}

void GapLog::add(const Gap& gap) {
  if (gap.to <= gap.from) return;
  auto gaps = std::make_shared<std::vector<Gap>>(*gaps_);
  Total& total = totals_[static_cast<std::size_t>(gap.reason)];
  const auto end = gaps->rbegin() + static_cast<std::ptrdiff_t>(std::min(kTried, gaps->size()));
  const auto before = std::find_if(gaps->rbegin(), end, [&](const Gap& earlier) { return touches(earlier, gap); });
  if (before != end) {
    const WallTime to = std::max(before->to, gap.to);
    total.ns += to.ns - before->to.ns;
    before->to = to;
    before->lost_samples += gap.lost_samples;
  } else {
    if (gaps->size() == kMost) gaps->erase(gaps->begin());
    gaps->push_back(gap);
    ++total.count;
    total.ns += gap.to.ns - gap.from.ns;
  }
  gaps_ = std::move(gaps);
}

void GapLog::forget_before(WallTime time) {
  const auto is_old = [&](const Gap& gap) { return gap.to < time; };
  if (std::none_of(gaps_->begin(), gaps_->end(), is_old)) return;
  auto gaps = std::make_shared<std::vector<Gap>>(*gaps_);
  gaps->erase(std::remove_if(gaps->begin(), gaps->end(), is_old), gaps->end());
  gaps_ = std::move(gaps);
}

}  // namespace flamed::store
