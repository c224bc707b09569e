// SPDX-License-Identifier: Apache-2.0
//
// GroupedStacks: the sums of a selection's samples: how often each group of an answer has each stack. Uses flat arrays
// indexed by the store's ids: a day of a busy host is millions of counts. A local of one query; must not outlive its
// arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "store/index/seen_frames.h"
#include "store/index/stack_states.h"
#include "store/model/profile.h"
#include "store/model/profile_options.h"
#include "store/model/query_budget.h"
#include "store/model/selection.h"
#include "store/query/slot_selection.h"
#include "store/ring/snapshot_data.h"

namespace flamed::store {

class GroupedStacks {
 public:
  /// `counters`: one for each node of the call-tree, all 0, and reset to 0 in the end.
  GroupedStacks(const SnapshotData& snapshot, const Selection& selection, const ProfileOptions& options,
                QueryBudget& budget, std::vector<std::uint32_t>& counters);
  ~GroupedStacks();
  GroupedStacks(const GroupedStacks&) = delete;
  GroupedStacks& operator=(const GroupedStacks&) = delete;

  // -- First ----------------------------------------------------------------------------------------------------------

  /// Adds up, and records the frames that need a name. False: the budget is exhausted.
  [[nodiscard]] bool add_up(StackStates& states, SeenFrames& seen);

  // -- Then -----------------------------------------------------------------------------------------------------------

  [[nodiscard]] Side side() const { return selection_.side; }
  [[nodiscard]] bool is_grouped() const { return group_ != Group::kNone; }
  /// The name of the answer's root.
  [[nodiscard]] std::string root_name() const;
  /// The number of stacks; a stack counts once for each process that has it.
  [[nodiscard]] std::size_t size() const { return counts_.size(); }
  [[nodiscard]] std::size_t parts() const { return labels_.size(); }
  [[nodiscard]] const std::string& label(std::size_t part) const { return labels_[part]; }
  /// visit(StackRef, samples): visits each stack of the part once, cut ones possibly several times.
  template <typename F>
  void for_each_stack(std::size_t part, F&& visit) {
    const std::size_t first = part_start_[part];
    const std::size_t end = part_start_[part + 1];
    if (end - first == 1) {
      const std::uint32_t key = part_keys_[first];
      for (std::size_t c = key_start_[key]; c < key_start_[key + 1]; ++c) visit(counts_[c].ref, counts_[c].samples);
      return;
    }
    for (std::size_t i = first; i < end; ++i) {
      const std::uint32_t key = part_keys_[i];
      for (std::size_t c = key_start_[key]; c < key_start_[key + 1]; ++c) {
        const Count& count = counts_[c];
        if (count.ref.cut) {
          visit(count.ref, count.samples);
          continue;
        }
        add(count.ref.stack.value, count.samples);
      }
    }
    take_sums([&](std::uint32_t leaf, std::uint64_t samples) { visit(StackRef{StackId{leaf}, false}, samples); });
  }

  /// `quality` has only the losses.
  [[nodiscard]] const AnswerFacts& facts() const { return slots_.facts(); }
  /// Those with samples, and those selected by pid.
  [[nodiscard]] std::vector<ProcessInfo> processes();
  /// Warns if a pid was used by several processes.
  void warn_of_reused_pid(const std::vector<ProcessInfo>& processes, std::vector<std::string>& warnings) const;
  /// Warns why an answer is empty. `quality` is of all samples that were added up.
  void warn_of_emptiness(const Quality& quality, std::vector<std::string>& warnings) const;

 private:
  /// One thread's stacks in one slot.
  struct Stacks {
    std::uint32_t key = 0;
    ThreadStacks stacks;
  };
  /// How often a key has a stack.
  struct Count {
    StackRef ref;
    std::uint64_t samples = 0;
  };

  /// The sum of a node of the call-tree, as a leaf.
  struct Sum {
    std::uint32_t leaf = 0;
    std::uint64_t samples = 0;
  };

  void add(std::uint32_t leaf, std::uint64_t samples) {
    std::uint32_t& place = place_of_[leaf];
    if (place == 0) {
      sums_.push_back({leaf, 0});
      place = static_cast<std::uint32_t>(sums_.size());
    }
    sums_[place - 1].samples += samples;
  }
  /// Calls take(leaf, samples) in the order of appearance, and clears the sums.
  template <typename F>
  void take_sums(F&& take) {
    for (const Sum& sum : sums_) {
      place_of_[sum.leaf] = 0;
      take(sum.leaf, sum.samples);
    }
    sums_.clear();
  }

  /// The selected process if the selection is a single pid, else null.
  [[nodiscard]] const ProcessSelector* only_pid() const;
  [[nodiscard]] bool collect();
  void form_parts();
  void form_parts_of_single(bool threads);
  /// One part for each name of a key.
  void form_named_parts(const std::function<std::string(std::uint32_t)>& name_of);
  void group_keys(const std::vector<std::uint32_t>& part_of);

  const SnapshotData& snapshot_;
  const Selection& selection_;
  QueryBudget& budget_;
  SlotSelection slots_;
  const Group group_;

  // Stacks are counted by "key": a process or a thread, in the order of appearance; a single key if nothing is grouped.
  // A part is a subtree of the answer, with one or several keys.
  std::vector<std::uint32_t> keys_;        ///< index into the ProcessTable or the ThreadTable
  std::vector<std::uint64_t> samples_of_;  ///< by key
  std::vector<std::uint32_t> processes_;   ///< with samples
  std::vector<std::string> labels_;        ///< of the parts
  std::vector<Stacks> stacks_;
  std::vector<Count> counts_;  ///< by key: key k is [key_start_[k], key_start_[k + 1])
  std::vector<std::size_t> key_start_;
  std::vector<std::uint32_t> part_keys_;  ///< by part: part p is [part_start_[p], part_start_[p + 1])
  std::vector<std::size_t> part_start_;
  std::vector<Sum> sums_;                 ///< of the current key or part; empty otherwise
  std::vector<std::uint32_t>& place_of_;  ///< by node of the call-tree: 1 + index into sums_; 0: none
};

}  // namespace flamed::store
