// SPDX-License-Identifier: Apache-2.0
//
// Reader: drains the sampler every two to five seconds, or at once at a notice or a request, and passes each batch to
// ingest.
//
// Lives on the reader thread. Never opens or parses users' files, so they can't block it. When ingest is behind,
// records stay in the kernel's rings, where samples without room are counted with that reason.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>

#include "base/bounded_queue.h"
#include "base/clock.h"
#include "daemon/budget/budget_keeper.h"
#include "daemon/flow/notice_pace.h"
#include "daemon/flow/stored_until.h"
#include "daemon/sampler/event_batch.h"
#include "daemon/sampler/sampler.h"

namespace flamed::daemon {

/// Batches go to ingest through `full` and come back through `empty`, so that their memory is reused.
struct BatchQueues {
  static constexpr std::size_t kBatches = 8;
  BoundedQueue<std::unique_ptr<EventBatch>> full{kBatches};
  BoundedQueue<std::unique_ptr<EventBatch>> empty{kBatches};
};

class Reader {
 public:
  /// `add_visits` appends the records of waiting threads to a batch; empty: there are none.
  Reader(Sampler& sampler, BatchQueues& queues, const Clock& clock, BudgetKeeper& budget, const StoredUntil& stored,
         std::function<void(EventBatch&)> add_visits = {});

  /// Until `stop` is requested; then ends sampling and passes on the remaining samples.
  void run(const std::stop_token& stop);

  /// When the rings were last drained, for the watchdog. Any thread.
  [[nodiscard]] MonotonicTime last_drain() const { return {last_drain_ns_.load()}; }

 private:
  /// The time until the next drain, if nothing wakes the reader earlier.
  [[nodiscard]] int period_ms() const;
  void drain_once();
  /// Waits until ingest takes the batch that its full queue refused.
  void hand_over();

  Sampler& sampler_;
  BatchQueues& queues_;
  const Clock& clock_;
  BudgetKeeper& budget_;
  const StoredUntil& stored_;
  const std::function<void(EventBatch&)> add_visits_;
  NoticePace notices_;
  bool is_idle_ = false;                             ///< hardly anything happened before the last drain
  std::unique_ptr<EventBatch> batch_;                ///< drained but not passed on yet, or empty
  std::unique_ptr<EventBatch> spare_;                ///< to drain into next, or empty
  std::optional<MonotonicTime> unreported_since_{};  ///< nothing happened since then, which ingest does not know yet
  std::atomic<std::int64_t> last_drain_ns_;
};

}  // namespace flamed::daemon
