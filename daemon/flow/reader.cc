// SPDX-License-Identifier: Apache-2.0
#include "daemon/flow/reader.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace flamed::daemon {
namespace {

/// A buffer wakes us when it is half full, after a second of the deepest stacks at 99 Hz. Urgent events and requests
/// (StoredUntil) wake us, too. Each drain costs two wake-ups of threads whose data is in no cache.
constexpr int kDrainPeriodMs = 5000;
/// flamed is ready once it has drained for the first time. Samples of a busy machine are there by then.
constexpr int kFirstDrainMs = 100;
/// The largest batch with many CPUs: 20,000 samples of servers are 8 MiB.
constexpr double kBatchSamples = 20'000;
constexpr int kShortestDrainPeriodMs = 2000;
/// If urgent events are not reported, and while the budget is exceeded, so that the next step does not wait.
constexpr int kShortDrainPeriodMs = 1000;
constexpr int kIdleShortDrainPeriodMs = 1500;
constexpr std::int64_t kIdleEventNs = kNsPerSecond / 15;  ///< mean time between events on an idle machine, or longer
constexpr std::chrono::milliseconds kRefusedPause{10};
/// The service manager kills after 10 s.
constexpr std::int64_t kHandOverNs = 8 * kNsPerSecond;

}  // namespace

Reader::Reader(Sampler& sampler, BatchQueues& queues, const Clock& clock, BudgetKeeper& budget,
               const StoredUntil& stored, std::function<void(EventBatch&)> add_visits)
    : sampler_(sampler),
      queues_(queues),
      clock_(clock),
      budget_(budget),
      stored_(stored),
      add_visits_(std::move(add_visits)),
      last_drain_ns_(clock.monotonic().ns) {}

void Reader::run(const std::stop_token& stop) {
  const std::stop_callback wake(stop, [this] { sampler_.wake(); });
  for (int wait_ms = kFirstDrainMs; !stop.stop_requested(); wait_ms = period_ms()) {
    if (sampler_.wait(wait_ms, notices_.listens_from())) notices_.woken(clock_.monotonic());
    drain_once();
    sampler_.check_cpus();
    const unsigned stretch = budget_.look(clock_.monotonic(), is_idle_);
    sampler_.stretch_period(stretch);
    notices_.stretch(stretch);
  }
  sampler_.stop();
  hand_over();  // the batch that was refused before
  drain_once();
  hand_over();
}

int Reader::period_ms() const {
  if (batch_ != nullptr || budget_.is_exceeded()) return kShortDrainPeriodMs;
  if (!sampler_.may_rest()) return is_idle_ ? kIdleShortDrainPeriodMs : kShortDrainPeriodMs;
  if (is_idle_) return kDrainPeriodMs;
  const SamplerFigures& now = sampler_.figures();
  const double until_full_ms = 1000 * kBatchSamples / (now.frequency_hz() * static_cast<double>(now.cpus()));
  return static_cast<int>(std::clamp<double>(until_full_ms, kShortestDrainPeriodMs, kDrainPeriodMs));
}

void Reader::hand_over() {
  // Waits until ingest has taken everything, however far it is behind, unless it hangs.
  const MonotonicTime began = clock_.monotonic();
  while (batch_ != nullptr && clock_.monotonic().ns - began.ns < kHandOverNs) {
    if (queues_.full.try_push(std::move(batch_)))
      batch_ = nullptr;
    else
      std::this_thread::sleep_for(kRefusedPause);
  }
}

void Reader::drain_once() {
  if (batch_ == nullptr) {
    batch_ = spare_ != nullptr ? std::move(spare_) : queues_.empty.try_pop().value_or(nullptr);
    if (batch_ == nullptr) batch_ = std::make_unique<EventBatch>();
    sampler_.drain(*batch_, add_visits_);
    const std::int64_t now_ns = clock_.monotonic().ns;
    const auto events = static_cast<std::int64_t>(batch_->events().size());
    is_idle_ = events * kIdleEventNs < now_ns - last_drain_ns_.exchange(now_ns);
    if (unreported_since_) {
      batch_->drained_before = *std::exchange(unreported_since_, std::nullopt);
    } else if (batch_->is_uneventful() && !stored_.is_awaited()) {
      // Ingest need not be woken for it: the next batch, even an empty one, covers both.
      unreported_since_ = batch_->drained_before;
      spare_ = std::move(batch_);
      return;
    }
  }
  // A refused batch is kept and offered again; until then the rings are not read. That does not count as a drain: if
  // ingest hangs forever, the watchdog must notice.
  if (queues_.full.try_push(std::move(batch_))) batch_ = nullptr;
}

}  // namespace flamed::daemon
