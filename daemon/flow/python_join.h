// SPDX-License-Identifier: Apache-2.0
//
// join_python: puts Python frames into the native stack that runs them. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/identity.h"
#include "bpf/linked_layout.h"

namespace flamed::daemon {

/// The frames of a runtime that a sample brought, see bpf/linked_layout.h. Innermost first.
struct LinkedStack {
  std::span<const flamed_linked_frame> frames;
  std::span<const std::uint64_t> calls;
  std::uint32_t layout = 0;
  bool is_cut = false;
};

/// How the module runs Python frames.
struct PythonRunner {
  ModuleId module;
  /// Up to 3.10 the function at this file offset runs one frame each, and they are joined in their order. 0 bytes: by
  /// the calls, whose native frames are known.
  std::uint64_t function = 0;
  std::uint64_t function_bytes = 0;
};

/// `native` is outermost first, and whole if `is_whole`; `python` has a frame for each of `linked`, innermost first.
/// Appends to `joined`, outermost first. Where a native frame runs Python frames, these are inside of it. Frames of the
/// module are marked as the interpreter's if they are outside of the innermost Python frame.
void join_python(const PythonRunner& runner, std::span<const Frame> native, bool is_whole, const LinkedStack& linked,
                 std::span<const Frame> python, std::vector<Frame>& joined);

}  // namespace flamed::daemon
