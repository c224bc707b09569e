// SPDX-License-Identifier: Apache-2.0
//
// FunctionIndex: what the call-tree is in functions, kept from one question to the next. Names and callers of most
// frames are the same each time: a question that finds them here only adds up. It follows the call-tree, whose ids are
// used again. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "store/index/function_table.h"
#include "store/index/function_tree.h"
#include "store/index/shown_frames.h"
#include "store/index/stack_states.h"
#include "store/model/profile.h"
#include "store/model/profile_options.h"
#include "store/ring/call_tree.h"

namespace flamed::store {

class FunctionIndex {
 public:
  /// Of the options, how code is shown.
  FunctionIndex(const ProfileOptions& options, std::size_t most_nodes)
      : functions_(options), shown_(functions_), states_(view_), most_nodes_(most_nodes) {}
  FunctionIndex(const FunctionIndex&) = delete;
  FunctionIndex& operator=(const FunctionIndex&) = delete;

  /// From here on it is this call-tree that is asked about.
  void follow(const CallTree::View& view);
  /// Names frames of the call-tree, by their numbers, where it is not known that their names are the same as before.
  void name(std::span<const std::uint32_t> frames, FrameNamer& namer);

  [[nodiscard]] StackStates& states() { return states_; }
  [[nodiscard]] FunctionTable& functions() { return functions_; }
  [[nodiscard]] const ShownFrames& shown() const { return shown_; }
  /// The tree of all shapes that were asked for; once frames are named.
  [[nodiscard]] FunctionTree& tree(FunctionTree::Shape shape);
  /// As many as the call-tree has nodes, all 0; the user leaves them so.
  [[nodiscard]] std::vector<std::uint32_t>& counters();
  /// By node of a FunctionTree, of which there may be more by now: all 0; the user leaves them so.
  [[nodiscard]] std::vector<std::uint32_t>& places() { return places_; }

  [[nodiscard]] bool was_cut() const;
  /// About what it takes. What the store has replaced of the call-tree since the last question lives for its sake, too.
  [[nodiscard]] std::size_t bytes() const;

 private:
  void forget_stacks();

  CallTree::View view_;
  FunctionTable functions_;
  ShownFrames shown_;
  StackStates states_;
  const std::size_t most_nodes_;
  std::vector<std::unique_ptr<FunctionTree>> trees_;
  std::vector<std::uint32_t> counters_;
  std::vector<std::uint32_t> places_;
};

}  // namespace flamed::store
