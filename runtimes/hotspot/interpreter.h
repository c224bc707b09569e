// SPDX-License-Identifier: Apache-2.0
//
// How frames of HotSpot's interpreter are read: which slots have the method and its bytecode.
#pragma once

#include <cstdint>
#include <optional>

#include "runtimes/frame_slots.h"
#include "runtimes/hotspot/layout.h"

namespace flamed::runtimes {

/// The function is the Method, its code object the ConstMethod, behind which lies the bytecode. Empty: the JVM does not
/// describe its methods, or in a way that can't be true.
std::optional<FrameSlots> interpreter_slots(const HotSpotLayout& layout);

}  // namespace flamed::runtimes
