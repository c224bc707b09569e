// SPDX-License-Identifier: Apache-2.0
#include "store/index/stack_states.h"

namespace flamed::store {

StackState StackStates::below(StackState caller, const Frame& frame) {
  unsigned bits = caller.bits_;
  if (frame.module != kTruncatedModule) {
    bits |= frame.module == kKernelModule ? StackState::kKernel : StackState::kUser;
  } else {
    // Of two marks in one stack, which a file from elsewhere may have, the outer one counts.
    if (!caller.truncation()) bits |= static_cast<unsigned>(frame.offset + 1) << StackState::kReasonShift;
    // That mark is for missing kernel frames; the user frames, if any, are complete.
    if (frame.offset != static_cast<std::uint64_t>(Truncation::kKernelDepthLimit)) bits |= StackState::kUser;
  }
  return StackState(bits);
}

}  // namespace flamed::store
