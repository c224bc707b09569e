// SPDX-License-Identifier: Apache-2.0
#include "archive/reading/renumbering.h"

#include <algorithm>
#include <utility>

#include "base/identity.h"

namespace flamed::archive {

void Renumbering::know(ProcessState state, std::int64_t minute) {
  later_state_bytes_ += sizeof(ProcessState) + text_bytes_of(state);
  if (later_state_bytes_ > kMostStateBytes) return;
  const ProcessId id = state.info.id;
  later_states_.insert_or_assign(id, LaterState{minute, std::move(state)});
}

void Renumbering::add(const Additions& additions, std::int64_t minute) {
  modules_.insert(modules_.end(), additions.modules.begin(), additions.modules.end());
  frames_.insert(frames_.end(), additions.frames.begin(), additions.frames.end());
  stacks_.insert(stacks_.end(), additions.stacks.begin(), additions.stacks.end());
  threads_.insert(threads_.end(), additions.threads.begin(), additions.threads.end());
  gaps_.insert(gaps_.end(), additions.gaps.begin(), additions.gaps.end());
  for (const ProcessState& added : additions.processes) {
    const auto later = later_states_.find(added.info.id);
    const bool is_known = later != later_states_.end() && later->second.minute >= minute;
    ProcessState state = is_known ? later->second.state : added;
    state.number = added.number;
    if (state.number < processes_.size()) {
      processes_[state.number] = state;
      if (!is_known && process_numbers_[state.number] != 0) changed_.push_back(state.number);
    } else {
      processes_.push_back(state);
      process_numbers_.push_back(0);
    }
    process_of_.insert_or_assign(state.info.id, state.number);
  }
  module_numbers_.resize(modules_.size());
  frame_numbers_.resize(frames_.size());
  stack_numbers_.resize(stacks_.size());
  thread_numbers_.resize(threads_.size());
  known_.add(additions);
}

Renumbering::Renumbered Renumbering::take(Minute minute, std::optional<std::vector<Sample>> samples) {
  next_ = {};
  next_.additions.before = size_;
  std::sort(changed_.begin(), changed_.end());
  changed_.erase(std::unique(changed_.begin(), changed_.end()), changed_.end());
  for (const std::uint32_t process : std::exchange(changed_, {})) {
    next_.additions.processes.push_back(processes_[process]);
    next_.additions.processes.back().number = process_numbers_[process] - 1;
  }
  for (Pair& pair : minute.pairs) {
    pair.thread = thread_number(pair.thread);
    pair.stack = stack_number(pair.stack);
  }
  const std::vector<std::uint32_t> places = sort_pairs(minute.pairs);
  if (samples) {
    for (Sample& sample : *samples) sample.pair = places[sample.pair];
  }
  merge_pairs(minute.pairs);
  take_gaps();
  next_.minute = std::move(minute);
  next_.samples = std::move(samples);
  return std::move(next_);
}

std::uint32_t Renumbering::thread_number(std::uint32_t old) {
  std::uint32_t& number = thread_numbers_[old];
  if (number == 0) {
    ThreadAddition thread = threads_[old];
    thread.process = process_number(thread.process);
    if (folds_) {
      std::uint32_t& folded = folded_threads_[{thread.process, thread.owner, thread.is_hidden}];
      if (folded != 0) return (number = folded) - 1;
      thread.tid = 0;
      thread.comm = kAllThreads;
      folded = size_.threads + 1;
    }
    next_.additions.threads.push_back(std::move(thread));
    number = ++size_.threads;
  }
  return number - 1;
}

std::uint32_t Renumbering::process_number(std::uint32_t old) {
  // Without its parents, a process would be in no tree.
  for (std::uint32_t process = old; process_numbers_[process] == 0;) {
    process_numbers_[process] = ++size_.processes;
    next_.additions.processes.push_back(processes_[process]);
    next_.additions.processes.back().number = process_numbers_[process] - 1;
    const store::ProcessInfo& info = processes_[process].info;
    const auto parent = process_of_.find(ProcessId{info.parent_pid, info.parent_start_ticks});
    if (parent == process_of_.end()) break;
    process = parent->second;
  }
  return process_numbers_[old] - 1;
}

std::uint32_t Renumbering::stack_number(std::uint32_t old) {
  path_.clear();
  for (std::uint32_t stack = old; stack_numbers_[stack] == 0; stack = stacks_[stack].caller) path_.push_back(stack);
  for (std::size_t i = path_.size(); i-- > 0;) {
    const StackAddition& stack = stacks_[path_[i]];
    const StackAddition next{stack_numbers_[stack.caller] - 1, frame_number(stack.frame)};
    std::uint32_t& number = stack_numbers_[path_[i]];
    if (folds_) {
      std::uint32_t& folded = folded_stacks_[std::uint64_t{next.caller} << 32 | next.frame];
      number = folded;
      if (folded != 0) continue;
      folded = size_.stacks + 1;
    }
    next_.additions.stacks.push_back(next);
    number = ++size_.stacks;
  }
  return stack_numbers_[old] - 1;
}

std::uint32_t Renumbering::frame_number(std::uint32_t old) {
  std::uint32_t& number = frame_numbers_[old];
  if (number == 0) {
    FrameAddition frame = frames_[old];
    if (frame.module >= kFirstFreeModule.value) {
      frame.module = kFirstFreeModule.value + module_number(frame.module - kFirstFreeModule.value);
    }
    const auto name = names_.find(old);
    if (folds_ && name != names_.end()) {
      std::uint32_t& folded = folded_frames_[{frame.module, name->second.get()}];
      if (folded != 0) return (number = folded) - 1;
      folded = size_.frames + 1;
    }
    next_.additions.frames.push_back(frame);
    number = ++size_.frames;
    if (name != names_.end()) next_.names.push_back({size_.frames - 1, name->second});
  }
  return number - 1;
}

std::uint32_t Renumbering::module_number(std::uint32_t old) {
  if (module_numbers_[old] == 0) {
    next_.additions.modules.push_back(modules_[old]);
    module_numbers_[old] = ++size_.modules;
  }
  return module_numbers_[old] - 1;
}

/// `pairs` are sorted.
void Renumbering::merge_pairs(std::vector<Pair>& pairs) {
  if (pairs.empty()) return;
  auto last = pairs.begin();
  for (auto pair = last + 1; pair != pairs.end(); ++pair) {
    if (pair->thread == last->thread && pair->stack == last->stack && pair->is_cut == last->is_cut) {
      last->count += pair->count;
    } else {
      *++last = *pair;
    }
  }
  pairs.erase(last + 1, pairs.end());
}

void Renumbering::take_gaps() {
  for (const store::Gap& gap : std::exchange(gaps_, {})) {
    if (gap.from < stretch_.to && stretch_.from < gap.to) next_.additions.gaps.push_back(gap);
  }
}

}  // namespace flamed::archive
