// SPDX-License-Identifier: Apache-2.0
//
// Why a thread with a stored stack waits, and who holds the lock.
#pragma once

#include <optional>

#include "store/model/wait_reason.h"
#include "store/ring/call_tree.h"
#include "store/ring/histogram.h"

namespace flamed::store {

/// Empty: it does not wait, or its innermost frame is not known.
inline std::optional<WaitReason> reason_of(const CallTree::View& tree, StackRef ref) {
  if (ref.cut || ref.stack == kEmptyStack) return std::nullopt;
  return wait_reason_in(tree.frames[tree.nodes[ref.stack.value].frame.value]);
}

/// The thread that holds the lock for which it waits. Empty: it waits for none, or that is not known.
inline std::optional<HolderFrame> holder_of(const CallTree::View& tree, StackRef ref) {
  if (reason_of(tree, ref) != WaitReason::kLock) return std::nullopt;
  const StackId caller = tree.nodes[ref.stack.value].caller;
  if (caller == kEmptyStack) return std::nullopt;
  return holder_in(tree.frames[tree.nodes[caller.value].frame.value]);
}

}  // namespace flamed::store
