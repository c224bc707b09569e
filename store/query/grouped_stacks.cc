// SPDX-License-Identifier: Apache-2.0
#include "store/query/grouped_stacks.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/keyed_hash.h"
#include "store/query/process_groups.h"

namespace flamed::store {
namespace {

constexpr std::uint32_t kNone = 0xffffffffU;
// More boxes in a row than a person can distinguish.
constexpr std::size_t kMostParts = 256;

/// Two processes with the same pid must not be merged: their labels get their start times.
std::string pid_text(ProcessId id, bool pid_was_reused) {
  std::string text = std::to_string(id.pid);
  if (pid_was_reused) text += "@" + std::to_string(id.start_ticks);
  return text;
}

}  // namespace

GroupedStacks::GroupedStacks(const SnapshotData& snapshot, const Selection& selection, const ProfileOptions& options,
                             QueryBudget& budget, std::vector<std::uint32_t>& counters)
    : snapshot_(snapshot),
      selection_(selection),
      budget_(budget),
      slots_(snapshot, selection, budget),
      group_(options.group.value_or(only_pid() != nullptr ? Group::kNone : Group::kProcess)),
      place_of_(counters) {
  if (group_ == Group::kThread || group_ == Group::kComm) slots_.warn_of_threads();
}

GroupedStacks::~GroupedStacks() {
  take_sums([](std::uint32_t, std::uint64_t) {});
}

const ProcessSelector* GroupedStacks::only_pid() const {
  if (selection_.processes.size() != 1) return nullptr;
  Selection rest = selection_;
  rest.processes.clear();
  return rest.is_narrowed() ? nullptr : &selection_.processes.front();
}

/// Finds the selected threads' stacks.
bool GroupedStacks::collect() {
  const bool by_thread = group_ == Group::kThread || group_ == Group::kComm;
  std::vector<std::uint32_t> key_of(by_thread ? snapshot_.threads.limit() : snapshot_.processes.limit(), kNone);
  std::vector<bool> has_samples(snapshot_.processes.limit(), false);
  const auto take = [&](std::uint32_t owner, std::uint32_t process, const ThreadStacks& stacks) {
    if (!has_samples[process]) {
      has_samples[process] = true;
      processes_.push_back(process);
    }
    if (group_ == Group::kNone) {
      keys_.resize(1);
      stacks_.push_back({0, stacks});
      return;
    }
    if (key_of[owner] == kNone) {
      key_of[owner] = static_cast<std::uint32_t>(keys_.size());
      keys_.push_back(owner);
    }
    stacks_.push_back({key_of[owner], stacks});
  };
  if (!by_thread) {
    return slots_.for_each_process(
        [&](const SlotBounds&, std::uint32_t process, const ThreadStacks& stacks) { take(process, process, stacks); });
  }
  return slots_.for_each_thread([&](const SlotBounds&, std::uint32_t thread, const ThreadStacks& stacks) {
    const std::uint32_t process = snapshot_.threads[thread].process;
    take(by_thread ? thread : process, process, stacks);
  });
}

/// Most stacks recur in most slots: each minute's count needs only an addition, key by key so that the sums stay in the
/// processor's cache.
bool GroupedStacks::add_up(StackStates& states, SeenFrames& seen) {
  if (!collect()) return false;
  samples_of_.assign(keys_.size(), 0);
  std::vector<std::uint32_t> first(keys_.size() + 1, 0);
  for (const Stacks& stacks : stacks_) ++first[stacks.key + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::vector<std::uint32_t> order(stacks_.size());
  std::vector<std::uint32_t> next(first.begin(), first.end() - 1);
  for (std::uint32_t i = 0; i < stacks_.size(); ++i) order[next[stacks_[i].key]++] = i;

  const auto keep = [&](StackRef ref, std::uint64_t samples, std::uint32_t key) {
    seen.see(ref.stack);
    samples_of_[key] += samples;
    if (states.has(ref, selection_.side)) counts_.push_back({ref, samples});
  };
  // A stack's counter is rarely in the processor's cache: it is prefetched while earlier ones are added.
  std::array<Sum, 32> ahead;
  std::size_t fetched = 0;
  const auto add_fetched = [&] {
    for (std::size_t i = 0; i < fetched; ++i) add(ahead[i].leaf, ahead[i].samples);
    fetched = 0;
  };
  key_start_.reserve(keys_.size() + 1);
  for (std::uint32_t key = 0; key < keys_.size(); ++key) {
    key_start_.push_back(counts_.size());
    for (std::uint32_t i = first[key]; i < first[key + 1]; ++i) {
      const Stacks& stacks = stacks_[order[i]];
      stacks.stacks.for_each([&](StackRef ref, std::uint64_t samples) {
        if (ref.cut) {
          keep(ref, samples, key);
          return;
        }
        __builtin_prefetch(&place_of_[ref.stack.value], 1);
        ahead[fetched++] = {ref.stack.value, samples};
        if (fetched == ahead.size()) add_fetched();
      });
      add_fetched();
      if (!budget_.visit()) return false;
    }
    for (const Sum& sum : sums_) seen.prefetch({sum.leaf});
    take_sums([&](std::uint32_t leaf, std::uint64_t samples) { keep({StackId{leaf}, false}, samples, key); });
  }
  key_start_.push_back(counts_.size());
  if (!budget_.check()) return false;
  form_parts();
  return true;
}

/// Decides which keys share a subtree. A day of a host that starts programs all the time has a hundred thousand
/// processes: the busiest ones have a subtree each, the others share one for each name.
void GroupedStacks::form_parts() {
  switch (group_) {
    case Group::kNone:
      labels_.emplace_back();
      group_keys(std::vector<std::uint32_t>(keys_.size(), 0));
      break;
    case Group::kProcess:
    case Group::kThread:
      form_parts_of_single(group_ == Group::kThread);
      break;
    case Group::kComm:
      form_named_parts([&](std::uint32_t thread) { return std::string(text_of(snapshot_.threads[thread].comm)); });
      break;
    case Group::kProgram:
    case Group::kExecutable:
    case Group::kUnit:
    case Group::kContainer:
    case Group::kUser:
    case Group::kTree:
      form_named_parts(
          [groups = ProcessGroups(snapshot_, group_)](std::uint32_t process) { return groups.label(process); });
      break;
  }
}

void GroupedStacks::form_parts_of_single(bool threads) {
  std::vector<std::uint32_t> order(keys_.size());  // keys, most samples first
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return samples_of_[a] != samples_of_[b] ? samples_of_[a] > samples_of_[b] : keys_[a] < keys_[b];
  });
  std::unordered_map<std::int32_t, std::size_t> pid_uses;
  for (std::uint32_t process : processes_) ++pid_uses[snapshot_.processes[process].id.pid];

  std::vector<std::uint32_t> part_of(keys_.size(), 0);
  std::unordered_map<std::string, std::uint32_t, KeyedTextHash> shared;
  std::vector<std::size_t> sharers;  // by part
  std::vector<std::string> names;    // by part
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::uint32_t owner = keys_[order[i]];
    const ThreadRecord* thread = threads ? &snapshot_.threads[owner] : nullptr;
    const ProcessRecord& process = snapshot_.processes[threads ? thread->process : owner];
    const std::string name = threads ? std::string(text_of(thread->comm)) : *process.comm;
    auto part = static_cast<std::uint32_t>(labels_.size());
    if (i >= kMostParts) part = shared.try_emplace(name, part).first->second;
    part_of[order[i]] = part;
    if (part == labels_.size()) {
      std::string id = pid_text(process.id, pid_uses[process.id.pid] > 1);
      if (threads) id += "/" + std::to_string(thread->tid);
      labels_.push_back(name);
      labels_.back().append(" (").append(id).append(")");
      sharers.push_back(0);
      names.push_back(name);
    }
    ++sharers[part];
  }
  for (std::size_t part = 0; part < labels_.size(); ++part) {
    if (sharers[part] > 1) {
      labels_[part] = names[part] + " (" + std::to_string(sharers[part]) + (threads ? " threads)" : " processes)");
    }
  }
  group_keys(part_of);
}

void GroupedStacks::form_named_parts(const std::function<std::string(std::uint32_t)>& name_of) {
  std::unordered_map<std::string, std::uint32_t, KeyedTextHash> parts;
  std::vector<std::uint32_t> part_of(keys_.size(), 0);
  for (std::size_t key = 0; key < keys_.size(); ++key) {
    const std::string name = name_of(keys_[key]);
    const auto [part, fresh] = parts.try_emplace(name, static_cast<std::uint32_t>(labels_.size()));
    if (fresh) labels_.push_back(name);
    part_of[key] = part->second;
  }
  group_keys(part_of);
}

void GroupedStacks::group_keys(const std::vector<std::uint32_t>& part_of) {
  part_start_.assign(labels_.size() + 1, 0);
  for (std::uint32_t part : part_of) ++part_start_[part + 1];
  std::partial_sum(part_start_.begin(), part_start_.end(), part_start_.begin());
  std::vector<std::size_t> next(part_start_.begin(), part_start_.end() - 1);
  part_keys_.resize(keys_.size());
  for (std::uint32_t key = 0; key < keys_.size(); ++key) part_keys_[next[part_of[key]]++] = key;
}

std::string GroupedStacks::root_name() const {
  if (group_ != Group::kNone || only_pid() == nullptr) return "all";
  if (processes_.empty()) return "pid " + std::to_string(only_pid()->pid);
  const std::uint32_t newest = *std::max_element(
      processes_.begin(), processes_.end(),
      [&](std::uint32_t a, std::uint32_t b) { return snapshot_.processes[a].id < snapshot_.processes[b].id; });
  const ProcessRecord& record = snapshot_.processes[newest];
  return *record.comm + " (" + pid_text(record.id, false) + ")";
}

std::vector<ProcessInfo> GroupedStacks::processes() {
  std::vector<ProcessInfo> infos;
  for (std::uint32_t process : processes_) infos.push_back(snapshot_.info_of(snapshot_.processes[process]));
  if (processes_.empty() && only_pid() != nullptr) {
    snapshot_.processes.for_each_place([&](std::uint32_t process, const ProcessRecord& record) {
      if (record.in_use() && slots_.filter().wants_process(process)) infos.push_back(snapshot_.info_of(record));
    });
  }
  std::sort(infos.begin(), infos.end(), [](const ProcessInfo& a, const ProcessInfo& b) { return a.id < b.id; });
  return infos;
}

void GroupedStacks::warn_of_reused_pid(const std::vector<ProcessInfo>& processes,
                                       std::vector<std::string>& warnings) const {
  const ProcessSelector* pid = only_pid();
  if (pid == nullptr || processes_.size() < 2) return;
  std::string choices;
  for (const ProcessInfo& info : processes) {
    choices += (choices.empty() ? "pid=" : ", pid=") + std::to_string(info.id.pid) + "@" +
               std::to_string(info.id.start_ticks) + " (" + info.comm + ")";
  }
  warnings.push_back("Several processes had pid " + std::to_string(pid->pid) +
                     " in the window and are merged here. Choose one with " + choices + ".");
}

void GroupedStacks::warn_of_emptiness(const Quality& quality, std::vector<std::string>& warnings) const {
  const ProcessSelector* pid = only_pid();
  if (slots_.empty()) return;
  if (quality.stored() != 0) {
    warnings.emplace_back("No stack of the selection is left by focus and ignore.");
  } else if (pid != nullptr) {
    warnings.push_back("Process " + std::to_string(pid->pid) +
                       " has no samples in the window: it used no CPU, or did not exist.");
  } else if (selection_.is_narrowed() || selection_.side != Side::kBoth) {
    warnings.emplace_back("Nothing in the selection has samples in the window.");
  } else if (snapshot_.only_user) {
    warnings.push_back("No process of uid " + std::to_string(*snapshot_.only_user) + " has samples in the window.");
  } else {
    warnings.emplace_back("There are no samples in the window: the machine was idle.");
  }
}

}  // namespace flamed::store
