// SPDX-License-Identifier: Apache-2.0
#include "daemon/reader.h"

#include <chrono>
#include <thread>
#include <utility>

namespace flamed::daemon {
namespace {

/// A perf buffer wakes us when it is half full: with the deepest stacks, 99 Hz take 2 s for that. But a timer that has
/// gone silent is to be found within a second or so.
constexpr int kDrainPeriodMs = 1000;
/// While the machine does next to nothing: each drain wakes two threads.
constexpr int kIdleDrainPeriodMs = 1500;
constexpr std::int64_t kIdleEventNs = kNsPerSecond / 15;  ///< or longer on average from one event to the next
constexpr std::chrono::milliseconds kNoticePause{10};
/// A notice so long after the last drain came alone.
constexpr std::int64_t kAloneNs = 100 * kNsPerMs;
/// The service manager waits for 10 s until it kills.
constexpr std::int64_t kHandOverNs = 8 * kNsPerSecond;

}  // namespace

Reader::Reader(Sampler& sampler, BatchQueues& queues, const Clock& clock, BudgetKeeper& budget)
    : sampler_(sampler), queues_(queues), clock_(clock), budget_(budget), last_drain_ns_(clock.monotonic().ns) {}

void Reader::run(const std::stop_token& stop) {
  const std::stop_callback wake(stop, [this] { sampler_.wake(); });
  while (!stop.stop_requested()) {
    const bool has_notice = sampler_.wait(is_idle_ ? kIdleDrainPeriodMs : kDrainPeriodMs);
    // What the kernel program misses is to reach it soon, but what many processes miss at once in one go.
    if (has_notice && clock_.monotonic().ns - last_drain_ns_ < kAloneNs) std::this_thread::sleep_for(kNoticePause);
    drain_once();
    // Beside a build notices come sixty times a second, and none tells of a CPU.
    const std::int64_t now_ns = clock_.monotonic().ns;
    if (!has_notice || now_ns - checked_cpus_ns_ >= kDrainPeriodMs * kNsPerMs / 2) {
      sampler_.check_cpus();
      checked_cpus_ns_ = now_ns;
    }
    sampler_.stretch_period(budget_.look(clock_.monotonic(), is_idle_));
  }
  sampler_.stop();
  hand_over();  // what was refused before
  drain_once();
  hand_over();
}

void Reader::hand_over() {
  // Ingest goes on until it has taken all, however far it is behind; only where it hangs is this given up.
  const MonotonicTime began = clock_.monotonic();
  while (batch_ != nullptr && clock_.monotonic().ns - began.ns < kHandOverNs) {
    if (queues_.full.try_push(std::move(batch_)))
      batch_ = nullptr;
    else
      std::this_thread::sleep_for(kNoticePause);
  }
}

void Reader::drain_once() {
  if (batch_ == nullptr) {
    batch_ = spare_ != nullptr ? std::move(spare_) : queues_.empty.try_pop().value_or(nullptr);
    if (batch_ == nullptr) batch_ = std::make_unique<EventBatch>();
    sampler_.drain(*batch_);
    const std::int64_t now_ns = clock_.monotonic().ns;
    const auto events = static_cast<std::int64_t>(batch_->events().size());
    is_idle_ = events * kIdleEventNs < now_ns - last_drain_ns_.exchange(now_ns);
    if (untold_since_) {
      batch_->drained_before = *std::exchange(untold_since_, std::nullopt);
    } else if (batch_->tells_nothing()) {
      // Ingest need not be woken for it: the next one, however empty, tells of both.
      untold_since_ = batch_->drained_before;
      spare_ = std::move(batch_);
      return;
    }
  }
  // A refused batch is kept and offered again; until then the rings are left alone. That is no drain: where ingest
  // hangs for good, the watchdog must see it.
  if (queues_.full.try_push(std::move(batch_))) batch_ = nullptr;
}

}  // namespace flamed::daemon
