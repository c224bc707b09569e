// SPDX-License-Identifier: Apache-2.0
#include "store/profile_builder.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace flamed::store {
namespace {

constexpr std::uint32_t kNone = 0xffffffffU;
// More boxes in a row than a person can tell apart.
constexpr std::size_t kMostParts = 256;

NamedFrame marker_frame(std::string name) { return {std::move(name), "", FrameKind::kMarker, ""}; }

/// Two processes that had one pid must not fall together: they get their start time into their label.
std::string pid_text(ProcessId id, bool pid_was_reused) {
  std::string text = std::to_string(id.pid);
  if (pid_was_reused) text += "@" + std::to_string(id.start_ticks);
  return text;
}

std::string text_or(const std::string* text, const char* otherwise) {
  return text != nullptr && !text->empty() ? *text : std::string(otherwise);
}

}  // namespace

ProfileBuilder::ProfileBuilder(const SnapshotData& snapshot, const Selection& selection, const ProfileOptions& options,
                               QueryBudget& budget)
    : snapshot_(snapshot),
      selection_(selection),
      options_(options),
      budget_(budget),
      slots_(snapshot, selection, budget),
      states_(snapshot),
      frame_table_(options) {}

Result<Profile> ProfileBuilder::build(FrameNamer& namer) {
  Profile profile;
  static_cast<AnswerFacts&>(profile) = slots_.facts();
  if (!collect() || !total_up() || !budget_.check()) return budget_.error();
  form_parts();
  name_frames(namer);
  if (!budget_.check()) return budget_.error();

  auto tree = std::make_unique<ProfileTree>(frame_table_, frame_table_.intern({root_name(), "", FrameKind::kRoot, ""}),
                                            budget_.limits().nodes);
  for (std::size_t part = 0; part + 1 < part_start_.size(); ++part) {
    add_part(*tree, static_cast<std::uint32_t>(part), profile);
    if (!budget_.check()) return budget_.error();
  }
  const bool was_cut = tree->was_cut();
  if (options_.focus || options_.ignore || options_.hide) tree = tree->filtered(options_, group() != Group::kNone);
  bool root_missing = false;
  if (!options_.root.empty()) {
    if (auto subtree = tree->subtree(options_.root)) {
      tree = std::move(subtree);
    } else {
      root_missing = true;
      const std::uint32_t root = frame_table_.intern({options_.root.back(), "", FrameKind::kRoot, ""});
      tree = std::make_unique<ProfileTree>(frame_table_, root, 1);
    }
  }
  if (options_.min_percent > 0 || options_.max_nodes != 0) {
    tree = tree->pruned(options_.min_percent, options_.max_nodes);
  }
  if (!budget_.check()) return budget_.error();
  std::move(*tree).finish(profile);
  describe_processes(profile);
  warn(profile, was_cut, root_missing);
  return profile;
}

const ProcessSelector* ProfileBuilder::only_pid() const {
  if (selection_.processes.size() != 1) return nullptr;
  Selection rest = selection_;
  rest.processes.clear();
  return rest.is_narrowed() ? nullptr : &selection_.processes.front();
}

Group ProfileBuilder::group() const {
  if (options_.group) return *options_.group;
  return only_pid() != nullptr ? Group::kNone : Group::kProcess;
}

/// Finds the selected threads' stacks.
bool ProfileBuilder::collect() {
  const bool by_thread = group() == Group::kThread || group() == Group::kComm;
  std::vector<std::uint32_t> key_of(by_thread ? snapshot_.threads.limit() : snapshot_.processes.limit(), kNone);
  std::vector<bool> has_samples(snapshot_.processes.limit(), false);
  const auto take = [&](const SlotBounds& bounds, std::uint32_t owner, std::uint32_t process,
                        const ThreadStacks& stacks) {
    if (key_of[owner] == kNone) {
      key_of[owner] = static_cast<std::uint32_t>(keys_.size());
      keys_.push_back(owner);
    }
    if (!has_samples[process]) {
      has_samples[process] = true;
      processes_.push_back(process);
    }
    stacks_.push_back({key_of[owner], bounds.period_ns, stacks});
  };
  if (!by_thread) {
    return slots_.for_each_process([&](const SlotBounds& bounds, std::uint32_t process, const ThreadStacks& stacks) {
      take(bounds, process, process, stacks);
    });
  }
  return slots_.for_each_thread([&](const SlotBounds& bounds, std::uint32_t thread, const ThreadStacks& stacks) {
    const std::uint32_t process = snapshot_.threads[thread].process;
    take(bounds, by_thread ? thread : process, process, stacks);
  });
}

/// Adds up each key's stacks over all slots, and sees which frames need a name. Most stacks come again in most slots:
/// all that is done for each minute's count is this addition, key by key so that the sums stay in the processor's
/// cache.
bool ProfileBuilder::total_up() {
  chain_of_.assign(snapshot_.tree.frames.limit(), kNone);
  samples_of_.assign(keys_.size(), 0);
  totals_.assign(std::max<std::size_t>(snapshot_.tree.nodes.limit(), 1), Total{});
  const auto see = [&](std::uint32_t id, const Frame& frame) {
    if (chain_of_[id] != kNone || !is_shown(frame)) return;
    chain_of_[id] = static_cast<std::uint32_t>(shown_.size());
    shown_.push_back(frame);
  };
  std::vector<std::uint32_t> first(keys_.size() + 1, 0);
  for (const Stacks& stacks : stacks_) ++first[stacks.key + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::vector<std::uint32_t> order(stacks_.size());
  std::vector<std::uint32_t> next(first.begin(), first.end() - 1);
  for (std::uint32_t i = 0; i < stacks_.size(); ++i) order[next[stacks_[i].key]++] = i;

  std::vector<std::uint32_t> leaves;
  const auto keep = [&](StackRef ref, const Total& total, std::uint32_t key) {
    states_.of(ref.stack, see);
    samples_of_[key] += total.samples;
    if (states_.has(ref, selection_.side)) counts_.push_back({ref, total});
  };
  key_start_.reserve(keys_.size() + 1);
  for (std::uint32_t key = 0; key < keys_.size(); ++key) {
    key_start_.push_back(counts_.size());
    leaves.clear();
    for (std::uint32_t i = first[key]; i < first[key + 1]; ++i) {
      const Stacks& stacks = stacks_[order[i]];
      const auto period_ns = static_cast<std::uint64_t>(stacks.period_ns);
      stacks.stacks.for_each([&](StackRef ref, std::uint64_t count) {
        if (ref.cut) {
          keep(ref, {count, count * period_ns}, key);
          return;
        }
        Total& total = totals_[ref.stack.value];
        if (total.samples == 0) leaves.push_back(ref.stack.value);
        total.samples += count;
        total.ns += count * period_ns;
      });
      if (!budget_.visit()) return false;
    }
    for (std::uint32_t leaf : leaves) {
      keep({StackId{leaf}, false}, totals_[leaf], key);
      totals_[leaf] = Total{};
    }
  }
  key_start_.push_back(counts_.size());
  return true;
}

bool ProfileBuilder::is_shown(const Frame& frame) const {
  switch (selection_.side) {
    case Side::kUser:
      return frame.module != kKernelModule;
    case Side::kKernel:
      return frame.module == kKernelModule;
    case Side::kBoth:
      break;
  }
  return true;
}

/// Decides which keys share a subtree. A day of a host that starts programs all the time
/// has a hundred thousand processes: those that used most have a subtree each, the others share one for each name.
void ProfileBuilder::form_parts() {
  switch (group()) {
    case Group::kNone:
      labels_.emplace_back();
      group_keys(std::vector<std::uint32_t>(keys_.size(), 0));
      break;
    case Group::kProcess:
    case Group::kThread:
      form_parts_of_single(group() == Group::kThread);
      break;
    case Group::kComm:
    case Group::kExecutable:
    case Group::kUnit:
    case Group::kContainer:
      form_named_parts(group());
      break;
  }
}

void ProfileBuilder::form_parts_of_single(bool threads) {
  std::vector<std::uint32_t> order(keys_.size());  // keys, most samples first
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return samples_of_[a] != samples_of_[b] ? samples_of_[a] > samples_of_[b] : keys_[a] < keys_[b];
  });
  std::unordered_map<std::int32_t, std::size_t> pid_uses;
  for (std::uint32_t process : processes_) ++pid_uses[snapshot_.processes[process].id.pid];

  std::vector<std::uint32_t> part_of(keys_.size(), 0);
  std::unordered_map<std::string, std::uint32_t> shared;
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

void ProfileBuilder::form_named_parts(Group by) {
  std::unordered_map<std::string, std::uint32_t> parts;
  std::vector<std::uint32_t> part_of(keys_.size(), 0);
  for (std::size_t key = 0; key < keys_.size(); ++key) {
    std::string name;
    if (by == Group::kComm) {
      name = text_of(snapshot_.threads[keys_[key]].comm);
    } else {
      const ProcessRecord& process = snapshot_.processes[keys_[key]];
      const ProcessRecord::Place* place = process.place.get();
      if (by == Group::kExecutable) {
        name = text_or(process.executable.get(), "[kernel threads and unknown]");
      } else if (by == Group::kUnit) {
        name = text_or(place != nullptr ? &place->unit : nullptr, "[no unit]");
      } else {
        name = text_or(place != nullptr ? &place->container : nullptr, "[no container]");
      }
    }
    const auto [part, fresh] = parts.try_emplace(name, static_cast<std::uint32_t>(labels_.size()));
    if (fresh) labels_.push_back(name);
    part_of[key] = part->second;
  }
  group_keys(part_of);
}

void ProfileBuilder::group_keys(const std::vector<std::uint32_t>& part_of) {
  part_start_.assign(labels_.size() + 1, 0);
  for (std::uint32_t part : part_of) ++part_start_[part + 1];
  std::partial_sum(part_start_.begin(), part_start_.end(), part_start_.begin());
  std::vector<std::size_t> next(part_start_.begin(), part_start_.end() - 1);
  part_keys_.resize(keys_.size());
  for (std::uint32_t key = 0; key < keys_.size(); ++key) part_keys_[next[part_of[key]]++] = key;
}

std::string ProfileBuilder::root_name() const {
  if (group() != Group::kNone || only_pid() == nullptr) return "all";
  if (processes_.empty()) return "pid " + std::to_string(only_pid()->pid);
  const std::uint32_t newest = *std::max_element(
      processes_.begin(), processes_.end(),
      [&](std::uint32_t a, std::uint32_t b) { return snapshot_.processes[a].id < snapshot_.processes[b].id; });
  const ProcessRecord& record = snapshot_.processes[newest];
  return *record.comm + " (" + pid_text(record.id, false) + ")";
}

void ProfileBuilder::name_frames(FrameNamer& namer) {
  std::vector<std::shared_ptr<const InlineChain>> chains;
  if (!shown_.empty()) chains = namer.name(shown_);
  chains.resize(shown_.size());
  chain_start_.reserve(shown_.size() + 1);
  for (const auto& chain : chains) {
    chain_start_.push_back(static_cast<std::uint32_t>(chain_frames_.size()));
    frame_table_.append_chain(chain, chain_frames_);
  }
  chain_start_.push_back(static_cast<std::uint32_t>(chain_frames_.size()));
  for (std::size_t reason = 0; reason < kTruncationCount; ++reason) {
    markers_[reason] = frame_table_.intern(
        marker_frame("[truncated: " + std::string(describe(static_cast<Truncation>(reason))) + "]"));
  }
  border_ = frame_table_.intern(marker_frame("--"));
  placed_.assign(std::max<std::size_t>(snapshot_.tree.nodes.limit(), 1), kNone);
}

/// Adds the subtree of one part, and its share of the quality.
void ProfileBuilder::add_part(ProfileTree& tree, std::uint32_t part, Profile& profile) {
  std::uint32_t top = 0;
  std::vector<std::uint32_t> leaves;
  std::vector<Count> cuts;
  for (std::size_t i = part_start_[part]; i < part_start_[part + 1]; ++i) {
    const std::uint32_t key = part_keys_[i];
    for (std::size_t c = key_start_[key]; c < key_start_[key + 1]; ++c) {
      const Count& count = counts_[c];
      if (count.ref.cut) {
        cuts.push_back(count);
        continue;
      }
      Total& total = totals_[count.ref.stack.value];
      if (total.samples == 0) leaves.push_back(count.ref.stack.value);
      total.samples += count.total.samples;
      total.ns += count.total.ns;
    }
  }
  if (leaves.empty() && cuts.empty()) return;
  if (group() != Group::kNone) top = tree.child(0, frame_table_.intern({labels_[part], "", FrameKind::kRoot, ""}));
  placed_[kEmptyStack.value] = top;
  touched_.assign(1, kEmptyStack.value);  // nodes to forget afterwards
  for (std::uint32_t leaf : leaves) {
    Total& total = totals_[leaf];
    tree.add_self(place(tree, leaf), total.samples, total.ns);
    states_.count({StackId{leaf}, false}, total.samples, profile.quality);
    total = Total{};
  }
  for (const Count& cut : cuts) {
    const std::uint32_t node =
        tree.child(place(tree, cut.ref.stack.value), markers_[static_cast<std::size_t>(Truncation::kStoreFull)]);
    tree.add_self(node, cut.total.samples, cut.total.ns);
    states_.count(cut.ref, cut.total.samples, profile.quality);
  }
  for (std::uint32_t node : touched_) placed_[node] = kNone;
}

/// The profile's node for a call-tree node, in the current part.
std::uint32_t ProfileBuilder::place(ProfileTree& tree, std::uint32_t node) {
  path_.clear();
  for (; placed_[node] == kNone; node = snapshot_.tree.nodes[node].caller.value) path_.push_back(node);
  std::uint32_t at = placed_[node];
  for (std::size_t i = path_.size(); i-- > 0;) {
    const CallNode& call = snapshot_.tree.nodes[path_[i]];
    const std::uint32_t chain = chain_of_[call.frame.value];
    if (chain != kNone) {
      if (options_.delimited && selection_.side == Side::kBoth &&
          snapshot_.tree.frames[call.frame.value].module == kKernelModule) {
        const StackState caller = states_.of(call.caller);
        if (caller.has_user() && !caller.has_kernel()) at = tree.child(at, border_);
      }
      for (std::uint32_t c = chain_start_[chain]; c < chain_start_[chain + 1]; ++c) {
        at = tree.child(at, chain_frames_[c]);
      }
    } else if (const Frame& frame = snapshot_.tree.frames[call.frame.value]; frame.module == kTruncatedModule) {
      // Each side has the mark of what is missing of it.
      const bool kernel = frame.offset == static_cast<std::uint64_t>(Truncation::kKernelDepthLimit);
      if (selection_.side == Side::kBoth || kernel == (selection_.side == Side::kKernel)) {
        at = tree.child(at, markers_[frame.offset]);
      }
    }
    placed_[path_[i]] = at;
    touched_.push_back(path_[i]);
  }
  return at;
}

void ProfileBuilder::describe_processes(Profile& profile) {
  for (std::uint32_t process : processes_) profile.processes.push_back(snapshot_.processes[process].info());
  if (processes_.empty() && only_pid() != nullptr) {
    snapshot_.processes.for_each_place([&](std::uint32_t process, const ProcessRecord& record) {
      if (record.in_use() && slots_.filter().wants_process(process)) profile.processes.push_back(record.info());
    });
  }
  std::sort(profile.processes.begin(), profile.processes.end(),
            [](const ProcessInfo& a, const ProcessInfo& b) { return a.id < b.id; });
}

void ProfileBuilder::warn(Profile& profile, bool was_cut, bool root_missing) {
  const ProcessSelector* pid = only_pid();
  if (pid != nullptr && processes_.size() > 1) {
    std::string choices;
    for (const ProcessInfo& info : profile.processes) {
      choices += (choices.empty() ? "pid=" : ", pid=") + std::to_string(info.id.pid) + "@" +
                 std::to_string(info.id.start_ticks) + " (" + info.comm + ")";
    }
    profile.warnings.push_back("Several processes had pid " + std::to_string(pid->pid) +
                               " in the window and are merged here. Choose one with " + choices + ".");
  }
  if (was_cut) {
    profile.warnings.emplace_back(
        "The answer would have been too large: where it was, inner frames are left out and their time is shown as "
        "their caller's. A single process or a shorter window is shown in full.");
  }
  if (root_missing) {
    profile.warnings.emplace_back("Nothing in the window stands below the path that is asked for as root.");
  }
  if (profile.nodes[0].total_samples != 0 || root_missing || slots_.empty()) return;
  if (profile.quality.stored() != 0) {
    profile.warnings.emplace_back("No stack of the selection is left by focus and ignore.");
  } else if (pid != nullptr) {
    profile.warnings.push_back("Process " + std::to_string(pid->pid) +
                               " has no samples in the window: it used no CPU, or did not exist.");
  } else if (selection_.is_narrowed() || selection_.side != Side::kBoth) {
    profile.warnings.emplace_back("Nothing of what is selected has samples in the window.");
  } else if (snapshot_.only_user) {
    profile.warnings.push_back("No process of uid " + std::to_string(*snapshot_.only_user) +
                               " has samples in the window.");
  } else {
    profile.warnings.emplace_back("There are no samples in the window: the machine was idle.");
  }
}

}  // namespace flamed::store
