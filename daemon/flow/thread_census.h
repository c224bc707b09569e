// SPDX-License-Identifier: Apache-2.0
//
// ThreadCensus: for how long the threads of programs existed, all together, so that the stored waits can be compared
// with it. Two countings that know nothing of each other: notices of threads that start and end say by how much their
// number changes, at once; each round of visits counts them. The number follows the notices and begins anew at each
// round. By how much the two differed there, for the time since the round before, is how much the sum may be wrong.
//
// The ingest thread writes; readers on any thread work on copies.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>

#include "api/sources.h"
#include "base/clock.h"
#include "daemon/sampler/event_batch.h"
#include "store/model/selection.h"

namespace flamed::daemon {

class ThreadCensus {
 public:
  using ThreadCount = EventBatch::ThreadCount;

  ThreadCensus(const Clock& clock, std::int64_t retention_ns)
      : clock_(clock), retention_ns_(retention_ns), offset_ns_(clock.wall_offset_ns()) {}

  // -- Writer. Times never go back, except that of counted() ---------------------------------------------------------

  void started(MonotonicTime time) { change(time, 1); }
  void ended(MonotonicTime time) { change(time, -1); }
  /// Notices up to that time may still come.
  void counted(const ThreadCount& count) { pending_ = count; }
  /// All notices before this time have come.
  void advance(MonotonicTime time);

  // -- Readers: any thread -------------------------------------------------------------------------------------------

  [[nodiscard]] api::ThreadTime in(const store::WallWindow& window) const;

 private:
  /// Of a minute of the wall clock.
  struct Minute {
    store::WallWindow known;  ///< the part of which the number was known
    double existed_ns = 0;
    double error_ns = 0;
  };

  void change(MonotonicTime time, std::int64_t by);
  void settle_count(MonotonicTime until);
  void pass(MonotonicTime until);
  Minute& minute_of(WallTime time);

  const Clock& clock_;
  const std::int64_t retention_ns_;
  std::int64_t offset_ns_;               ///< of the wall clock, at the last advance()
  std::optional<std::int64_t> threads_;  ///< empty: no round has ended yet
  MonotonicTime until_;                  ///< the sum is known until then
  MonotonicTime counted_;                ///< the last round
  std::optional<ThreadCount> pending_;

  mutable std::mutex mutex_;    ///< guards minutes_
  std::deque<Minute> minutes_;  ///< oldest first
};

}  // namespace flamed::daemon
