// SPDX-License-Identifier: Apache-2.0
//
// Reader: drains the sampler every two to five seconds, at once where something is new or somebody asks, and hands each
// batch to ingest.
//
// Lives on the reader thread. Never opens or parses a file of anybody, so nothing there can hold it up. When ingest is
// behind, batches stay in the kernel's rings, where samples that find no room are counted with that reason.
#pragma once

#include <atomic>
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

/// Batches travel to ingest through `full` and come back through `empty`, so that their memory is used again.
struct BatchQueues {
  static constexpr std::size_t kBatches = 8;
  BoundedQueue<std::unique_ptr<EventBatch>> full{kBatches};
  BoundedQueue<std::unique_ptr<EventBatch>> empty{kBatches};
};

class Reader {
 public:
  Reader(Sampler& sampler, BatchQueues& queues, const Clock& clock, BudgetKeeper& budget, const StoredUntil& stored);

  /// Until `stop` is requested; then ends sampling and hands over what was taken until then.
  void run(const std::stop_token& stop);

  /// When the rings were last drained, for the watchdog. Any thread.
  [[nodiscard]] MonotonicTime last_drain() const { return {last_drain_ns_.load()}; }

 private:
  /// How long until the next drain, if nothing comes in between.
  [[nodiscard]] int period_ms() const;
  void drain_once();
  /// Waits until ingest has taken the batch that it refused.
  void hand_over();

  Sampler& sampler_;
  BatchQueues& queues_;
  const Clock& clock_;
  BudgetKeeper& budget_;
  const StoredUntil& stored_;
  NoticePace notices_;
  bool is_idle_ = false;                         ///< next to nothing happened before the last drain
  std::unique_ptr<EventBatch> batch_;            ///< drained but not taken by ingest yet, or empty
  std::unique_ptr<EventBatch> spare_;            ///< to drain into next, or empty
  std::optional<MonotonicTime> untold_since_{};  ///< ingest has not been told yet that nothing happened since
  std::atomic<std::int64_t> last_drain_ns_;
};

}  // namespace flamed::daemon
