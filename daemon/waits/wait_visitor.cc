// SPDX-License-Identifier: Apache-2.0
#include "daemon/waits/wait_visitor.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/thread.h"
#include "base/thread_cpu.h"
#include "daemon/waits/visit_pace.h"

namespace flamed::daemon {
namespace {

/// Records that nobody has taken: then there are no turns. Some 20,000 of them.
constexpr std::size_t kMostBytes = std::size_t{8} << 20;
/// CPU time for visits and stacks: of each CPU, since the more threads run, the more are found in new waits; and at
/// least of one, so that small machines have a round about once a second.
constexpr double kShareOfEachCpu = 0.0002;
constexpr double kLeastShare = 0.0004;
/// So many times that without a CPU budget.
constexpr double kUnlimited = 5;
/// Ingest walks the stack. Its time is not measured for each.
constexpr std::int64_t kWalkNs = 15'000;
constexpr std::size_t kMostAgain = 1024;
constexpr std::size_t kMostStarted = 1024;
/// In a round, the visits of one owner's threads may cost as much as there is in so long, or as passing by all threads
/// if that is more.
constexpr double kOwnerSeconds = 20;
constexpr std::int64_t kPassedNs = 500;
/// Visits may cost so many times what they should (visit_cost_ns()): the first ones after a pause do, on virtual
/// machines.
constexpr double kMostDear = 8;
/// Up to so many threads it does not matter whose they are.
constexpr std::uint64_t kFewThreads = 4096;
/// A stack takes 10 to 200 us, and some waits are over in a millisecond.
constexpr std::uint32_t kStacksAtOnce = 8;

/// Waits for so long, or until `stop` is requested: then it returns true.
bool is_stopped_within(std::chrono::nanoseconds time, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  if (time.count() > 0) stopped.wait_for(lock, stop, time, [] { return false; });
  return stop.stop_requested();
}

}  // namespace

WaitVisitor::WaitVisitor(const Clock& clock, StackSlices* slices, std::function<void()> wake_reader,
                         const Options& options)
    : clock_(clock),
      options_(options),
      wake_reader_(std::move(wake_reader)),
      helper_(clock),
      old_stacks_(clock.monotonic()) {
  if (slices != nullptr) slices_.emplace(*slices);
}

void WaitVisitor::run(const std::stop_token& stop) {
  Result<WaitProgram> program = WaitProgram::load();
  if (!program) {
    spdlog::warn("waiting threads are not visited: {}", program.error().message());
    return stay_idle(program.error().message(), stop);
  }
  const auto cpus = static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN));
  const double share = std::max(kLeastShare, cpus * kShareOfEachCpu);
  VisitPace pace({.share = options_.is_unlimited ? kUnlimited * share : share,
                  .seed = static_cast<std::uint32_t>(clock_.monotonic().ns)},
                 clock_.monotonic());
  least_allowance_ns_ = pace.share() * kOwnerSeconds * kNsPerSecond;
  static_cast<void>(take_cost_ns());
  while (!is_stopped_within(std::chrono::nanoseconds(pace.next().ns - clock_.monotonic().ns), stop)) {
    const MonotonicTime began = clock_.monotonic();
    const Result<bool> turn = make_turn(*program, {began.ns + pace.turn_ns(began)});
    if (!turn) {
      spdlog::warn("waiting threads are not visited any more: {}", turn.error().message());
      return stay_idle(turn.error().message(), stop);
    }
    const MonotonicTime ended = clock_.monotonic();
    const std::int64_t cost_ns = take_cost_ns();
    pace.ended(ended, cost_ns);
    learn_cost(*program, cost_ns);
    if (*turn) end_round(*program, ended);
  }
}

void WaitVisitor::stay_idle(const std::string& problem, const std::stop_token& stop) {
  {
    const std::lock_guard guard(mutex_);
    state_.problem = problem;
  }
  wait_for_stop(stop);  // its CPU time is read
}

std::int64_t WaitVisitor::take_cost_ns() {
  const std::int64_t before_ns = std::exchange(cost_ns_, read_cost_ns());
  return cost_ns_ - before_ns + std::exchange(extra_ns_, 0);
}

void WaitVisitor::learn_cost(const WaitProgram& program, std::int64_t cost_ns) {
  const flamed_visit_counts counts = program.counts();
  const std::uint64_t expected_ns =
      counts.spent_ns - learnt_.spent_ns + (counts.visited - learnt_.visited) * std::uint64_t{kPassedNs};
  learnt_ = counts;
  if (expected_ns == 0) return;
  const double now = std::clamp(static_cast<double>(cost_ns) / static_cast<double>(expected_ns), 1.0, kMostDear);
  dearness_ = (3 * dearness_ + now) / 4;
}

void WaitVisitor::begin_round(MonotonicTime began) {
  round_began_ = began;
  shares_.begin_round(began);
  allowance_ns_ = std::max(static_cast<std::int64_t>(least_allowance_ns_ / dearness_),
                           static_cast<std::int64_t>(state_.threads) * kPassedNs);
}

void WaitVisitor::end_round(WaitProgram& program, MonotonicTime ended) {
  const MonotonicTime began = *std::exchange(round_began_, std::nullopt);
  std::vector<std::uint32_t> large;
  for (const auto& [owner, share] : shares_.large()) large.push_back(owner);
  for (const std::uint32_t owner : large) {
    if (!shares_.end_round(owner, program.share(owner))) program.set_large(owner, false);
  }
  const std::lock_guard guard(mutex_);
  rounds_.push_back(describe_round(began, ended));
  const MonotonicTime before = std::exchange(round_ended_, ended);
  state_.round_ns = ended.ns - (before.ns == 0 ? began.ns : before.ns);
  state_.threads = state_.counts.visited - std::exchange(visited_before_, state_.counts.visited);
  const std::uint64_t left_out = state_.counts.left_out - std::exchange(left_out_before_, state_.counts.left_out);
  threads_ = {{began.ns + (ended.ns - began.ns) / 2}, state_.threads - std::min<std::size_t>(left_out, state_.threads)};
  state_.stacks_to_read = state_.counts.later - std::exchange(later_before_, state_.counts.later);
  state_.large_owners = shares_.large().size();
  if (state_.large_owners == 0) state_.list_round_ns = list_ended_.ns = 0;
}

EventBatch::Round WaitVisitor::describe_round(MonotonicTime began, MonotonicTime ended) const {
  EventBatch::Round round{began, ended, {}};
  for (const auto& [owner, share] : shares_.large()) round.late.emplace_back(owner, std::min(share.seen, began));
  return round;
}

std::int64_t WaitVisitor::read_cost_ns() const {
  return read_cpu_clock(CLOCK_THREAD_CPUTIME_ID) + helper_.cpu_ns() - helper_.start_cpu_ns();
}

Result<bool> WaitVisitor::make_turn(WaitProgram& program, MonotonicTime until) {
  std::vector<std::uint32_t> again;
  std::vector<std::uint32_t> started;
  {
    const std::lock_guard guard(mutex_);
    if (records_.bytes() > kMostBytes) return false;
    again.swap(again_);
    started.swap(started_);
  }
  for (const std::uint32_t tid : again) program.read_again(tid);
  for (const std::uint32_t tid : started) shares_.started(tid);
  const MonotonicTime now = clock_.monotonic();
  if (!round_began_) begin_round(now);
  if (!shares_.large().empty() && program.can_visit_list()) {
    const double share = shares_.share_of_list();
    const Status visited =
        visit_list(program, {now.ns + static_cast<std::int64_t>(share * static_cast<double>(until.ns - now.ns))});
    if (!visited) return visited.error();
  }
  do {
    const Result<WaitProgram::Turn> turn = visit_some(program, until, false);
    if (!turn) return turn.error();
    if (*turn == WaitProgram::Turn::kEnded) return true;
  } while (clock_.monotonic().ns < until.ns);
  return false;
}

Status WaitVisitor::visit_list(WaitProgram& program, MonotonicTime until) {
  if (list_.empty()) {
    list_ = shares_.tids();
    list_began_ = clock_.monotonic();
    if (list_.empty()) return {};
    program.set_list(list_);
  }
  const flamed_visit_counts before = program.counts();
  bool has_ended = false;
  do {
    const Result<WaitProgram::Turn> turn = visit_some(program, until, true);
    if (!turn) return turn.error();
    has_ended = *turn == WaitProgram::Turn::kEnded;
  } while (!has_ended && clock_.monotonic().ns < until.ns);
  // The figures of a round are of the one over all threads.
  visited_before_ += program.counts().visited - before.visited;
  later_before_ += program.counts().later - before.later;
  if (has_ended) end_list(program, clock_.monotonic());
  return {};
}

void WaitVisitor::end_list(WaitProgram& program, MonotonicTime ended) {
  const std::span<const flamed_listed_thread> list = program.list();
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i].tid == 0) shares_.gone(list_[i]);
  }
  list_.clear();
  const MonotonicTime before = std::exchange(list_ended_, ended);
  const std::lock_guard guard(mutex_);
  rounds_.push_back(describe_round(list_began_, ended));
  state_.list_round_ns = ended.ns - (before.ns == 0 ? list_began_ : before).ns;
}

Result<WaitProgram::Turn> WaitVisitor::visit_some(WaitProgram& program, MonotonicTime until, bool of_list) {
  const MonotonicTime now = clock_.monotonic();
  WaitProgram::Limits limits{.longest_ns = until.ns - now.ns,
                             .without_own = true,
                             .allowance_ns = allowance_ns_,
                             .counts_owners = program.counts().visited - visited_before_ > kFewThreads};
  if (slices_) {
    limits.new_stacks = kStacksAtOnce;
    limits.old_stacks = old_stacks_.count(now);
  }
  Result<WaitProgram::Turn> turn = of_list ? program.turn_of_list(limits) : program.turn(limits);
  if (!turn) return turn;
  turn_.clear();
  program.records().look();
  program.records().drain([&](std::span<const std::byte> record) {
    const RecordHead head = read_head(record);
    if (head.kind != RecordKind::kVisit) return;
    turn_.append(head);
    const std::optional<VisitRecord> visit = parse_visit(head.body);
    if (!visit) return;
    const flamed_sample& sample = *visit->sample.header;
    if (const std::optional<std::uint32_t> large = shares_.visited(sample.tid, sample.owner))
      program.set_large(*large, true);
  });
  for (const std::uint32_t owner : program.new_large()) {
    if (shares_.make_large(owner)) program.set_large(owner, true);
  }
  if (slices_) {
    extra_ns_ += static_cast<std::int64_t>(read_stacks(program, FLAMED_STACK_WANTED)) * kWalkNs;
    const std::int64_t before_ns = read_cost_ns();
    if (const auto old = static_cast<std::int64_t>(read_stacks(program, FLAMED_STACK_DUE)); old != 0) {
      const std::int64_t cost_ns = read_cost_ns() - before_ns;
      extra_ns_ -= cost_ns;  // by a share of its own
      old_stacks_.spend(old, cost_ns + old * kWalkNs);
    }
  }
  {
    const std::lock_guard guard(mutex_);
    for (const EventBatch::Event& event : turn_.events()) {
      records_.append({event.kind, false, event.time, turn_.body(event), event.cpu});
    }
    state_.counts = program.counts();
    state_.large_owners = shares_.large().size();
    state_.stack_timeouts = helper_.timeouts();
    state_.helper_cpu_ns = helper_.cpu_ns();
  }
  if (slices_ && slices_->is_filling()) wake_reader_();
  return turn;
}

std::size_t WaitVisitor::read_stacks(WaitProgram& program, flamed_wait_stack wanted) {
  std::vector<StackRequest> requests;
  std::vector<std::size_t> events;  // by request
  std::size_t count = 0;
  for (std::size_t i = 0; i < turn_.events().size(); ++i) {
    const std::optional<VisitRecord> visit = parse_visit(turn_.body(turn_.events()[i]));
    if (!visit || visit->wait->stack != wanted || (visit->wait->known & FLAMED_KNOWS_REGISTERS) == 0) continue;
    const flamed_sample& sample = *visit->sample.header;
    const StackRequest request{static_cast<std::int32_t>(sample.tgid),
                               static_cast<std::int32_t>(sample.tid),
                               sample.owner,
                               0,
                               sample.start_boottime_ns,
                               VisitSlices::start_of(visit->wait->registers[FLAMED_SP_REGISTER]),
                               visit->wait->runs,
                               futex_wait_of(*visit->wait)};
    if (helper_.is_refused(request)) {
      turn_.set_stack(i, FLAMED_STACK_LATE);
      continue;
    }
    ++count;
    requests.push_back(request);
    events.push_back(i);
    if (requests.size() < StackHelper::kMost) continue;
    ask(program, requests, events);
    requests.clear();
    events.clear();
  }
  if (!requests.empty()) ask(program, requests, events);
  return count;
}

void WaitVisitor::ask(WaitProgram& program, std::span<const StackRequest> requests,
                      std::span<const std::size_t> events) {
  helper_.read(requests, [&](std::size_t i, const StackAnswer& answer, std::span<const std::byte> stack) {
    std::uint32_t outcome = answer.outcome;
    if (outcome == FLAMED_STACK_READ) {
      const VisitRecord visit = *parse_visit(turn_.body(turn_.events()[events[i]]));
      const std::optional<VisitSlices::Place> place = slices_->put(*visit.wait, stack);
      if (place)
        turn_.set_slice(events[i], place->ring, place->place, place->blocks);
      else
        outcome = FLAMED_STACK_LATE;
    }
    turn_.set_stack(events[i], outcome);
    if (answer.holder.tid != 0) turn_.set_holder(events[i], answer.holder.tid, answer.holder.comm);
    if (outcome == FLAMED_STACK_LATE) program.read_again(static_cast<std::uint32_t>(requests[i].tid));
  });
}

void WaitVisitor::take(EventBatch& batch) {
  const std::lock_guard guard(mutex_);
  for (const EventBatch::Event& event : records_.events()) {
    batch.append({event.kind, false, event.time, records_.body(event), event.cpu});
  }
  records_.clear();
  batch.rounds = std::exchange(rounds_, {});
  batch.threads = std::exchange(threads_, std::nullopt);
}

void WaitVisitor::started(std::int32_t tid) {
  const std::lock_guard guard(mutex_);
  if (state_.large_owners != 0 && started_.size() < kMostStarted) started_.push_back(static_cast<std::uint32_t>(tid));
}

void WaitVisitor::read_again(std::int32_t tid) {
  const std::lock_guard guard(mutex_);
  if (again_.size() < kMostAgain) again_.push_back(static_cast<std::uint32_t>(tid));
}

WaitVisitor::State WaitVisitor::state() const {
  const std::lock_guard guard(mutex_);
  return state_;
}

}  // namespace flamed::daemon
