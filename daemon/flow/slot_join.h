// SPDX-License-Identifier: Apache-2.0
//
// join_slots: puts the frames of a runtime that keeps frame pointers in the place of the native frames that run them.
// Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/identity.h"

namespace flamed::daemon {

/// A frame of the runtime, and the number of the native frame that runs it; the innermost one's is 0.
struct RunFrame {
  std::uint64_t number = 0;
  Frame frame{};
};

/// `native` is outermost first, `run` innermost first. Appends to `joined`, outermost first. A native frame outside of
/// the runtime's module is code that was compiled at run time: the runtime's frames replace it. Those of the module
/// stay, and are marked as the interpreter's, except for the innermost one.
void join_slots(ModuleId module, std::span<const Frame> native, std::span<const RunFrame> run,
                std::vector<Frame>& joined);

}  // namespace flamed::daemon
