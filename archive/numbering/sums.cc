// SPDX-License-Identifier: Apache-2.0
#include "archive/numbering/sums.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "archive/codec/stretch.h"
#include "store/index/stack_states.h"
#include "store/model/process_info.h"
#include "store/ring/snapshot_data.h"

namespace flamed::archive {
namespace {

/// A short process began and ended within ten minutes, and had less than a hundredth of their samples, or few.
constexpr std::uint64_t kShare = 100;
constexpr std::uint64_t kFewSamples = 100;
/// No function's.
constexpr std::uint64_t kKernelAddress = std::uint64_t{1} << 47;
/// Of those that stand for several.
constexpr const char* kSeveral = "(short-lived processes)";

bool is_same(const ProcessState& a, const ProcessState& b) {
  const store::ProcessInfo& x = a.info;
  const store::ProcessInfo& y = b.info;
  return a.owner == b.owner && a.is_hidden == b.is_hidden && x.comm == y.comm && x.executable == y.executable &&
         x.cgroup_id == y.cgroup_id && x.started == y.started && x.ended == y.ended && x.parent_pid == y.parent_pid &&
         x.parent_start_ticks == y.parent_start_ticks && x.uid == y.uid && x.command_line == y.command_line &&
         x.cgroup == y.cgroup && x.unit == y.unit && x.container == y.container;
}

}  // namespace

void Sums::Dictionary::add(const Additions& additions) {
  for (const FrameAddition& frame : additions.frames) {
    const bool is_mark = frame.module == kTruncatedModule.value;
    const bool is_kernel = frame.module == kKernelModule.value;
    // That mark is for missing kernel frames.
    const bool is_kernel_mark =
        is_mark && frame.offset == static_cast<std::uint64_t>(store::Truncation::kKernelDepthLimit);
    frames_.push_back(
        {!is_kernel && !is_kernel_mark, is_kernel, false, is_mark ? static_cast<std::uint32_t>(frame.offset) + 1 : 0});
  }
  for (const StackAddition& stack : additions.stacks) {
    Kind kind = stacks_[stack.caller];
    const Kind& frame = frames_[stack.frame];
    kind.has_user = kind.has_user || frame.has_user;
    kind.has_kernel = kind.has_kernel || frame.has_kernel;
    if (kind.ended == 0) kind.ended = frame.ended;
    stacks_.push_back(kind);
  }
  for (const ThreadAddition& thread : additions.threads) {
    threads_.push_back({thread.process, thread.owner, thread.is_hidden});
  }
  for (const ProcessState& state : additions.processes) {
    if (state.number == processes_.size()) processes_.emplace_back();
    processes_[state.number] = state;
  }
}

std::uint32_t Sums::Numbers::process(ProcessState state) {
  const auto [place, is_new] = processes_.try_emplace(state.info.id);
  Known& known = place->second;
  if (is_new) known.number = size_.processes++;
  state.number = known.number;
  if (is_new || !is_same(known.state, state)) {
    known.state = state;
    additions_.processes.push_back(std::move(state));
  }
  return known.number;
}

std::uint32_t Sums::Numbers::thread(std::uint32_t process, Owner owner) {
  const auto [place, is_new] = threads_.try_emplace({process, owner}, size_.threads);
  if (is_new) {
    ++size_.threads;
    additions_.threads.push_back({process, 0, "", owner.user, owner.is_hidden});
  }
  return place->second;
}

std::uint32_t Sums::Numbers::frame(std::uint32_t module, std::uint64_t offset) {
  const auto [place, is_new] = frames_.try_emplace({module, offset}, size_.frames);
  if (is_new) {
    ++size_.frames;
    additions_.frames.push_back({module, offset});
  }
  return place->second;
}

std::uint32_t Sums::Numbers::stack_on(std::uint32_t caller, std::uint32_t module, std::uint64_t offset) {
  additions_.stacks.push_back({caller, frame(module, offset)});
  return size_.stacks++;
}

/// The shortest stack of that kind, as store::StackStates tells them apart.
std::uint32_t Sums::Numbers::stack(const Kind& kind) {
  const auto [place, is_new] = stacks_.try_emplace(kind, 0);
  if (!is_new) return place->second;
  std::uint32_t stack = 0;
  if (kind.ended != 0) stack = stack_on(stack, kTruncatedModule.value, kind.ended - 1);
  if (kind.has_user) {
    if (size_.modules == 0) {
      additions_.modules.push_back({});
      ++size_.modules;
    }
    stack = stack_on(stack, kFirstFreeModule.value, 0);
  }
  if (kind.has_kernel) stack = stack_on(stack, kKernelModule.value, kKernelAddress);
  place->second = stack;
  return stack;
}

void Sums::Numbers::add(std::uint32_t process, const Counts& counts, std::vector<Pair>& pairs) {
  for (const auto& [of, samples] : counts) {
    const auto& [owner, kind] = of;
    constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
    pairs.push_back(
        {thread(process, owner), stack(kind), kind.is_cut, static_cast<std::uint32_t>(std::min(samples, kMost))});
  }
}

Additions Sums::Numbers::take() {
  Additions taken = std::exchange(additions_, {});
  additions_.before = size_;
  return taken;
}

bool Sums::takes(const Minute& minute) const { return !sum_ || goes_on(*sum_, minute); }

void Sums::begin(const Minute& minute, const std::vector<store::Gap>& gaps) {
  if (!sum_) {
    sum_ = minute;
    sum_->pairs.clear();
    first_ = minute.sequence;
  } else {
    extend(*sum_, minute);
  }
  gaps_.insert(gaps_.end(), gaps.begin(), gaps.end());
}

void Sums::add(const Minute& minute, const Dictionary& dictionary, const std::vector<store::Gap>& gaps) {
  begin(minute, gaps);
  const Dictionary::Thread* last = nullptr;
  Process* process = nullptr;
  for (const Pair& pair : minute.pairs) {
    const Dictionary::Thread& thread = dictionary.threads_[pair.thread];
    if (&thread != last) {
      const ProcessState& state = dictionary.processes_[thread.process];
      process = &processes_[state.info.id];
      process->state = state;
      last = &thread;
    }
    Kind kind = dictionary.stacks_[pair.stack];
    kind.is_cut = pair.is_cut;
    if (kind.is_cut) kind.ended = 0;
    process->counts[{{thread.owner, thread.is_hidden}, kind}] += pair.count;
    process->samples += pair.count;
  }
}

void Sums::add(const store::Snapshot& snapshot, const store::Slot& slot, const Minute& minute,
               const std::vector<store::Gap>& gaps) {
  begin(minute, gaps);
  const store::SnapshotData& data = snapshot.data();
  std::uint32_t last_process = std::numeric_limits<std::uint32_t>::max();
  store::StackStates states(data);
  slot.histogram.for_each_thread([&](std::uint32_t thread, std::span<const std::uint8_t> bytes) {
    const store::ThreadRecord& row = data.threads[thread];
    const store::ProcessRecord& record = data.processes[row.process];
    Process& process = processes_[record.id];
    if (row.process != last_process) {
      process.state = {0, record.info(), record.owner, record.is_hidden};
      process.state.info.uid.reset();
      if (record.uid != store::kNoUser) process.state.info.uid = record.uid;
      last_process = row.process;
    }
    const Owner owner{row.owner, row.is_hidden != 0};
    std::optional<Kind> last;  // most have the same
    std::uint64_t* count = nullptr;
    store::Histogram::for_each_stack(bytes, [&](store::StackRef ref, std::uint64_t samples) {
      const store::StackState state = states.of(ref.stack);
      Kind kind{state.has_user(), state.has_kernel(), ref.cut};
      // How a cut stack ended is known from its being cut.
      if (const auto reason = state.truncation(); reason && !ref.cut) {
        kind.ended = static_cast<std::uint32_t>(*reason) + 1;
      }
      if (kind != last) count = &process.counts[{owner, kind}];
      last = kind;
      *count += samples;
      process.samples += samples;
    });
  });
}

bool Sums::is_short(const ProcessId& id, const Process& process, std::uint64_t all) const {
  return process.state.info.ended && !numbers_.knows(id) && process.samples < std::max(all / kShare, kFewSamples);
}

ProcessId Sums::several(const Program& program) {
  return several_.try_emplace(program, ProcessId{0, several_.size() + 1}).first->second;
}

std::optional<Sum> Sums::finish() {
  if (!sum_) return std::nullopt;
  Sum sum;
  sum.first = first_;
  sum.minute = *std::exchange(sum_, std::nullopt);
  std::uint64_t all = 0;
  for (const auto& [id, process] : processes_) all += process.samples;
  std::map<ProcessId, std::pair<ProcessState, Counts>> together;
  Numbers short_numbers;
  std::vector<Pair> short_pairs;
  for (const auto& [id, process] : processes_) {
    const store::ProcessInfo& info = process.state.info;
    if (!is_short(id, process, all)) {
      numbers_.add(numbers_.process(process.state), process.counts, sum.minute.pairs);
      continue;
    }
    short_numbers.add(short_numbers.process(process.state), process.counts, short_pairs);
    const ProcessId several = this->several({info.comm, info.executable, info.cgroup, process.state.owner,
                                             info.uid.value_or(store::kNoUser), process.state.is_hidden});
    auto& [state, counts] = together[several];
    for (const auto& [of, samples] : process.counts) counts[of] += samples;
    state.owner = process.state.owner;
    state.is_hidden = process.state.is_hidden;
    state.info.id = several;
    state.info.comm = info.comm;
    state.info.executable = info.executable;
    state.info.uid = info.uid;
    state.info.cgroup = info.cgroup;
    state.info.cgroup_id = info.cgroup_id;
    state.info.unit = info.unit;
    state.info.container = info.container;
    state.info.command_line = kSeveral;
  }
  for (const auto& [id, of] : together) {
    const auto& [state, counts] = of;
    numbers_.add(numbers_.process(state), counts, sum.minute.pairs);
  }
  processes_.clear();
  sort_pairs(sum.minute.pairs);
  sum.additions = numbers_.take();
  sum.additions.gaps = std::exchange(gaps_, {});
  if (!short_pairs.empty()) {
    sum.short_processes.emplace();
    sum.short_processes->minute = sum.minute;
    sum.short_processes->minute.pairs = std::move(short_pairs);
    sort_pairs(sum.short_processes->minute.pairs);
    sum.short_processes->additions = short_numbers.take();
  }
  return sum;
}

}  // namespace flamed::archive
