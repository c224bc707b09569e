// SPDX-License-Identifier: Apache-2.0
//
// walk_stack: a whole stack from a thread's registers and memory, by the rules of its code. The kernel program walks
// likewise (bpf/walk/unwind_walk.h). guess_stack: what may lie above code that has no rules.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
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
  /// Where the frame of each of them ends on the stack: the address of its caller's frame. The last one's is not known.
  std::vector<std::uint64_t> frame_ends{};
  /// Likewise, how the walk has stepped over it: a frame pointer, below which HotSpot's interpreter has its method, or
  /// the number of a register that had the caller's stack pointer; 0: otherwise.
  std::vector<std::uint64_t> stepped_by{};
  WalkEnd end = WalkEnd::kOutermost;
  /// The first frame of code without rules: everything beyond it followed frame pointers, at least once.
  std::optional<WalkFrame> unsure{};
  std::size_t sure_addresses = 0;  ///< up to that frame
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

/// See WalkedStack::stepped_by.
inline std::uint64_t step_mark_of(const Code& code, const WalkFrame& frame) {
  if (code.is != Code::Is::kRuled) return 0;
  if (code.rule.ra == RaKind::kAtFp) return frame.fp;
  return code.rule.cfa == CfaKind::kRegisterOffset ? code.rule.other_register : 0;
}

/// Continues from `frame`, whose address is the last one of the stack. `find(address) -> Code`; `read` as for step().
template <typename FindCode, typename ReadMemory>
void walk_from(Architecture architecture, WalkFrame frame, std::size_t most_frames, FindCode&& find, ReadMemory&& read,
               WalkedStack& stack) {
  for (;;) {
    const Code code = find(frame.lookup_address());
    if (code.is == Code::Is::kUnmapped || code.is == Code::Is::kPending) {
      stack.end = code.is == Code::Is::kPending ? WalkEnd::kPending : WalkEnd::kUnmapped;
      return;
    }
    const std::uint64_t stepped_by = step_mark_of(code, frame);
    StepResult result = StepResult::kNoInformation;
    if (code.is == Code::Is::kRuled) result = step(code.rule, architecture, frame, read);
    if (code.is == Code::Is::kWithoutRows || code.rule.cfa == CfaKind::kNone) {
      if (!stack.unsure) {
        stack.unsure = frame;
        stack.sure_addresses = stack.addresses.size();
      }
      result = step_by_frame_pointer(architecture, frame, read);
    }
    // Entry points that build the first frame themselves (Go's and others) end the chain with 0.
    if (result != StepResult::kNext || frame.pc == 0) {
      stack.end = walk_end_of(result);
      return;
    }
    if (stack.addresses.size() >= most_frames) {
      stack.end = WalkEnd::kTooDeep;
      return;
    }
    if (frame.interrupted && stack.addresses.size() > 1) ++stack.addresses.back();
    stack.frame_ends.push_back(frame.sp);
    stack.stepped_by.push_back(stepped_by);
    stack.addresses.push_back(frame.pc + (frame.interrupted ? 1 : 0));
  }
}

/// `thread_pointer`: for threads of Go programs, which change stacks.
template <typename FindCode, typename ReadMemory>
WalkedStack walk_stack(Architecture architecture, const AllRegisters& registers, std::size_t most_frames,
                       FindCode&& find, ReadMemory&& read, std::optional<std::uint64_t> thread_pointer = std::nullopt) {
  const RegisterNumbers numbers = registers_of(architecture);
  WalkFrame frame{.pc = registers[numbers.pc], .sp = registers[numbers.sp], .fp = registers[numbers.fp]};
  if (numbers.lr != kNoRegister) {
    frame.lr = registers[numbers.lr];
    frame.lr_known = true;
  }
  frame.registers = &registers;
  frame.thread_pointer = thread_pointer;
  WalkedStack stack{{frame.pc}};
  walk_from(architecture, frame, most_frames, find, read, stack);
  return stack;
}

/// For a walk that failed beyond code without rules: what may have called that code. Takes the words of the next 4 KiB
/// of stack for return addresses into code with rules, where `may_call(address)` says that the call before may lead to
/// any code, and from where rules alone lead to the outermost frame. A stack also holds return addresses of earlier
/// calls, and these may pass as well: so the result is empty unless all that pass belong to one stack. It lacks the
/// frames in between. It ends as pending where rows are missing.
template <typename FindCode, typename ReadMemory, typename MayCall>
std::optional<WalkedStack> guess_stack(Architecture architecture, const WalkedStack& failed, std::size_t most_frames,
                                       FindCode&& find, ReadMemory&& read, MayCall&& may_call) {
  constexpr std::uint64_t kMostBytes = 4096;
  constexpr int kMostTries = 64;
  const WalkFrame& unsure = *failed.unsure;
  if (failed.sure_addresses >= most_frames) return std::nullopt;
  std::optional<WalkedStack> callers;
  int tries = 0;
  for (std::uint64_t into = 0; into < kMostBytes && tries < kMostTries; into += sizeof(std::uint64_t)) {
    const std::optional<std::uint64_t> word = read(unsure.sp + into);
    if (!word) break;
    const std::uint64_t address = without_signature(architecture, *word);
    const Code::Is is = find(address - 1).is;
    if ((is != Code::Is::kRuled && is != Code::Is::kPending) || !may_call(address)) continue;
    ++tries;
    const WalkFrame caller{.pc = address,
                           .sp = unsure.sp + into + sizeof(std::uint64_t),
                           .fp = unsure.fp,
                           .interrupted = false,
                           .fp_known = unsure.fp_known};
    WalkedStack found{.addresses = {address}};
    walk_from(architecture, caller, most_frames - failed.sure_addresses, find, read, found);
    if (found.end == WalkEnd::kPending) return found;
    if (found.end == WalkEnd::kTooDeep) return std::nullopt;
    if (found.unsure || found.end != WalkEnd::kOutermost) continue;
    if (!callers)
      callers = std::move(found);
    else if (callers->addresses.size() < found.addresses.size() ||
             !std::equal(found.addresses.rbegin(), found.addresses.rend(), callers->addresses.rbegin()))
      return std::nullopt;
  }
  if (!callers) return std::nullopt;
  callers->frame_ends.clear();
  callers->stepped_by.clear();
  callers->addresses.insert(callers->addresses.begin(), failed.addresses.begin(),
                            failed.addresses.begin() + static_cast<std::ptrdiff_t>(failed.sure_addresses));
  return callers;
}

}  // namespace flamed::unwinder
