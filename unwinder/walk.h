// SPDX-License-Identifier: Apache-2.0
//
// walk_stack: a whole stack from a thread's registers and memory, by the rules of its code. The kernel program walks
// likewise (bpf/unwind_walk.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "unwinder/architecture.h"
#include "unwinder/rule.h"
#include "unwinder/step.h"

namespace flamed::unwinder {

/// What is known of the code at an address.
struct Code {
  enum class Is : std::uint8_t {
    kUnmapped,     ///< no known mapping
    kPending,      ///< its rows are not known yet
    kWithoutRows,  ///< to be walked by frame pointers
    kRuled,        ///< `rule` applies
  };
  Is is = Is::kUnmapped;
  Rule rule{};
};

enum class WalkEnd : std::uint8_t {
  kOutermost,  ///< the stack is whole
  kTooDeep,
  kUnmapped,
  kPending,
  kNoInformation,
  kUnsupported,
  kUnknownRegister,
  kUnreadable,
  kNotGrowing,
};

struct WalkedStack {
  /// Innermost first. All but the first count as return addresses: an interrupted address, or one that a signal handler
  /// returns to, is increased by one.
  std::vector<std::uint64_t> addresses;
  WalkEnd end = WalkEnd::kOutermost;
};

constexpr WalkEnd walk_end_of(StepResult result) {
  switch (result) {
    case StepResult::kNext:
    case StepResult::kOutermost:
      return WalkEnd::kOutermost;
    case StepResult::kNoInformation:
      return WalkEnd::kNoInformation;
    case StepResult::kUnsupported:
      return WalkEnd::kUnsupported;
    case StepResult::kUnknownRegister:
      return WalkEnd::kUnknownRegister;
    case StepResult::kUnreadable:
      return WalkEnd::kUnreadable;
    case StepResult::kNotGrowing:
      return WalkEnd::kNotGrowing;
  }
  return WalkEnd::kUnsupported;
}

/// `find(address) -> Code`; `read` as for step().
template <typename FindCode, typename ReadMemory>
WalkedStack walk_stack(Architecture architecture, const AllRegisters& registers, std::size_t most_frames,
                       FindCode&& find, ReadMemory&& read) {
  const RegisterNumbers numbers = registers_of(architecture);
  WalkFrame frame{.pc = registers[numbers.pc], .sp = registers[numbers.sp], .fp = registers[numbers.fp]};
  if (numbers.lr != kNoRegister) {
    frame.lr = registers[numbers.lr];
    frame.lr_known = true;
  }
  frame.registers = &registers;
  WalkedStack stack{{frame.pc}};
  for (;;) {
    const Code code = find(frame.lookup_address());
    if (code.is == Code::Is::kUnmapped || code.is == Code::Is::kPending) {
      stack.end = code.is == Code::Is::kPending ? WalkEnd::kPending : WalkEnd::kUnmapped;
      return stack;
    }
    StepResult result = StepResult::kNoInformation;
    if (code.is == Code::Is::kRuled) result = step(code.rule, architecture, frame, read);
    if (code.is == Code::Is::kWithoutRows || code.rule.cfa == CfaKind::kNone)
      result = step_by_frame_pointer(frame, read);
    // Entry points that build the first frame themselves (Go's and others) end the chain with 0.
    if (result != StepResult::kNext || frame.pc == 0) {
      stack.end = walk_end_of(result);
      return stack;
    }
    if (stack.addresses.size() >= most_frames) {
      stack.end = WalkEnd::kTooDeep;
      return stack;
    }
    if (frame.interrupted && stack.addresses.size() > 1) ++stack.addresses.back();
    stack.addresses.push_back(frame.pc + (frame.interrupted ? 1 : 0));
  }
}

}  // namespace flamed::unwinder
