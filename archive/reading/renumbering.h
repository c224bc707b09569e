// SPDX-License-Identifier: Apache-2.0
//
// Renumbering: some minutes of a session as a session of their own, with a dictionary that has what they refer to, and
// nothing else but the parents of their processes. Values stay as they are; only numbers change. Pure; one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "archive/codec/additions.h"
#include "archive/codec/minute.h"
#include "archive/codec/names.h"
#include "archive/codec/samples.h"
#include "base/named_frame.h"
#include "store/model/selection.h"

namespace flamed::archive {

class Renumbering {
 public:
  /// Gaps are kept that are in `stretch`.
  explicit Renumbering(store::WallWindow stretch) : stretch_(stretch) {}

  /// Of a frame of the session. It comes with the first minute that has the frame, so all names are given first.
  void name(std::uint32_t frame, std::shared_ptr<const InlineChain> chain) { names_[frame] = std::move(chain); }

  /// Of each minute of the session, in their order, up to the last one that is taken.
  void add(const Additions& additions);
  /// The dictionary with all that was added.
  [[nodiscard]] const DictionarySize& known() const { return known_; }

  struct Renumbered {
    Additions additions;
    Minute minute;
    std::vector<Name> names;
    std::optional<std::vector<Sample>> samples;
  };
  /// A minute whose additions were the last that were added. `samples`: if they are kept one by one.
  [[nodiscard]] Renumbered take(Minute minute, std::optional<std::vector<Sample>> samples = {});

 private:
  /// By number in the session: number here + 1; 0: none.
  using Numbers = std::vector<std::uint32_t>;

  std::uint32_t thread_number(std::uint32_t old);
  std::uint32_t process_number(std::uint32_t old);
  std::uint32_t stack_number(std::uint32_t old);
  std::uint32_t frame_number(std::uint32_t old);
  std::uint32_t module_number(std::uint32_t old);
  void take_gaps();

  const store::WallWindow stretch_;
  DictionarySize known_;
  std::vector<Module> modules_;
  std::vector<FrameAddition> frames_;
  std::vector<StackAddition> stacks_ = std::vector<StackAddition>(1);  ///< stack 0 has no frames
  std::vector<ThreadAddition> threads_;
  std::vector<ProcessState> processes_;  ///< the latest state
  std::unordered_map<ProcessId, std::uint32_t> process_of_;
  std::unordered_map<std::uint32_t, std::shared_ptr<const InlineChain>> names_;  ///< by frame
  std::vector<store::Gap> gaps_;                                                 ///< since the last one that was taken
  std::vector<std::uint32_t> changed_;                                           ///< likewise, processes with a number

  Numbers module_numbers_, frame_numbers_, thread_numbers_, process_numbers_;
  Numbers stack_numbers_ = {1};  ///< of stack 0
  DictionarySize size_;
  Renumbered next_;
  std::vector<std::uint32_t> path_;  ///< scratch
};

}  // namespace flamed::archive
