// SPDX-License-Identifier: Apache-2.0
#include "daemon/waits/wait_visitor.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <ctime>
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

}  // namespace

WaitVisitor::WaitVisitor(const Clock& clock, StackSlices* slices, std::function<void()> wake_reader)
    : clock_(clock), wake_reader_(std::move(wake_reader)) {
  if (slices != nullptr) slices_.emplace(*slices);
}

void WaitVisitor::run(const std::stop_token& stop) {
  Result<WaitProgram> program = WaitProgram::load();
  if (!program) {
    set_problem(program.error().message());
    spdlog::warn("waiting threads are not visited: {}", program.error().message());
    wait_for_stop(stop);  // its CPU time is read
    return;
  }
  VisitPace pace({.seed = static_cast<std::uint32_t>(clock_.monotonic().ns)}, clock_.monotonic());
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  std::int64_t cpu_ns = read_cpu_clock(CLOCK_THREAD_CPUTIME_ID);
  std::int64_t stacks_before_ns = 0;
  // Only threads that ran since their last visit have a stack read: the more CPUs are busy, the more it may cost.
  const std::int64_t stack_parts = kStackParts * std::max(::sysconf(_SC_NPROCESSORS_ONLN), 1L);
  MonotonicTime round_began = clock_.monotonic();
  std::uint64_t visited_before = 0;
  bool is_round_begun = false;
  while (!stop.stop_requested()) {
    const std::chrono::nanoseconds pause(pace.next().ns - clock_.monotonic().ns);
    if (pause.count() > 0 && stopped.wait_for(lock, stop, pause, [] { return false; })) break;
    if (stop.stop_requested()) break;
    const MonotonicTime now = clock_.monotonic();
    if (!std::exchange(is_round_begun, true)) round_began = now;
    const Result<bool> turn = make_turn(*program, {now.ns + pace.turn_ns(now)});
    if (!turn) {
      set_problem(turn.error().message());
      spdlog::warn("waiting threads are not visited any more: {}", turn.error().message());
      wait_for_stop(stop);
      return;
    }
    const std::int64_t cpu_before_ns = std::exchange(cpu_ns, read_cpu_clock(CLOCK_THREAD_CPUTIME_ID));
    const MonotonicTime ended = clock_.monotonic();
    const std::int64_t stacks_ns = stacks_cpu_ns_ - std::exchange(stacks_before_ns, stacks_cpu_ns_);
    const std::int64_t own_stacks_ns = std::exchange(own_stacks_cpu_ns_, 0);
    pace.ended(ended, cpu_ns - cpu_before_ns - own_stacks_ns + stacks_ns / stack_parts);
    if (!*turn) continue;
    is_round_begun = false;
    const std::lock_guard guard(mutex_);
    waits_seen_ = round_began;
    state_.round_ns = ended.ns - round_began.ns;
    state_.threads = state_.counts.visited - std::exchange(visited_before, state_.counts.visited);
  }
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

void WaitVisitor::set_problem(const std::string& problem) {
  const std::lock_guard guard(mutex_);
  state_.problem = problem;
}

}  // namespace flamed::daemon
