// SPDX-License-Identifier: Apache-2.0
#include "archive/numbering/numbering.h"

#include <algorithm>
#include <utility>

namespace flamed::archive {
namespace {

using store::CallNode;
using store::PackedFrame;
using store::ProcessRecord;
using store::ThreadRecord;

std::uint32_t& at(std::vector<std::uint32_t>& numbers, std::uint32_t id) {
  if (id >= numbers.size()) numbers.resize(id + id / 8 + 64);
  return numbers[id];
}

bool is_known(const std::vector<std::uint32_t>& numbers, std::uint32_t id) {
  return id < numbers.size() && numbers[id] != 0;
}

bool is_same(const ThreadRecord& a, const ThreadRecord& b) {
  return a.process == b.process && a.is_hidden == b.is_hidden && a.tid == b.tid && a.comm == b.comm &&
         a.owner == b.owner;
}

/// The strings of a process are shared: the same text is at the same place, and another place is looked at again.
bool is_same(const ProcessRecord& a, const ProcessRecord& b) {
  return a.owner == b.owner && a.is_hidden == b.is_hidden && a.uid == b.uid && a.comm.get() == b.comm.get() &&
         a.executable.get() == b.executable.get() && a.command_line.get() == b.command_line.get() &&
         a.place.get() == b.place.get() && a.cgroup_id == b.cgroup_id && a.started_ns == b.started_ns &&
         a.ended_ns == b.ended_ns && a.parent_pid == b.parent_pid && a.parent_start_ticks == b.parent_start_ticks;
}

std::uint64_t hash_of(const std::vector<Pair>& pairs) {
  std::uint64_t hash = pairs.size();
  for (const Pair& pair : pairs) {
    hash = store::mix(hash ^ (std::uint64_t{pair.thread} << 32 | pair.stack));
    hash = store::mix(hash ^ (std::uint64_t{pair.count} << 1 | (pair.is_cut ? 1U : 0U)));
  }
  return hash;
}

bool is_known_gap(const std::vector<store::Gap>& known, const store::Gap& gap) {
  return std::find(known.begin(), known.end(), gap) != known.end();
}

}  // namespace

Numbering::Numbered Numbering::take(const store::Snapshot& snapshot, const store::Slot& slot, Ending ending) {
  const store::SnapshotData& data = snapshot.data();
  if (!goes_on_) {
    additions_ = {};
    additions_.before = size_;
  }
  goes_on_ = ending == Ending::kSoFar;
  Numbered numbered;
  numbered.first_frame = size_.frames;
  follow(data);
  Minute& minute = numbered.minute;
  minute.start = slot.bounds.start;
  minute.end = slot.bounds.end;
  // Sampling began within the minute.
  if (minute.start < data.since && data.since < minute.end) minute.start = data.since;
  minute.wall_offset_ns = slot.bounds.wall_offset_ns;
  minute.period_ns = slot.bounds.period_ns;
  minute.sequence = slot.sequence;
  minute.quality = slot.quality;
  minute.pairs.reserve(slot.histogram.entry_count());
  slot.histogram.for_each_thread([&](std::uint32_t thread, std::span<const std::uint8_t> bytes) {
    const std::uint32_t number = thread_number(thread);
    store::Histogram::for_each_stack(bytes, [&](store::StackRef ref, std::uint64_t count) {
      minute.pairs.push_back({number, stack_number(ref.stack.value), ref.cut, static_cast<std::uint32_t>(count)});
    });
  });
  std::sort(minute.pairs.begin(), minute.pairs.end());
  if (ending == Ending::kOver) {
    taken_.push_back({slot.sequence, hash_of(minute.pairs)});
    if (taken_.size() > kRemembered) taken_.pop_front();
  }
  places_.add(additions_);
  numbered.additions = additions_;
  numbered.frames = std::exchange(added_frames_, {});
  return numbered;
}

std::optional<std::vector<Sample>> Numbering::samples_of(const store::SealedSlot& sealed) const {
  const store::Slot& slot = *sealed.slot;
  const auto taken =
      std::find_if(taken_.begin(), taken_.end(), [&](const Taken& one) { return one.sequence == slot.sequence; });
  if (taken == taken_.end() || sealed.log == nullptr || sealed.log->count() > kMostSamples) return std::nullopt;
  std::vector<Pair> pairs;  // as the log numbers them
  pairs.reserve(slot.histogram.entry_count());
  bool is_all_known = true;
  slot.histogram.for_each_thread([&](std::uint32_t thread, std::span<const std::uint8_t> bytes) {
    store::Histogram::for_each_stack(bytes, [&](store::StackRef ref, std::uint64_t count) {
      const std::uint32_t stack = ref.stack.value;
      const bool is_empty = ref.stack == store::kEmptyStack;
      is_all_known = is_all_known && is_known(threads_, thread) && (is_empty || is_known(stacks_, stack));
      if (!is_all_known) return;
      pairs.push_back(
          {threads_[thread] - 1, is_empty ? 0 : stacks_[stack] - 1, ref.cut, static_cast<std::uint32_t>(count)});
    });
  });
  if (!is_all_known) return std::nullopt;
  const std::vector<std::uint32_t> places = sort_pairs(pairs);
  // Memory may have let go of some stacks since, or of what numbers they had.
  if (hash_of(pairs) != taken->pairs) return std::nullopt;
  std::vector<Sample> samples;
  samples.reserve(sealed.log->count());
  sealed.log->for_each(sealed.log->first(), {sealed.log->last().ns + 1}, [&](const store::LoggedSample& sample) {
    samples.push_back({sample.time, places[sample.entry], sample.cpu});
  });
  return samples;
}

void Numbering::follow(const store::SnapshotData& snapshot) {
  const bool has_other_processes = forget_reused_processes(snapshot);
  forget_reused_threads(snapshot, has_other_processes);
  forget_reused_stacks(snapshot);
  for (const store::Gap& gap : *snapshot.gaps) {
    if (gaps_ == nullptr || !is_known_gap(*gaps_, gap)) additions_.gaps.push_back(gap);
  }
  gaps_ = snapshot.gaps;
}

bool Numbering::forget_reused_processes(const store::SnapshotData& snapshot) {
  using Records = store::ProcessTable::Records::View;
  std::vector<std::uint32_t> changed;
  bool has_other = false;
  Records::for_each_unshared(process_records_, snapshot.processes,
                             [&](std::uint32_t id, const ProcessRecord* before, const ProcessRecord* now) {
                               if (!is_known(processes_, id)) return;
                               if (now == nullptr || before == nullptr || !now->in_use() || now->id != before->id) {
                                 processes_[id] = 0;
                                 has_other = true;
                               } else if (!is_same(*before, *now)) {
                                 changed.push_back(id);
                               }
                             });
  process_records_ = snapshot.processes;
  for (const std::uint32_t id : changed) add_state(id);
  return has_other;
}

void Numbering::forget_reused_threads(const store::SnapshotData& snapshot, bool has_other_processes) {
  using Records = store::ThreadTable::Records::View;
  Records::for_each_unshared(thread_records_, snapshot.threads,
                             [&](std::uint32_t id, const ThreadRecord* before, const ThreadRecord* now) {
                               if (!is_known(threads_, id)) return;
                               if (now == nullptr || before == nullptr || !is_same(*before, *now)) threads_[id] = 0;
                             });
  thread_records_ = snapshot.threads;
  if (!has_other_processes) return;
  for (std::uint32_t id = 0; id < threads_.size(); ++id) {
    if (threads_[id] != 0 && !is_known(processes_, thread_records_[id].process)) threads_[id] = 0;
  }
}

void Numbering::forget_reused_stacks(const store::SnapshotData& snapshot) {
  using Frames = store::CallTree::Frames::View;
  using Nodes = store::CallTree::Nodes::View;
  bool has_other = false;
  Frames::for_each_unshared(tree_.frames, snapshot.tree.frames,
                            [&](std::uint32_t id, const PackedFrame* before, const PackedFrame* now) {
                              if (!is_known(frames_, id)) return;
                              if (now != nullptr && before != nullptr && *now == *before) return;
                              frames_[id] = 0;
                              has_other = true;
                            });
  Nodes::for_each_unshared(
      tree_.nodes, snapshot.tree.nodes, [&](std::uint32_t id, const CallNode* before, const CallNode* now) {
        if (!is_known(stacks_, id)) return;
        if (now != nullptr && before != nullptr && now->caller == before->caller && now->frame == before->frame) {
          return;
        }
        stacks_[id] = 0;
        has_other = true;
      });
  tree_ = snapshot.tree;
  if (!has_other) return;
  // A node means the same as before if its frame and all of its callers do. `checked`: 1 yes, 2 no.
  std::vector<std::uint8_t> checked(stacks_.size());
  checked[store::kEmptyStack.value] = 1;
  for (std::uint32_t id = 0; id < stacks_.size(); ++id) {
    if (stacks_[id] == 0) continue;
    path_.clear();
    std::uint32_t node = id;
    while (checked[node] == 0) {
      path_.push_back(node);
      if (!is_known(stacks_, node) || !is_known(frames_, tree_.nodes[node].frame.value)) {
        checked[node] = 2;
        break;
      }
      node = tree_.nodes[node].caller.value;
      if (node >= checked.size()) checked.resize(node + 1);
    }
    const std::uint8_t result = checked[node];
    for (const std::uint32_t passed : path_) {
      checked[passed] = result;
      if (result == 2) at(stacks_, passed) = 0;
    }
  }
}

std::uint32_t Numbering::stack_number(std::uint32_t id) {
  if (id == store::kEmptyStack.value) return 0;
  path_.clear();
  std::uint32_t node = id;
  for (; node != store::kEmptyStack.value && at(stacks_, node) == 0; node = tree_.nodes[node].caller.value) {
    path_.push_back(node);
  }
  std::uint32_t number = node == store::kEmptyStack.value ? 0 : stacks_[node] - 1;
  for (std::size_t i = path_.size(); i-- > 0;) {
    const std::uint32_t frame = frame_number(tree_.nodes[path_[i]].frame.value);
    additions_.stacks.push_back({number, frame});
    number = size_.stacks++;
    stacks_[path_[i]] = number + 1;
  }
  return number;
}

std::uint32_t Numbering::frame_number(std::uint32_t id) {
  std::uint32_t& known = at(frames_, id);
  if (known == 0) {
    const Frame frame = tree_.frames[id];
    additions_.frames.push_back({module_number(frame.module), frame.offset});
    added_frames_.push_back(frame);
    known = ++size_.frames;
  }
  return known - 1;
}

std::uint32_t Numbering::module_number(ModuleId id) {
  if (id.value < kFirstFreeModule.value) return id.value;
  const auto [place, is_new] = modules_.try_emplace(id);
  if (is_new) {
    place->second = kFirstFreeModule.value + size_.modules++;
    additions_.modules.push_back(describe_(id));
  }
  return place->second;
}

std::uint32_t Numbering::thread_number(std::uint32_t id) {
  std::uint32_t& known = at(threads_, id);
  if (known == 0) {
    const ThreadRecord& record = thread_records_[id];
    const std::uint32_t process = process_number(record.process);
    known = ++size_.threads;
    additions_.threads.push_back(
        {process, record.tid, std::string(store::text_of(record.comm)), record.owner, record.is_hidden != 0});
  }
  return known - 1;
}

std::uint32_t Numbering::process_number(std::uint32_t id) {
  std::uint32_t& known = at(processes_, id);
  if (known == 0) {
    known = ++size_.processes;
    add_state(id);
  }
  return known - 1;
}

void Numbering::add_state(std::uint32_t process) {
  const ProcessRecord& record = process_records_[process];
  ProcessState state{processes_[process] - 1, record.info(), record.owner, record.is_hidden};
  state.info.uid.reset();
  if (record.uid != store::kNoUser) state.info.uid = record.uid;
  additions_.processes.push_back(std::move(state));
}

}  // namespace flamed::archive
