// SPDX-License-Identifier: Apache-2.0
//
// CfaProgram: runs the call frame instructions of one CIE or FDE (DWARF 5 section 6.4.2) and stops at each advance of
// the location, so that its user gets one row after the other without a table. Only the columns of a Rule are kept;
// instructions for other registers are skipped.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/byte_reader.h"
#include "unwinder/architecture.h"
#include "unwinder/encoded_pointer.h"

namespace flamed::unwinder {

/// The CFA according to the instructions.
struct CfaState {
  enum class Kind : std::uint8_t {
    kUnset,  ///< not defined by any instruction
    kRegister,
    kDeref,        ///< *(reg + offset) + addend
    kPlt,          ///< reg + offset + (pc % 16 >= addend ? 8 : 0)
    kUnsupported,  ///< another expression
  };
  Kind kind = Kind::kUnset;
  std::uint8_t reg = 0;
  std::int32_t offset = 0;
  std::int32_t addend = 0;
  friend constexpr bool operator==(const CfaState&, const CfaState&) = default;
};

/// The place of a caller's register according to the instructions.
struct RegisterState {
  enum class Kind : std::uint8_t {
    kUnset,  ///< not defined by any instruction: the architecture's default
    kSame,
    kUndefined,
    kAtCfa,        ///< *(CFA + offset)
    kCfaPlus,      ///< CFA + offset itself
    kAtRegister,   ///< *(reg + offset)
    kDeref,        ///< *(reg + offset) itself, not the memory at that address
    kInRegister,   ///< reg
    kUnsupported,  ///< another expression
  };
  Kind kind = Kind::kUnset;
  std::uint8_t reg = 0;
  std::int32_t offset = 0;
  friend constexpr bool operator==(const RegisterState&, const RegisterState&) = default;
};

/// One row of the table.
struct FrameState {
  CfaState cfa;
  RegisterState fp;
  RegisterState ra;
  RegisterState sp;
  RegisterState base;
  bool ra_signed = false;
  friend constexpr bool operator==(const FrameState&, const FrameState&) = default;
};

/// The common context of the instructions of a CIE and of its FDEs.
struct CfaContext {
  Architecture architecture = Architecture::kX86_64;
  std::uint64_t code_alignment = 1;
  std::int64_t data_alignment = 1;
  std::uint64_t ra_register = 0;
  std::uint8_t pointer_encoding = kEncodingAbsolute;  ///< of DW_CFA_set_loc
  PointerBases bases;
};

enum class CfaError : std::uint8_t {
  kNone,
  kTruncated,           ///< an operand reaches over the end
  kUnknownInstruction,  ///< or one without meaning on this architecture
  kStackOverflow,       ///< more remembered states than RememberedStates has room for
  kStackEmpty,          ///< DW_CFA_restore_state without a remembered state
  kNoInitialState,      ///< DW_CFA_restore in a CIE
  kNotRegisterBased,    ///< changes the register or the offset of a CFA that is an expression or undefined
  kBadLocation,         ///< the location decreases, overflows, or can't be read
};

/// The stack of DW_CFA_remember_state. Not part of CfaProgram, so that it is not cleared for each of up to a million
/// functions of a file. Compilers nest remembered states once or twice.
using RememberedStates = std::array<FrameState, 32>;

class CfaProgram {
 public:
  enum class Stop : std::uint8_t { kAdvanced, kFinished, kFailed };

  /// An FDE's program, which starts at `location` in the final state of its CIE's program. `context`, `initial` and
  /// `stack` must outlive it.
  CfaProgram(const CfaContext& context, std::span<const std::byte> instructions, RememberedStates& stack,
             const FrameState& initial, std::uint64_t location)
      : context_(context),
        stack_(stack),
        initial_(&initial),
        reader_(instructions),
        state_(initial),
        location_(location),
        registers_(registers_of(context.architecture)) {}
  /// A CIE's program, which makes the initial state.
  CfaProgram(const CfaContext& context, std::span<const std::byte> instructions, RememberedStates& stack)
      : context_(context), stack_(stack), reader_(instructions), registers_(registers_of(context.architecture)) {}

  /// Runs until the location has advanced; state() is then valid up to, not including, the new location(), and the next
  /// call continues from it. After kFinished it is valid to the end of the FDE. After kFailed nothing is known from the
  /// start of this call on.
  Stop run();

  [[nodiscard]] const FrameState& state() const { return state_; }
  [[nodiscard]] std::uint64_t location() const { return location_; }
  /// Whether state() may have changed since the last call.
  [[nodiscard]] bool take_changed() {
    const bool changed = changed_;
    changed_ = false;
    return changed;
  }
  [[nodiscard]] CfaError error() const { return error_; }

 private:
  Stop fail(CfaError error) {
    error_ = error;
    return Stop::kFailed;
  }
  bool advance(std::uint64_t delta);
  RegisterState* column(std::uint64_t reg);
  void set(std::uint64_t reg, RegisterState::Kind kind, std::int64_t offset = 0);
  void set_in_register(std::uint64_t reg, std::uint64_t where);
  void set_cfa(std::uint64_t reg, std::int64_t offset);
  bool restore(std::uint64_t reg);
  [[nodiscard]] std::int64_t factored(std::uint64_t offset) const;
  [[nodiscard]] std::int64_t factored(std::int64_t offset) const;

  const CfaContext& context_;
  RememberedStates& stack_;
  const FrameState* initial_ = nullptr;
  ByteReader reader_;
  FrameState state_;
  std::uint64_t location_ = 0;
  RegisterNumbers registers_;
  CfaError error_ = CfaError::kNone;
  bool changed_ = true;
  std::uint8_t remembered_ = 0;
};

}  // namespace flamed::unwinder
