// SPDX-License-Identifier: Apache-2.0
//
// WaitVisitor: visits the host's threads again and again, at the pace of VisitPace, and hands on the records of those
// that wait. The kernel program is loaded when run() begins.
//
// run() is the thread `waits`; the other functions are for any thread. The clock must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "bpf/visits.h"
#include "daemon/sampler/event_batch.h"
#include "daemon/waits/stack_helper.h"
#include "daemon/waits/visit_slices.h"
#include "daemon/waits/wait_program.h"

namespace flamed::daemon {

class WaitVisitor {
 public:
  /// `slices`: for user stacks; null: there are none. `wake_reader` has take() called soon.
  WaitVisitor(const Clock& clock, StackSlices* slices, std::function<void()> wake_reader);

  /// Until `stop` is requested, or the kernel refuses.
  void run(const std::stop_token& stop);

  /// Appends the records of the turns since the last call, and sets `batch.waits_seen`.
  void take(EventBatch& batch);

  struct State {
    std::string problem;        ///< why no threads are visited; empty: they are
    std::size_t threads = 0;    ///< visited in the last round
    std::int64_t round_ns = 0;  ///< how long that took; 0: none has ended yet
    flamed_visit_counts counts{};
    std::uint64_t stack_timeouts = 0;  ///< reads of stacks that did not come to an end
    std::int64_t helper_cpu_ns = 0;
  };
  [[nodiscard]] State state() const;

 private:
  /// True: the turn was the last one of its round.
  Result<bool> make_turn(WaitProgram& program, MonotonicTime until);
  /// Reads the user stacks of turn_.
  void read_stacks();
  /// What this thread and the helper have used since the last call, stacks by their own share.
  std::int64_t take_cost_ns();
  void end_round(MonotonicTime began, MonotonicTime ended);
  /// Nothing can be visited.
  void stay_idle(const std::string& problem, const std::stop_token& stop);

  const Clock& clock_;
  std::optional<VisitSlices> slices_;  ///< empty: no user stacks
  const std::function<void()> wake_reader_;
  StackHelper helper_;
  std::int64_t cpu_ns_ = 0;             ///< of this thread, at the last take_cost_ns()
  std::int64_t stacks_cpu_ns_ = 0;      ///< of reading stacks since then, without the helpers' starts
  std::int64_t own_stacks_cpu_ns_ = 0;  ///< this thread's part of that
  std::uint64_t visited_before_ = 0;    ///< this round
  EventBatch turn_;                     ///< the records of one turn
  mutable std::mutex mutex_;            ///< guards the members below
  EventBatch records_;
  std::optional<MonotonicTime> waits_seen_;
  State state_;
};

}  // namespace flamed::daemon
