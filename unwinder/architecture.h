// SPDX-License-Identifier: Apache-2.0
//
// Architecture: the properties of a processor for unwinding. Register numbers are DWARF's, from the "DWARF register
// number mapping" of the x86-64 psABI (table 3.36) and of "DWARF for the Arm 64-bit Architecture" (section 4.1).
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#if defined(__aarch64__)
#include "base/host.h"
#endif
#include "unwinder/rule.h"

namespace flamed::unwinder {

enum class Architecture : std::uint8_t { kX86_64, kArm64 };

struct RegisterNumbers {
  std::uint8_t pc;
  std::uint8_t sp;
  std::uint8_t fp;
  std::uint8_t lr;  ///< has the return address on entry to a function; kNoRegister if the stack has it
  /// By which code that aligns its stack finds its CFA, also while it calls other functions: glibc's
  /// _dl_runtime_resolve() with rbx, which its callees preserve. Compilers take the frame pointer.
  std::uint8_t base;
};

inline constexpr std::uint8_t kNoRegister = 0xff;

constexpr RegisterNumbers registers_of(Architecture architecture) {
  return architecture == Architecture::kX86_64
             ? RegisterNumbers{.pc = 16, .sp = 7, .fp = 6, .lr = kNoRegister, .base = 3}
             : RegisterNumbers{.pc = 32, .sp = 31, .fp = 29, .lr = 30, .base = kNoRegister};
}

/// A return address as a register or the stack has it, without its signature. Code of arm64 may sign return addresses:
/// the signature is in the bits above those of user addresses. Elsewhere than on arm64, these are taken for the
/// usual 48.
inline std::uint64_t without_signature(Architecture architecture, std::uint64_t address) {
  if (architecture != Architecture::kArm64) return address;
#if defined(__aarch64__)
  return address & user_address_mask();
#else
  constexpr std::uint64_t kUsualMask = (std::uint64_t{1} << 48) - 1;
  return address & kUsualMask;
#endif
}

/// The rule for the trampoline that a signal handler returns to: `sp` points to the registers that the kernel saved.
/// glibc describes its x86-64 trampoline in .eh_frame with this rule. Go and musl (x86-64) and the kernel's vdso since
/// 5.8 (arm64) have no description; if their trampoline is found, this rule applies.
///
/// x86-64: struct ucontext at sp (its struct rt_sigframe starts with the restorer's address, which is popped by then);
/// uc_mcontext at 40: r8..r15, rdi, rsi, rbp (+80), rbx, rdx, rax, rcx, rsp (+120), rip (+128).
/// arm64: struct siginfo (128 bytes) at sp, then struct ucontext with uc_mcontext at 176: fault_address, x0..x30 (+8),
/// sp (+256), pc (+264).
constexpr Rule signal_frame_rule(Architecture architecture) {
  Rule rule;
  rule.cfa = CfaKind::kSignalFrame;
  rule.fp = FpKind::kAtSp;
  rule.ra = RaKind::kAtSp;
  rule.signal_frame = 1;
  if (architecture == Architecture::kX86_64) {
    rule.cfa_offset = 40 + 120;
    rule.fp_offset = 40 + 80;
    rule.ra_offset = 40 + 128;
  } else {
    rule.cfa_offset = 128 + 176 + 256;
    rule.fp_offset = 128 + 176 + 8 + 29 * 8;
    rule.ra_offset = 128 + 176 + 264;
  }
  return rule;
}

/// Which of the words that the kernel saved for a signal handler is a register's: the layouts above. Empty: none.
constexpr std::optional<std::uint64_t> saved_word(Architecture architecture, std::uint8_t reg) {
  constexpr std::array<std::uint8_t, 17> kX86_64{13, 12, 14, 11, 9, 8, 10, 15, 0, 1, 2, 3, 4, 5, 6, 7, 16};
  if (reg > registers_of(architecture).pc) return std::nullopt;
  return architecture == Architecture::kX86_64 ? kX86_64[reg] : reg;
}

}  // namespace flamed::unwinder
