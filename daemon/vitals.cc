// SPDX-License-Identifier: Apache-2.0
#include "daemon/vitals.h"

#include <algorithm>
#include <cmath>

namespace flamed::daemon {
namespace {

/// If fewer samples than this are expected, none at all may be chance.
constexpr double kSureSamples = 50;

/// Long enough to judge by one half-busy CPU; at 10 Hz and above that is kWindowNs.
std::int64_t window_ns(double frequency_hz) {
  const double enough_ns = 2 * kSureSamples / frequency_hz * static_cast<double>(kNsPerSecond);
  return std::max(Vitals::kWindowNs, static_cast<std::int64_t>(enough_ns));
}

/// CPU time between two readings, which count modulo 2^64.
std::int64_t busy_ns_between(const VitalSigns& from, const VitalSigns& to) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(to.busy_ns.value_or(0)) -
                                   static_cast<std::uint64_t>(from.busy_ns.value_or(0)));
}

std::string seconds(std::int64_t ns) { return std::to_string(ns / kNsPerSecond) + " s"; }

}  // namespace

Vitals::Vitals(VitalSigns first) : window_(first), latest_(first) {}

bool Vitals::wants_busy(std::uint64_t taken) const {
  std::lock_guard lock(mutex_);
  return taken == latest_.taken;
}

void Vitals::tick(const VitalSigns& signs) {
  std::lock_guard lock(mutex_);
  if (signs.last_drain > window_.last_drain) has_drained_ = true;
  latest_ = signs;
  if (signs.taken != window_.taken) {
    sampling_ = true;
    sampling_problem_.clear();
    window_ = signs;
    return;
  }
  if (!signs.busy_ns) return;
  if (!window_.busy_ns) {
    window_ = signs;
    return;
  }
  const std::int64_t passed_ns = signs.now.ns - window_.now.ns;
  const double frequency_hz = std::min(window_.frequency_hz, signs.frequency_hz);
  if (passed_ns < window_ns(frequency_hz)) return;
  const double busy_seconds = static_cast<double>(busy_ns_between(window_, signs)) / kNsPerSecond;
  if (busy_seconds * frequency_hz < kSureSamples) {
    // Idle: nothing to sample. Judge the next window by itself.
    if (sampling_) window_ = signs;
    return;
  }
  sampling_ = false;
  sampling_problem_ = "sampling has stalled: no sample in " + seconds(passed_ns) + " although the machine used " +
                      std::to_string(std::lround(busy_seconds)) +
                      " s of CPU time; restart flamed and look for kernel messages about perf or BPF";
}

Vitals::Verdict Vitals::verdict() const {
  std::lock_guard lock(mutex_);
  Verdict verdict;
  verdict.sampling = sampling_;
  verdict.has_drained = has_drained_;
  verdict.problem = sampling_problem_;
  const std::int64_t silent_ns = latest_.now.ns - latest_.last_drain.ns;
  verdict.reader_alive = silent_ns < kReaderDeadlineNs;
  if (!verdict.reader_alive) {
    verdict.problem = "the reader has not drained the kernel's buffers for " + seconds(silent_ns) +
                      ": it or ingest hangs; the machine may be out of CPU time or memory";
  }
  return verdict;
}

bool Vitals::well() const {
  const Verdict now = verdict();
  return now.reader_alive && now.sampling;
}

}  // namespace flamed::daemon
