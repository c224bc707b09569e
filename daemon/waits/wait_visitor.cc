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
/// Reading stacks may take so many times the pace's share, for each CPU.
constexpr std::int64_t kStackParts = 2;

/// Waits for so long, or until `stop` is requested: then it returns true.
bool is_stopped_within(std::chrono::nanoseconds time, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  if (time.count() > 0) stopped.wait_for(lock, stop, time, [] { return false; });
  return stop.stop_requested();
}

}  // namespace

WaitVisitor::WaitVisitor(const Clock& clock, StackSlices* slices, std::function<void()> wake_reader)
    : clock_(clock), wake_reader_(std::move(wake_reader)) {
  if (slices != nullptr) slices_.emplace(*slices);
}

void WaitVisitor::run(const std::stop_token& stop) {
  Result<WaitProgram> program = WaitProgram::load();
  if (!program) {
    spdlog::warn("waiting threads are not visited: {}", program.error().message());
    return stay_idle(program.error().message(), stop);
  }
  VisitPace pace({.seed = static_cast<std::uint32_t>(clock_.monotonic().ns)}, clock_.monotonic());
  static_cast<void>(take_cost_ns());
  std::optional<MonotonicTime> round_began;
  while (!is_stopped_within(std::chrono::nanoseconds(pace.next().ns - clock_.monotonic().ns), stop)) {
    const MonotonicTime began = clock_.monotonic();
    if (!round_began) round_began = began;
    const Result<bool> turn = make_turn(*program, {began.ns + pace.turn_ns(began)});
    if (!turn) {
      spdlog::warn("waiting threads are not visited any more: {}", turn.error().message());
      return stay_idle(turn.error().message(), stop);
    }
    const MonotonicTime ended = clock_.monotonic();
    pace.ended(ended, take_cost_ns());
    if (*turn) end_round(*std::exchange(round_began, std::nullopt), ended);
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
  // Only threads that ran since their last visit have a stack read: the more CPUs are busy, the more it may cost.
  const std::int64_t stack_parts = kStackParts * std::max(::sysconf(_SC_NPROCESSORS_ONLN), 1L);
  const std::int64_t cpu_before_ns = std::exchange(cpu_ns_, read_cpu_clock(CLOCK_THREAD_CPUTIME_ID));
  const std::int64_t visits_ns = cpu_ns_ - cpu_before_ns - std::exchange(own_stacks_cpu_ns_, 0);
  return visits_ns + std::exchange(stacks_cpu_ns_, 0) / stack_parts;
}

void WaitVisitor::end_round(MonotonicTime began, MonotonicTime ended) {
  const std::lock_guard guard(mutex_);
  waits_seen_ = began;
  state_.round_ns = ended.ns - began.ns;
  state_.threads = state_.counts.visited - std::exchange(visited_before_, state_.counts.visited);
}

Result<bool> WaitVisitor::make_turn(WaitProgram& program, MonotonicTime until) {
  {
    const std::lock_guard guard(mutex_);
    if (records_.bytes() > kMostBytes) return false;
  }
  const Result<WaitProgram::Turn> turn = program.turn(until);
  if (!turn) return turn.error();
  turn_.clear();
  program.records().look();
  program.records().drain([&](std::span<const std::byte> record) {
    const RecordHead head = read_head(record);
    if (head.kind == RecordKind::kVisit) turn_.append(head);
  });
  if (slices_) {
    const std::int64_t own_before_ns = read_cpu_clock(CLOCK_THREAD_CPUTIME_ID);
    const std::int64_t helper_before_ns = helper_.cpu_ns() - helper_.start_cpu_ns();
    read_stacks();
    own_stacks_cpu_ns_ = read_cpu_clock(CLOCK_THREAD_CPUTIME_ID) - own_before_ns;
    stacks_cpu_ns_ += own_stacks_cpu_ns_ + helper_.cpu_ns() - helper_.start_cpu_ns() - helper_before_ns;
  }
  {
    const std::lock_guard guard(mutex_);
    for (const EventBatch::Event& event : turn_.events()) {
      records_.append({event.kind, false, event.time, turn_.body(event), event.cpu});
    }
    state_.counts = program.counts();
    state_.stack_timeouts = helper_.timeouts();
    state_.helper_cpu_ns = helper_.cpu_ns();
  }
  if (slices_ && slices_->is_filling()) wake_reader_();
  return *turn == WaitProgram::Turn::kEnded;
}

void WaitVisitor::read_stacks() {
  std::vector<StackRequest> requests;
  std::vector<std::size_t> of;  // by request: the event
  const auto ask = [&] {
    helper_.read(requests, [&](std::size_t i, std::span<const std::byte> stack) {
      const VisitRecord visit = *parse_visit(turn_.body(turn_.events()[of[i]]));
      const std::optional<VisitSlices::Place> place = slices_->put(*visit.wait, stack);
      if (place) turn_.set_slice(of[i], place->ring, place->place, place->blocks);
    });
    requests.clear();
    of.clear();
  };
  for (std::size_t i = 0; i < turn_.events().size(); ++i) {
    const std::optional<VisitRecord> visit = parse_visit(turn_.body(turn_.events()[i]));
    if (!visit || (visit->wait->known & FLAMED_KNOWS_REGISTERS) == 0) continue;
    const flamed_sample& sample = *visit->sample.header;
    const StackRequest request{static_cast<std::int32_t>(sample.tgid),
                               static_cast<std::int32_t>(sample.tid),
                               sample.owner,
                               0,
                               VisitSlices::start_of(visit->wait->registers[FLAMED_SP_REGISTER]),
                               visit->wait->runs};
    if (helper_.is_refused(request)) continue;
    requests.push_back(request);
    of.push_back(i);
    if (requests.size() == StackHelper::kMost) ask();
  }
  if (!requests.empty()) ask();
}

void WaitVisitor::take(EventBatch& batch) {
  const std::lock_guard guard(mutex_);
  for (const EventBatch::Event& event : records_.events()) {
    batch.append({event.kind, false, event.time, records_.body(event), event.cpu});
  }
  records_.clear();
  batch.waits_seen = std::exchange(waits_seen_, std::nullopt);
}

WaitVisitor::State WaitVisitor::state() const {
  const std::lock_guard guard(mutex_);
  return state_;
}

}  // namespace flamed::daemon
