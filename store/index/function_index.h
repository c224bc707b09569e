// SPDX-License-Identifier: Apache-2.0
//
// FunctionIndex: the call-tree as functions, cached between queries. Names and callers of most frames are the same each
// time: a query that finds them here only adds up samples. It follows the call-tree, whose ids are reused. One thread
// at a time.
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
  /// Uses only the options that say how code is shown.
  FunctionIndex(const ProfileOptions& options, std::size_t most_nodes)
      : functions_(options), shown_(functions_, options.interpreter), states_(view_), most_nodes_(most_nodes) {}
  FunctionIndex(const FunctionIndex&) = delete;
  FunctionIndex& operator=(const FunctionIndex&) = delete;

  /// From here on queries are about this call-tree.
  void follow(const CallTree::View& view);
  /// Names frames of the call-tree, by their numbers, if their names may have changed.
  void name(std::span<const std::uint32_t> frames, FrameNamer& namer);

  [[nodiscard]] StackStates& states() { return states_; }
  [[nodiscard]] FunctionTable& functions() { return functions_; }
  [[nodiscard]] const ShownFrames& shown() const { return shown_; }
  /// The tree of this shape; only after frames were named.
  [[nodiscard]] FunctionTree& tree(FunctionTree::Shape shape);
  /// One for each node of the call-tree, all 0; the caller must reset them to 0.
  [[nodiscard]] std::vector<std::uint32_t>& counters();
  /// By node of a FunctionTree, which may have more nodes by now: all 0; the caller must reset them to 0.
  [[nodiscard]] std::vector<std::uint32_t>& places() { return places_; }

  [[nodiscard]] bool was_cut() const;
  /// Its approximate memory. It also keeps parts of the call-tree alive that the store has replaced since the last
  /// query.
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
