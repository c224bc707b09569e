// SPDX-License-Identifier: Apache-2.0
//
// Rule: how to get from one frame to its caller, for a stretch of code.
//
// DWARF 5 section 6.4 describes this as a table with a column for each register. A stack walk needs three columns: the
// canonical frame address (CFA: the stack pointer just before the call, so the caller's sp), the frame pointer (rbp or
// x29, because callers may compute their CFA from it) and the return address. A Rule is one row of these three columns;
// a whole system has a few thousand different ones, so code ranges refer to them by number (see row.h).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace flamed::unwinder {

/// How to compute the CFA. The kernel program switches on these values, so they don't change.
enum class CfaKind : std::uint8_t {
  kNone = 0,            ///< no unwind information: fall back to frame pointers
  kUnsupported = 1,     ///< unwind information that a Rule can't express; counted in BuildStats
  kOutermost = 2,       ///< the return address is undefined: the stack ends here, whole
  kSpOffset = 3,        ///< sp + cfa_offset
  kFpOffset = 4,        ///< fp + cfa_offset
  kSpDeref = 5,         ///< *(sp + cfa_offset) + cfa_addend: assembly that saves the caller's sp in its frame (OpenSSL)
  kFpDeref = 6,         ///< *(fp + cfa_offset) + cfa_addend: gcc's dynamically realigned frames
  kPlt = 7,             ///< sp + cfa_offset + (pc % 16 >= plt_threshold ? 8 : 0): lazy stubs of the x86-64 PLT
  kSignalFrame = 8,     ///< sp, fp and pc of the interrupted code are at sp + cfa_offset, + fp_offset, + ra_offset
  kRegisterOffset = 9,  ///< other_register + cfa_offset
  kRegisterDeref = 10,  ///< *(other_register + cfa_offset) + cfa_addend
  // From one of Go's stacks to another, which may be lower in memory.
  kGoSaved = 11,  ///< the sp that the runtime saved in a goroutine + cfa_offset, see GoLayout
  kGoDepth = 12,  ///< (end of the stack of the goroutine *(sp + cfa_offset + 8)) - *(sp + cfa_offset) + cfa_addend
  kGoFrame = 13,  ///< fp + cfa_offset
  kPending = 14,  ///< code that may have been made since rows were found: there will be a rule
};
inline constexpr std::size_t kCfaKinds = 15;

/// Where the caller's frame pointer is.
enum class FpKind : std::uint8_t {
  kSame = 0,        ///< untouched
  kAtCfa = 1,       ///< *(CFA + fp_offset)
  kAtFp = 2,        ///< *(fp + fp_offset): gcc's dynamically realigned frames
  kAtSp = 3,        ///< *(sp + fp_offset)
  kInRegister = 4,  ///< in other_register
  kUnknown = 5,  ///< lost (DW_CFA_undefined), or an expression that a Rule can't express (counted): the walk ends at a
                 ///< caller that needs it
};

/// Where the return address is.
enum class RaKind : std::uint8_t {
  kAtCfa = 0,       ///< *(CFA + ra_offset); x86-64: nearly always -8
  kInLr = 1,        ///< still in the link register (arm64), as on entry: only in the interrupted frame
  kAtSp = 2,        ///< *(sp + ra_offset)
  kInRegister = 3,  ///< in other_register (x86-64: vfork keeps it in rdi)
  kInGo = 4,        ///< *(goroutine + ra_offset), only with CfaKind::kGoSaved
  kAtFp = 5,        ///< *(fp + ra_offset), only if the CFA is found by the frame pointer: HotSpot's interpreter
};
inline constexpr std::size_t kRaKinds = 6;

/// Where Go's runtime saves a goroutine's place, in bytes (runtime/runtime2.go; the same from Go 1.17 to 1.27). A
/// thread has the address of its current g in a word below its thread pointer: `other_register` words below it. That g
/// may be the system stack's. Its m has the g of the system stack at 0, and that of the goroutine elsewhere: kGoSaved
/// takes the g at *(m + cfa_addend). If there is none, the system stack runs for no goroutine, and the stack ends.
struct GoLayout {
  static constexpr std::uint64_t kStackEnd = 8;  ///< g.stack.hi
  static constexpr std::uint64_t kThread = 48;   ///< g.m
  static constexpr std::uint64_t kSavedSp = 56;  ///< g.sched.sp
  static constexpr std::uint64_t kSavedPc = 64;  ///< g.sched.pc
};
/// So many times may a stack go on at a lower address: C and Go may call each other. It also ends loops.
inline constexpr std::uint32_t kMaxStackSwitches = 16;

inline constexpr std::uint8_t kSameBase = 0xff;

/// 24 bytes without padding, so that it can be hashed and copied into BPF maps directly. Unused fields are 0: equal
/// rules have equal bytes.
struct Rule {
  CfaKind cfa = CfaKind::kNone;
  FpKind fp = FpKind::kSame;
  RaKind ra = RaKind::kAtCfa;
  std::uint8_t signal_frame = 0;  ///< 1: the caller was interrupted, so its pc is exact and not a return address
  std::uint8_t ra_signed = 0;     ///< 1 (arm64): the return address has a pointer authentication code
  /// Where the caller's base register (RegisterNumbers::base) is: *(CFA - 8 * base_words), or kSameBase: untouched. 0:
  /// not known.
  std::uint8_t base_words = 0;
  /// DWARF number of a register that the CFA, the frame pointer or the return address is found by, never by two; with
  /// kSameBase the base register; of kGoSaved: see GoLayout. All registers are known in interrupted code, and elsewhere
  /// only the base register.
  std::uint8_t other_register = 0;
  std::uint8_t plt_threshold = 0;
  std::int32_t cfa_offset = 0;
  std::int32_t cfa_addend = 0;
  std::int32_t fp_offset = 0;
  std::int32_t ra_offset = 0;

  friend constexpr bool operator==(const Rule&, const Rule&) = default;
};
static_assert(sizeof(Rule) == 24);

}  // namespace flamed::unwinder

template <>
struct std::hash<flamed::unwinder::Rule> {
  std::size_t operator()(const flamed::unwinder::Rule& rule) const noexcept {
    struct Words {
      std::uint64_t word[3];
    };
    const auto [word] = std::bit_cast<Words>(rule);
    std::uint64_t h = word[0] * 0x9e3779b97f4a7c15ULL;
    h = (h ^ word[1] ^ (h >> 29)) * 0xff51afd7ed558ccdULL;
    h = (h ^ word[2] ^ (h >> 32)) * 0xc4ceb9fe1a85ec53ULL;
    return static_cast<std::size_t>(h ^ (h >> 29));
  }
};
