// SPDX-License-Identifier: Apache-2.0
#include "daemon/flow/off_cpu_intake.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "store/model/measure.h"
#include "store/model/wait_reason.h"

namespace flamed::daemon {
namespace {

/// Between the program and the scheduler there are some five frames.
constexpr std::size_t kMostFramesOfProgram = 12;
/// Kernel functions are few; modules and BPF programs come and go.
constexpr std::size_t kMostAddresses = 16'384;
constexpr std::size_t kStoreBytes = std::size_t{64} << 20;

/// A clock that stands: what is stored is about a time that is over.
class StandingClock final : public Clock {
 public:
  StandingClock(const Clock& clock, MonotonicTime time)
      : now(time),
        wall_offset_ns_(clock.wall_offset_ns()),
        boot_offset_ns_(clock.boottime_ns() - clock.monotonic().ns) {}
  [[nodiscard]] MonotonicTime monotonic() const override { return now; }
  [[nodiscard]] WallTime wall() const override { return {now.ns + wall_offset_ns_}; }
  [[nodiscard]] std::int64_t boottime_ns() const override { return now.ns + boot_offset_ns_; }

  MonotonicTime now;

 private:
  const std::int64_t wall_offset_ns_;
  const std::int64_t boot_offset_ns_;
};

/// A function by which the kernel calls programs at a switch, or the scheduler's own.
bool is_of_switch(std::string_view name) {
  return name.starts_with("bpf_") || name.starts_with("__bpf_") || name.starts_with("__traceiter_sched_switch") ||
         name == "__schedule" || name == "schedule";
}

/// A function by which an interrupt enters the kernel. Not those of softirqs: these also run at the end of a system
/// call, as where a thread sends to a socket of the same machine, and then it was the thread's doing.
bool is_of_interrupt(std::string_view name) {
  constexpr std::array<std::string_view, 6> kEntries{"asm_sysvec_",   "asm_common_interrupt", "asm_exc_nmi",
                                                     "el1_interrupt", "el0_interrupt",        "el1h_64_irq"};
  return std::any_of(kEntries.begin(), kEntries.end(), [&](std::string_view entry) { return name.starts_with(entry); });
}

/// Names who ended a wait, as far as the viewer may know.
class WakerNames {
 public:
  WakerNames(const OffCpuCapture::Outcome& outcome, const std::function<std::string(std::uint64_t)>& name_of)
      : outcome_(outcome) {
    for (const std::vector<std::uint64_t>& stack : outcome.waker_stacks) {
      const auto is_entry = [&](std::uint64_t address) {
        const auto [known, is_new] = is_entry_.try_emplace(address);
        if (is_new) known->second = is_of_interrupt(name_of(address));
        return known->second;
      };
      is_in_interrupt_.push_back(std::any_of(stack.begin(), stack.end(), is_entry));
    }
  }

  /// Empty: it is not known.
  [[nodiscard]] std::optional<Frame> frame_of(const OffCpuTime& wait) {
    const auto waker = outcome_.wakers.find({wait.tid, wait.number});
    if (waker == outcome_.wakers.end()) return std::nullopt;
    const auto [place, is_new] = places_.try_emplace(name_of(waker->second), names_.size());
    if (is_new) names_.push_back(place->first);
    return store::waker_frame(static_cast<std::uint32_t>(place->second));
  }
  [[nodiscard]] std::vector<std::string> take_names() { return std::move(names_); }

 private:
  [[nodiscard]] std::string name_of(const OffCpuCapture::Waker& waker) const {
    const bool is_interrupt = waker.stack < is_in_interrupt_.size() && is_in_interrupt_[waker.stack];
    if (is_interrupt || waker.tid == 0) return "[woken by an interrupt]";
    if (outcome_.only_user && (waker.owner == FLAMED_NO_OWNER || waker.owner != *outcome_.only_user)) {
      return "[woken by another user]";
    }
    const std::string tid = std::to_string(waker.tid);
    return "[woken by " + (waker.comm.empty() ? "thread " + tid : waker.comm + " (" + tid + ")") + "]";
  }

  const OffCpuCapture::Outcome& outcome_;
  std::unordered_map<std::uint64_t, bool> is_entry_;  ///< by address
  std::vector<bool> is_in_interrupt_;                 ///< by stack
  std::map<std::string, std::size_t> places_;         ///< in names_
  std::vector<std::string> names_;
};

}  // namespace

std::span<const std::uint64_t> OffCpuIntake::without_program(std::span<const std::uint64_t> kernel) {
  if (is_program_.size() > kMostAddresses) is_program_.clear();
  std::size_t first = 0;
  for (std::size_t i = 0; i < std::min(kernel.size(), kMostFramesOfProgram); ++i) {
    const auto [known, is_new] = is_program_.try_emplace(kernel[i]);
    if (is_new) known->second = is_of_switch(name_of_(kernel[i]));
    if (known->second) first = i + 1;
  }
  return kernel.subspan(first);
}

void OffCpuIntake::add(const store::StackSample& sample, std::uint64_t number) {
  const std::lock_guard guard(mutex_);
  if (stacks_.size() >= kMostStacks || frame_count_ >= kMostFrames) return;
  const auto [frames, is_new] = frames_.emplace(sample.frames.begin(), sample.frames.end());
  if (is_new) frame_count_ += frames->size();
  Kept kept{sample, std::string(sample.comm)};
  kept.value.frames = *frames;
  stacks_.insert_or_assign({static_cast<std::uint32_t>(sample.tid), number}, std::move(kept));
}

void OffCpuIntake::clear() {
  const std::lock_guard guard(mutex_);
  stacks_.clear();
  frames_.clear();
  frame_count_ = 0;
}

store::Snapshot OffCpuIntake::take_snapshot(const OffCpuCapture::Outcome& outcome,
                                            std::span<const store::ProcessInfo> processes, const Clock& clock,
                                            std::vector<std::string>& wakers) {
  StandingClock then(clock, outcome.began);
  store::Store store({.budget_bytes = kStoreBytes, .exact_budget_bytes = 0}, then, store::kWaitUnitNs);
  store.begin();
  // Each time is told with its stack: nothing stands on.
  store.set_waits_seen(outcome.began);
  for (const store::ProcessInfo& process : processes) store.update_process(process);
  const auto add = [&](store::StackSample sample, std::span<const Frame> frames, std::int64_t ns) {
    if (ns <= 0) return;
    sample.time = outcome.began;
    sample.frames = frames;
    store::WaitSample wait;
    wait.sample = sample;
    wait.waited_ns = ns;
    store.add_wait(wait);
  };
  WakerNames names(outcome, name_of_);
  std::vector<Frame> stack;
  const std::lock_guard guard(mutex_);
  for (const OffCpuTime& time : outcome.times) {
    const auto kept = stacks_.find({time.tid, time.number});
    if (kept != stacks_.end()) {
      store::StackSample sample = kept->second.value;
      sample.comm = kept->second.comm;
      stack.assign(sample.frames.begin(), sample.frames.end());
      if (const std::optional<Frame> waker = names.frame_of(time); waker && !stack.empty())
        stack.insert(stack.end() - 1, *waker);
      add(sample, stack, time.blocked_ns);
      if (!stack.empty()) stack.back() = store::wait_frame(store::WaitReason::kRunQueue);
      add(sample, stack, time.queued_ns);
      continue;
    }
    const auto process = std::find_if(processes.begin(), processes.end(), [&](const store::ProcessInfo& info) {
      return info.id.pid == static_cast<std::int32_t>(time.tgid);
    });
    if (process == processes.end()) continue;
    store::StackSample sample;
    sample.process = process->id;
    sample.tid = static_cast<std::int32_t>(time.tid);
    sample.comm = process->comm;
    sample.owner = process->uid.value_or(store::kNoUser);
    const Frame other = store::wait_frame(store::WaitReason::kOther);
    const Frame queue = store::wait_frame(store::WaitReason::kRunQueue);
    sample.truncation = store::Truncation::kStackNotRead;
    add(sample, {&other, 1}, time.blocked_ns);
    sample.truncation.reset();
    add(sample, {&queue, 1}, time.queued_ns);
  }
  stacks_.clear();
  frames_.clear();
  frame_count_ = 0;
  then.now = outcome.ended;
  wakers = names.take_names();
  return store.snapshot();
}

}  // namespace flamed::daemon
