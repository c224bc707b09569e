// SPDX-License-Identifier: Apache-2.0
//
// Renumbering: some minutes of a session as a session of their own, with a dictionary that has what they refer to, and
// nothing else but the parents of their processes. Values stay as they are; only numbers change, unless what old
// minutes don't need is folded. Pure; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "archive/codec/additions.h"
#include "archive/codec/minute.h"
#include "archive/codec/names.h"
#include "archive/codec/samples.h"
#include "archive/codec/stack_places.h"
#include "archive/reading/same_chain.h"
#include "base/named_frame.h"
#include "store/model/selection.h"

namespace flamed::archive {

/// Then the threads of a process with one owner are one, without an id, and the frames of a module that have the same
/// names are one, with the address of the first.
enum class Folding : std::uint8_t { kNone, kThreadsAndFrames };
/// The name of such a thread.
inline constexpr const char* kAllThreads = "(all threads)";

class Renumbering {
 public:
  /// Gaps are kept that are in `stretch`.
  explicit Renumbering(store::WallWindow stretch, Folding folding = Folding::kNone)
      : stretch_(stretch), folds_(folding != Folding::kNone) {}

  /// Of a frame of the session. It comes with the first minute that has the frame, so all names are given first.
  void name(std::uint32_t frame, std::shared_ptr<const InlineChain> chain) {
    names_[frame] = *chains_.insert(std::move(chain)).first;
  }

  /// Likewise of a process, as it was by the end of a minute.
  void know(ProcessState state, std::int64_t minute);

  /// Of each minute of the session, in their order, up to the last one that is taken.
  void add(const Additions& additions, std::int64_t minute);
  /// The dictionary with all that was added.
  [[nodiscard]] const StackPlaces& known() const { return known_; }

  struct Renumbered {
    Additions additions;
    Minute minute;
    std::vector<Name> names;
    std::optional<std::vector<Sample>> samples;
  };
  /// A minute, of which all that it refers to was added. Its pairs may be in any order, and some the same: their counts
  /// add up. `samples`: if they are kept one by one, then the pairs are a minute's.
  [[nodiscard]] Renumbered take(Minute minute, std::optional<std::vector<Sample>> samples = {});

 private:
  /// By number in the session: number here + 1; 0: none.
  using Numbers = std::vector<std::uint32_t>;

  std::uint32_t thread_number(std::uint32_t old);
  std::uint32_t process_number(std::uint32_t old);
  std::uint32_t stack_number(std::uint32_t old);
  std::uint32_t frame_number(std::uint32_t old);
  std::uint32_t module_number(std::uint32_t old);
  static void merge_pairs(std::vector<Pair>& pairs);
  void take_gaps();

  struct LaterState {
    std::int64_t minute = 0;
    ProcessState state;
  };

  const store::WallWindow stretch_;
  const bool folds_;
  StackPlaces known_;
  std::vector<Module> modules_;
  std::vector<FrameAddition> frames_;
  std::vector<StackAddition> stacks_ = std::vector<StackAddition>(1);  ///< stack 0 has no frames
  std::vector<ThreadAddition> threads_;
  std::vector<ProcessState> processes_;  ///< the latest state
  std::unordered_map<ProcessId, LaterState> later_states_;
  std::size_t later_state_bytes_ = 0;
  std::unordered_map<ProcessId, std::uint32_t> process_of_;
  std::unordered_set<std::shared_ptr<const InlineChain>, HashOfChain, SameChain> chains_;
  std::unordered_map<std::uint32_t, std::shared_ptr<const InlineChain>> names_;  ///< by frame, of chains_
  std::vector<store::Gap> gaps_;                                                 ///< since the last one that was taken
  std::vector<std::uint32_t> changed_;                                           ///< likewise, processes with a number

  Numbers module_numbers_, frame_numbers_, thread_numbers_, process_numbers_;
  Numbers stack_numbers_ = {1};  ///< of stack 0
  DictionarySize size_;
  // Where it folds: new numbers + 1, or 0, by what is the same.
  std::map<std::tuple<std::uint32_t, std::uint32_t, bool>, std::uint32_t> folded_threads_;
  std::map<std::pair<std::uint32_t, const InlineChain*>, std::uint32_t> folded_frames_;
  std::unordered_map<std::uint64_t, std::uint32_t> folded_stacks_;
  Renumbered next_;
  std::vector<std::uint32_t> path_;  ///< scratch
};

}  // namespace flamed::archive
