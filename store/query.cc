// SPDX-License-Identifier: Apache-2.0
#include "store/query.h"

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>

#include "store/profile_tree.h"
#include "store/slot_selection.h"
#include "store/snapshot_data.h"

namespace flamed::store {
namespace {

constexpr std::uint32_t kNone = 0xffffffffU;
// More boxes in a row than a person can tell apart.
constexpr std::size_t kMostProcessParts = 256;

bool matches(const ProcessSelector& selector, ProcessId id) {
  return id.pid == selector.pid && (!selector.start_ticks || *selector.start_ticks == id.start_ticks);
}

/// One thread's stacks in one slot.
struct ThreadStacks {
  std::uint32_t part = 0;  ///< the subtree of the profile that they belong to
  std::int64_t period_ns = 0;
  std::span<const std::uint8_t> bytes;
};

NamedFrame marker_frame(Truncation reason) {
  return {"[truncated: " + std::string(describe(reason)) + "]", "", FrameKind::kMarker, ""};
}

/// Two processes that had one pid must not fall together: they get their start time into their label.
std::string label(const ProcessRecord& record, bool pid_was_reused) {
  std::string pid = std::to_string(record.id.pid);
  if (pid_was_reused) pid += "@" + std::to_string(record.id.start_ticks);
  return *record.comm + " (" + pid + ")";
}

/// Builds one profile. Works in flat arrays indexed by the store's ids: a day of a busy host is millions of counts.
class ProfileBuilder {
 public:
  ProfileBuilder(const SnapshotData& snapshot, const Selection& selection)
      : snapshot_(snapshot), selection_(selection), slots_(snapshot, selection.window) {}

  Profile build(FrameNamer& namer) {
    Profile profile;
    profile.asked = selection_.window;
    profile.used = slots_.used();
    profile.resolution_ns = kNsPerMinute;
    profile.period_ns = slots_.period_ns();
    profile.quality.lost = slots_.quality().lost;
    profile.warnings = slots_.warnings();

    collect();
    walk_stacks();
    form_parts();
    ProfileTree tree(root_frame());
    name_frames(tree, namer);
    for (std::size_t part = 0; part < labels_.size(); ++part) add_part(tree, static_cast<std::uint32_t>(part), profile);
    tree_was_cut_ = tree.was_cut();
    std::move(tree).finish(profile);
    describe_processes(profile);
    return profile;
  }

 private:
  /// What is known of a node of the call-tree once a walk has come by.
  static constexpr std::uint8_t kUnseen = 0;
  static constexpr std::uint8_t kWhole = 1;
  static constexpr std::uint8_t kTruncated = 2;  ///< + Truncation

  /// Finds the selected threads' stacks. Their part is the place of their process in processes_ at first.
  void collect() {
    std::vector<std::uint32_t> part_of(snapshot_.processes.limit(), kNone);
    std::vector<bool> wanted;
    if (!selection_.processes.empty()) {
      wanted.assign(snapshot_.processes.limit(), false);
      snapshot_.processes.for_each_place([&](std::uint32_t process, const ProcessRecord& record) {
        wanted[process] = record.in_use() && is_selected(record.id);
      });
    }
    for (const SelectedSlot& slot : slots_.slots()) {
      slot.histogram->for_each_thread([&](std::uint32_t thread, std::span<const std::uint8_t> bytes) {
        std::uint32_t process = snapshot_.threads[thread].process;
        if (!selection_.processes.empty() && !wanted[process]) return;
        if (part_of[process] == kNone) {
          part_of[process] = static_cast<std::uint32_t>(processes_.size());
          processes_.push_back(process);
        }
        stacks_.push_back({part_of[process], slot.bounds.period_ns, bytes});
      });
    }
  }

  /// Sees every node that any selected stack passes through: how its stack begins, and which frames need a name.
  /// Counts the processes' samples on the way.
  void walk_stacks() {
    state_.assign(snapshot_.tree.nodes.limit(), kUnseen);
    state_[kEmptyStack.value] = kWhole;
    chain_of_.assign(snapshot_.tree.frames.limit(), kNone);
    samples_of_.assign(processes_.size(), 0);
    for (const ThreadStacks& stacks : stacks_) {
      std::uint64_t& samples = samples_of_[stacks.part];
      Histogram::for_each_stack(stacks.bytes, [&](StackRef ref, std::uint64_t count) {
        samples += count;
        path_.clear();
        std::uint32_t node = ref.stack.value;
        for (; state_[node] == kUnseen; node = snapshot_.tree.nodes[node].caller.value) path_.push_back(node);
        std::uint8_t state = state_[node];
        for (std::size_t i = path_.size(); i-- > 0;) {
          std::uint32_t frame_id = snapshot_.tree.nodes[path_[i]].frame.value;
          const Frame& frame = snapshot_.tree.frames[frame_id];
          if (frame.module == kTruncatedModule) {
            state = static_cast<std::uint8_t>(kTruncated + frame.offset);
          } else if (chain_of_[frame_id] == kNone) {
            chain_of_[frame_id] = static_cast<std::uint32_t>(frames_.size());
            frames_.push_back(frame);
          }
          state_[path_[i]] = state;
        }
      });
    }
  }

  /// Decides which processes share a subtree, and groups the stacks accordingly. A chosen pid is one tree. Of the whole
  /// machine, the processes that used most have a subtree each; a host that starts programs all day has a hundred
  /// thousand others, which share one for each name.
  void form_parts() {
    std::vector<std::uint32_t> order(processes_.size());  // places in processes_, most samples first
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return samples_of_[a] > samples_of_[b]; });
    std::vector<std::uint32_t> part_of(processes_.size(), 0);
    if (one_pid()) {
      labels_.emplace_back();
    } else {
      std::unordered_map<std::int32_t, std::size_t> pid_uses;
      for (std::uint32_t process : processes_) ++pid_uses[snapshot_.processes[process].id.pid];
      std::unordered_map<std::string, std::uint32_t> shared;
      std::vector<std::size_t> sharers;  // by part
      std::vector<std::string> names;
      for (std::size_t i = 0; i < order.size(); ++i) {
        const ProcessRecord& record = snapshot_.processes[processes_[order[i]]];
        auto part = static_cast<std::uint32_t>(labels_.size());
        if (i >= kMostProcessParts) part = shared.try_emplace(*record.comm, part).first->second;
        part_of[order[i]] = part;
        if (part == labels_.size()) {
          labels_.push_back(label(record, pid_uses[record.id.pid] > 1));
          sharers.push_back(0);
          names.push_back(*record.comm);
        }
        ++sharers[part];
      }
      for (std::size_t part = 0; part < labels_.size(); ++part) {
        if (sharers[part] > 1) labels_[part] = names[part] + " (" + std::to_string(sharers[part]) + " processes)";
      }
    }
    part_start_.assign(labels_.size() + 1, 0);
    for (ThreadStacks& stacks : stacks_) {
      stacks.part = part_of[stacks.part];
      ++part_start_[stacks.part + 1];
    }
    std::partial_sum(part_start_.begin(), part_start_.end(), part_start_.begin());
    std::vector<std::size_t> next(part_start_.begin(), part_start_.end() - 1);
    std::vector<ThreadStacks> grouped(stacks_.size());
    for (const ThreadStacks& stacks : stacks_) grouped[next[stacks.part]++] = stacks;
    stacks_ = std::move(grouped);
  }

  /// The selected process when only one pid is asked for, else null.
  [[nodiscard]] const ProcessSelector* one_pid() const {
    return selection_.processes.size() == 1 ? &selection_.processes.front() : nullptr;
  }
  [[nodiscard]] bool is_selected(ProcessId id) const {
    return std::any_of(selection_.processes.begin(), selection_.processes.end(),
                       [&](const ProcessSelector& selector) { return matches(selector, id); });
  }

  NamedFrame root_frame() const {
    if (!one_pid()) return {"all", "", FrameKind::kRoot, ""};
    if (processes_.empty()) return {"pid " + std::to_string(one_pid()->pid), "", FrameKind::kRoot, ""};
    return {label(snapshot_.processes[processes_.back()], false), "", FrameKind::kRoot, ""};
  }

  void name_frames(ProfileTree& tree, FrameNamer& namer) {
    std::vector<std::shared_ptr<const InlineChain>> chains;
    if (!frames_.empty()) chains = namer.name(frames_);
    chains.resize(frames_.size());
    chain_start_.reserve(frames_.size() + 1);
    for (const auto& chain : chains) {
      chain_start_.push_back(static_cast<std::uint32_t>(chain_frames_.size()));
      if (chain == nullptr || chain->empty()) {
        chain_frames_.push_back(tree.intern({"[unknown]", "", FrameKind::kUnknown, "nobody could name it"}));
        continue;
      }
      for (const NamedFrame& frame : *chain) chain_frames_.push_back(tree.intern(frame));
    }
    chain_start_.push_back(static_cast<std::uint32_t>(chain_frames_.size()));
    for (std::size_t reason = 0; reason < kTruncationCount; ++reason) {
      markers_[reason] = tree.intern(marker_frame(static_cast<Truncation>(reason)));
    }
    totals_.assign(snapshot_.tree.nodes.limit(), Total{});
    placed_.assign(snapshot_.tree.nodes.limit(), kNone);
  }

  /// Adds the subtree of one part, and its share of the quality.
  void add_part(ProfileTree& tree, std::uint32_t part, Profile& profile) {
    std::uint32_t top = 0;
    if (!one_pid()) top = tree.child(0, tree.intern({labels_[part], "", FrameKind::kRoot, ""}));
    placed_[kEmptyStack.value] = top;
    touched_.assign(1, kEmptyStack.value);  // nodes to forget afterwards

    std::vector<std::uint32_t> leaves;
    std::vector<Cut> cuts;
    for (std::size_t i = part_start_[part]; i < part_start_[part + 1]; ++i) {
      auto period_ns = static_cast<std::uint64_t>(stacks_[i].period_ns);
      Histogram::for_each_stack(stacks_[i].bytes, [&](StackRef ref, std::uint64_t count) {
        if (ref.cut) {
          cuts.push_back({ref.stack.value, {count, count * period_ns}});
          return;
        }
        Total& total = totals_[ref.stack.value];
        if (total.samples == 0) leaves.push_back(ref.stack.value);
        total.samples += count;
        total.ns += count * period_ns;
      });
    }
    for (std::uint32_t leaf : leaves) {
      Total& total = totals_[leaf];
      tree.add_self(place(tree, leaf), total.samples, total.ns);
      if (state_[leaf] == kWhole) {
        profile.quality.whole += total.samples;
      } else {
        profile.quality.truncated[state_[leaf] - kTruncated] += total.samples;
      }
      total = Total{};
    }
    for (const Cut& cut : cuts) {
      std::uint32_t node =
          tree.child(place(tree, cut.node), markers_[static_cast<std::size_t>(Truncation::kStoreFull)]);
      tree.add_self(node, cut.total.samples, cut.total.ns);
      profile.quality.truncated[static_cast<std::size_t>(Truncation::kStoreFull)] += cut.total.samples;
    }
    for (std::uint32_t node : touched_) placed_[node] = kNone;
  }

  /// The profile's node for a call-tree node, in the current part.
  std::uint32_t place(ProfileTree& tree, std::uint32_t node) {
    path_.clear();
    for (; placed_[node] == kNone; node = snapshot_.tree.nodes[node].caller.value) path_.push_back(node);
    std::uint32_t at = placed_[node];
    for (std::size_t i = path_.size(); i-- > 0;) {
      std::uint32_t frame_id = snapshot_.tree.nodes[path_[i]].frame.value;
      std::uint32_t chain = chain_of_[frame_id];
      if (chain == kNone) {
        at = tree.child(at, markers_[snapshot_.tree.frames[frame_id].offset]);
      } else {
        for (std::uint32_t c = chain_start_[chain]; c < chain_start_[chain + 1]; ++c) {
          at = tree.child(at, chain_frames_[c]);
        }
      }
      placed_[path_[i]] = at;
      touched_.push_back(path_[i]);
    }
    return at;
  }

  void describe_processes(Profile& profile) const {
    for (std::uint32_t process : processes_) profile.processes.push_back(snapshot_.processes[process].info());
    if (!selection_.processes.empty() && processes_.empty()) {
      snapshot_.processes.for_each_place([&](std::uint32_t, const ProcessRecord& record) {
        if (record.in_use() && is_selected(record.id)) profile.processes.push_back(record.info());
      });
    }
    std::sort(profile.processes.begin(), profile.processes.end(),
              [](const ProcessInfo& a, const ProcessInfo& b) { return a.id < b.id; });
    if (one_pid() != nullptr && processes_.size() > 1) {
      std::string choices;
      for (const ProcessInfo& info : profile.processes) {
        choices += (choices.empty() ? "pid=" : ", pid=") + std::to_string(info.id.pid) + "@" +
                   std::to_string(info.id.start_ticks) + " (" + info.comm + ")";
      }
      profile.warnings.push_back("Several processes had pid " + std::to_string(one_pid()->pid) +
                                 " in the window and are merged here. Choose one with " + choices + ".");
    }
    if (tree_was_cut_) {
      profile.warnings.emplace_back(
          "The answer would have been too large: where it was, inner frames are left out and their time is shown as "
          "their caller's. A single process or a shorter window is shown in full.");
    }
    if (profile.nodes[0].total_samples == 0 && !slots_.slots().empty()) {
      profile.warnings.push_back(one_pid() != nullptr
                                     ? "Process " + std::to_string(one_pid()->pid) +
                                           " has no samples in the window: it used no CPU, or did not exist."
                                     : std::string("There are no samples in the window: the machine was idle."));
    }
  }

  struct Total {
    std::uint64_t samples = 0;
    std::uint64_t ns = 0;
  };
  struct Cut {
    std::uint32_t node = 0;
    Total total;
  };

  const SnapshotData& snapshot_;
  const Selection& selection_;
  SlotSelection slots_;

  std::vector<std::uint32_t> processes_;   ///< with samples, in the order of appearance
  std::vector<std::uint64_t> samples_of_;  ///< by place in processes_
  std::vector<std::string> labels_;        ///< of the parts
  std::vector<ThreadStacks> stacks_;       ///< by part: part p is [part_start_[p], part_start_[p + 1])
  std::vector<std::size_t> part_start_;

  // By node of the call-tree.
  std::vector<std::uint8_t> state_;
  std::vector<Total> totals_;           ///< of the current part
  std::vector<std::uint32_t> placed_;   ///< node of the profile, in the current part
  std::vector<std::uint32_t> touched_;  ///< where placed_ is set
  std::vector<std::uint32_t> path_;     ///< scratch

  std::vector<Frame> frames_;                ///< distinct, as the namer gets them
  std::vector<std::uint32_t> chain_of_;      ///< by FrameId: index into frames_
  std::vector<std::uint32_t> chain_start_;   ///< by index in frames_: into chain_frames_
  std::vector<std::uint32_t> chain_frames_;  ///< frames of the ProfileTree, chain after chain
  std::array<std::uint32_t, kTruncationCount> markers_{};
  bool tree_was_cut_ = false;
};

}  // namespace

bool knows(const Snapshot& snapshot, const ProcessSelector& process) {
  bool known = false;
  snapshot.data().processes.for_each_place([&](std::uint32_t, const ProcessRecord& record) {
    known = known || (record.in_use() && matches(process, record.id));
  });
  return known;
}

Profile build_profile(const Snapshot& snapshot, const Selection& selection, FrameNamer& namer) {
  return ProfileBuilder(snapshot.data(), selection).build(namer);
}

std::vector<ProcessUsage> process_usage(const Snapshot& snapshot, const WallWindow& window) {
  const SnapshotData& data = snapshot.data();
  SlotSelection slots(data, window);
  struct Total {
    std::uint64_t samples = 0;
    std::uint64_t ns = 0;
  };
  std::vector<Total> totals(data.processes.limit());
  for (const SelectedSlot& slot : slots.slots()) {
    slot.histogram->for_each_thread([&](std::uint32_t thread, std::span<const std::uint8_t> bytes) {
      std::uint64_t samples = 0;
      Histogram::for_each_stack(bytes, [&](StackRef, std::uint64_t count) { samples += count; });
      Total& total = totals[data.threads[thread].process];
      total.samples += samples;
      total.ns += samples * static_cast<std::uint64_t>(slot.bounds.period_ns);
    });
  }
  std::vector<ProcessUsage> usage;
  for (std::uint32_t process = 0; process < totals.size(); ++process) {
    if (totals[process].samples == 0) continue;
    usage.push_back({data.processes[process].info(), totals[process].samples, totals[process].ns});
  }
  std::sort(usage.begin(), usage.end(), [](const ProcessUsage& a, const ProcessUsage& b) {
    return a.cpu_ns != b.cpu_ns ? a.cpu_ns > b.cpu_ns : a.info.id < b.info.id;
  });
  return usage;
}

}  // namespace flamed::store
