// SPDX-License-Identifier: Apache-2.0
//
// WaitVisitor: visits the host's threads again and again, at the pace of VisitPace, and hands on the records of those
// that wait. The kernel program is loaded when run() begins. Where an owner's visits take long, those of all others'
// threads are made in rounds of their own, which have most of the time (VisitShares).
//
// run() is the thread `waits`; the other functions are for any thread. The clock must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "bpf/visits.h"
#include "daemon/sampler/event_batch.h"
#include "daemon/waits/old_stack_pace.h"
#include "daemon/waits/stack_helper.h"
#include "daemon/waits/visit_shares.h"
#include "daemon/waits/visit_slices.h"
#include "daemon/waits/wait_program.h"

namespace flamed::daemon {

class WaitVisitor {
 public:
  struct Options {
    bool is_unlimited = false;  ///< without a CPU budget it takes more, and visits more often
  };
  /// `slices`: for user stacks; null: there are none. `wake_reader` has take() called soon.
  WaitVisitor(const Clock& clock, StackSlices* slices, std::function<void()> wake_reader, const Options& options);

  /// Until `stop` is requested, or the kernel refuses.
  void run(const std::stop_token& stop);

  /// Appends the records of the turns since the last call, and sets `batch.rounds` and `threads`.
  void take(EventBatch& batch);

  /// A thread has begun.
  void started(std::int32_t tid);
  /// The stack of a thread's wait could not be walked for lack of rows: it is read again when there is time.
  void read_again(std::int32_t tid);

  struct State {
    std::string problem;             ///< why no threads are visited; empty: they are
    std::size_t threads = 0;         ///< visited in the last round
    std::size_t stacks_to_read = 0;  ///< of these
    std::int64_t round_ns = 0;       ///< from the end of the round before to its end; 0: none has ended yet
    std::size_t large_owners = 0;    ///< see VisitShares
    std::int64_t list_round_ns = 0;  ///< as round_ns, over all other threads; 0: only rounds over all
    flamed_visit_counts counts{};
    std::uint64_t stack_timeouts = 0;  ///< reads of stacks that did not come to an end
    std::int64_t helper_cpu_ns = 0;
  };
  [[nodiscard]] State state() const;

 private:
  /// Visits threads until `until`, and reads the stacks of some at a time, so that most are still in their waits. True:
  /// the turn was the last one of its round.
  Result<bool> make_turn(WaitProgram& program, MonotonicTime until);
  /// Visits threads of all but large owners, until then at most.
  Status visit_list(WaitProgram& program, MonotonicTime until);
  Result<WaitProgram::Turn> visit_some(WaitProgram& program, MonotonicTime until, bool of_list);
  /// Reads the user stacks of turn_ that are wanted so, and returns their number.
  std::size_t read_stacks(WaitProgram& program, flamed_wait_stack wanted);
  void ask(WaitProgram& program, std::span<const StackRequest> requests, std::span<const std::size_t> events);
  /// CPU time of this thread and the helper, without the helper's starts.
  [[nodiscard]] std::int64_t read_cost_ns() const;
  /// What visits and stacks have cost since the last call, without those of threads that have waited for long.
  std::int64_t take_cost_ns();
  void learn_cost(const WaitProgram& program, std::int64_t cost_ns);
  void begin_round(MonotonicTime began);
  void end_round(WaitProgram& program, MonotonicTime ended);
  void end_list(WaitProgram& program, MonotonicTime ended);
  [[nodiscard]] EventBatch::Round describe_round(MonotonicTime began, MonotonicTime ended) const;
  /// Nothing can be visited.
  void stay_idle(const std::string& problem, const std::stop_token& stop);

  const Clock& clock_;
  const Options options_;
  std::optional<VisitSlices> slices_;  ///< empty: no user stacks
  const std::function<void()> wake_reader_;
  StackHelper helper_;
  std::int64_t cost_ns_ = 0;   ///< read_cost_ns() at the last take_cost_ns()
  std::int64_t extra_ns_ = 0;  ///< since then: what ingest needs for the stacks, without what old ones took
  OldStackPace old_stacks_;
  VisitShares shares_;
  double least_allowance_ns_ = 0;  ///< of CPU time, of each owner in a round
  std::int64_t allowance_ns_ = 0;  ///< in this one, as the program counts it
  double dearness_ = 1;            ///< so many times as dear as it counts are visits
  flamed_visit_counts learnt_{};   ///< at the last learn_cost()
  std::optional<MonotonicTime> round_began_;
  std::vector<std::uint32_t> list_;  ///< of the program; empty: no round over a list has begun
  MonotonicTime list_began_{};
  MonotonicTime list_ended_{};         ///< the one before; 0: there was none
  MonotonicTime round_ended_{};        ///< the round before this one; 0: there is none
  std::uint64_t visited_before_ = 0;   ///< this round
  std::uint64_t later_before_ = 0;     ///< likewise
  std::uint64_t left_out_before_ = 0;  ///< likewise
  EventBatch turn_;                    ///< the records of one turn
  mutable std::mutex mutex_;           ///< guards the members below
  EventBatch records_;
  std::vector<EventBatch::Round> rounds_;
  std::optional<EventBatch::ThreadCount> threads_;
  std::vector<std::uint32_t> again_;    ///< tids, see read_again()
  std::vector<std::uint32_t> started_;  ///< likewise; none without large owners
  State state_;
};

}  // namespace flamed::daemon
