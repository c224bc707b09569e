// SPDX-License-Identifier: Apache-2.0
//
// Why a thread with a stored stack waits.
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

}  // namespace flamed::store
