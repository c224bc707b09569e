// SPDX-License-Identifier: Apache-2.0
#include "unwinder/cfa_program.h"

#include <limits>
#include <optional>

#include "unwinder/expression.h"

namespace flamed::unwinder {
namespace {

// Instructions with an operand in their low six bits (DWARF 5 section 7.24).
constexpr std::uint8_t kAdvanceLoc = 0x40;
constexpr std::uint8_t kOffset = 0x80;
constexpr std::uint8_t kRestore = 0xc0;

enum Instruction : std::uint8_t {
  kNop = 0x00,
  kSetLoc = 0x01,
  kAdvanceLoc1 = 0x02,
  kAdvanceLoc2 = 0x03,
  kAdvanceLoc4 = 0x04,
  kOffsetExtended = 0x05,
  kRestoreExtended = 0x06,
  kUndefined = 0x07,
  kSameValue = 0x08,
  kRegister = 0x09,
  kRememberState = 0x0a,
  kRestoreState = 0x0b,
  kDefCfa = 0x0c,
  kDefCfaRegister = 0x0d,
  kDefCfaOffset = 0x0e,
  kDefCfaExpression = 0x0f,
  kExpression = 0x10,
  kOffsetExtendedSf = 0x11,
  kDefCfaSf = 0x12,
  kDefCfaOffsetSf = 0x13,
  kValOffset = 0x14,
  kValOffsetSf = 0x15,
  kValExpression = 0x16,
  kMipsAdvanceLoc8 = 0x1d,
  kAarch64NegateRaStateWithPc = 0x2c,
  kAarch64NegateRaState = 0x2d,
  kGnuArgsSize = 0x2e,
  kGnuNegativeOffsetExtended = 0x2f,
};

bool fits(std::int64_t offset) {
  return offset >= std::numeric_limits<std::int32_t>::min() && offset <= std::numeric_limits<std::int32_t>::max();
}

// An operand too large for its register or offset must not wrap into a plausible one.
constexpr std::int64_t kOverflow = std::numeric_limits<std::int64_t>::max();

}  // namespace

bool CfaProgram::advance(std::uint64_t delta) {
  std::uint64_t step = 0;
  return !__builtin_mul_overflow(delta, context_.code_alignment, &step) &&
         !__builtin_add_overflow(location_, step, &location_);
}

RegisterState* CfaProgram::column(std::uint64_t reg) {
  // The return address first: on arm64 its column is lr's.
  if (reg == context_.ra_register) return &state_.ra;
  if (reg == registers_.fp) return &state_.fp;
  if (reg == registers_.sp) return &state_.sp;
  if (reg == registers_.base) return &state_.base;
  return nullptr;
}

void CfaProgram::set(std::uint64_t reg, RegisterState::Kind kind, std::int64_t offset) {
  RegisterState* state = column(reg);
  if (state == nullptr) return;
  if (!fits(offset)) {
    kind = RegisterState::Kind::kUnsupported;
    offset = 0;
  }
  *state = RegisterState{.kind = kind, .offset = static_cast<std::int32_t>(offset)};
  changed_ = true;
}

void CfaProgram::set_in_register(std::uint64_t reg, std::uint64_t where) {
  RegisterState* state = column(reg);
  if (state == nullptr) return;
  changed_ = true;
  if (where == reg) {
    *state = RegisterState{.kind = RegisterState::Kind::kSame};
  } else if (where < kNoRegister) {
    *state = RegisterState{.kind = RegisterState::Kind::kInRegister, .reg = static_cast<std::uint8_t>(where)};
  } else {
    *state = RegisterState{.kind = RegisterState::Kind::kUnsupported};
  }
}

void CfaProgram::set_cfa(std::uint64_t reg, std::int64_t offset) {
  changed_ = true;
  if (reg >= kNoRegister || !fits(offset)) {
    state_.cfa = CfaState{.kind = CfaState::Kind::kUnsupported};
    return;
  }
  state_.cfa = CfaState{.kind = CfaState::Kind::kRegister,
                        .reg = static_cast<std::uint8_t>(reg),
                        .offset = static_cast<std::int32_t>(offset)};
}

bool CfaProgram::restore(std::uint64_t reg) {
  if (initial_ == nullptr) return false;
  RegisterState* state = column(reg);
  if (state == nullptr) return true;
  if (state == &state_.ra) *state = initial_->ra;
  if (state == &state_.fp) *state = initial_->fp;
  if (state == &state_.sp) *state = initial_->sp;
  if (state == &state_.base) *state = initial_->base;
  changed_ = true;
  return true;
}

std::int64_t CfaProgram::factored(std::uint64_t offset) const {
  if (offset > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return kOverflow;
  return factored(static_cast<std::int64_t>(offset));
}

std::int64_t CfaProgram::factored(std::int64_t offset) const {
  std::int64_t product = 0;
  return __builtin_mul_overflow(offset, context_.data_alignment, &product) ? kOverflow : product;
}

CfaProgram::Stop CfaProgram::run() {
  using Kind = RegisterState::Kind;
  // Operands are read into variables, in order, before they are used: arguments may be evaluated in any order.
  std::uint64_t reg = 0;
  std::uint64_t number = 0;

  while (reader_.left() != 0) {
    const std::uint8_t byte = reader_.u8();
    const std::uint8_t low = byte & 0x3f;
    const std::uint64_t before = location_;

    switch (byte & 0xc0) {
      case kAdvanceLoc:
        if (!advance(low)) return fail(CfaError::kBadLocation);
        if (location_ != before) return Stop::kAdvanced;
        continue;
      case kOffset:
        number = reader_.uleb();
        if (!reader_.ok()) return fail(CfaError::kTruncated);
        set(low, Kind::kAtCfa, factored(number));
        continue;
      case kRestore:
        if (!restore(low)) return fail(CfaError::kNoInitialState);
        continue;
      default:
        break;
    }

    switch (byte) {
      case kNop:
        break;
      case kSetLoc: {
        const std::optional<std::uint64_t> to =
            read_encoded_pointer(reader_, context_.pointer_encoding, context_.bases);
        if (!to || *to < location_) return fail(CfaError::kBadLocation);
        if (reader_.ok()) location_ = *to;
        break;
      }
      case kAdvanceLoc1:
        if (!advance(reader_.u8())) return fail(CfaError::kBadLocation);
        break;
      case kAdvanceLoc2:
        if (!advance(reader_.u16())) return fail(CfaError::kBadLocation);
        break;
      case kAdvanceLoc4:
        if (!advance(reader_.u32())) return fail(CfaError::kBadLocation);
        break;
      case kMipsAdvanceLoc8:
        if (!advance(reader_.u64())) return fail(CfaError::kBadLocation);
        break;

      case kOffsetExtended:
        reg = reader_.uleb();
        number = reader_.uleb();
        set(reg, Kind::kAtCfa, factored(number));
        break;
      case kOffsetExtendedSf:
        reg = reader_.uleb();
        set(reg, Kind::kAtCfa, factored(reader_.sleb()));
        break;
      case kGnuNegativeOffsetExtended: {
        reg = reader_.uleb();
        number = reader_.uleb();
        const std::int64_t offset = factored(number);
        set(reg, Kind::kAtCfa, offset == kOverflow ? kOverflow : -offset);
        break;
      }
      case kValOffset:
        reg = reader_.uleb();
        number = reader_.uleb();
        set(reg, Kind::kCfaPlus, factored(number));
        break;
      case kValOffsetSf:
        reg = reader_.uleb();
        set(reg, Kind::kCfaPlus, factored(reader_.sleb()));
        break;
      case kRestoreExtended:
        if (!restore(reader_.uleb())) return fail(CfaError::kNoInitialState);
        break;
      case kUndefined:
        set(reader_.uleb(), Kind::kUndefined);
        break;
      case kSameValue:
        set(reader_.uleb(), Kind::kSame);
        break;
      case kRegister:
        reg = reader_.uleb();
        number = reader_.uleb();
        set_in_register(reg, number);
        break;
      case kExpression:
      case kValExpression: {
        reg = reader_.uleb();
        number = reader_.uleb();
        const std::span<const std::byte> expression = reader_.take(number);
        if (RegisterState* state = column(reg); state != nullptr) {
          *state = recognise_register_expression(expression, byte == kValExpression);
          changed_ = true;
        }
        break;
      }

      case kRememberState:
        if (remembered_ == stack_.size()) return fail(CfaError::kStackOverflow);
        stack_[remembered_++] = state_;
        break;
      case kRestoreState:
        if (remembered_ == 0) return fail(CfaError::kStackEmpty);
        state_ = stack_[--remembered_];
        changed_ = true;
        break;

      case kDefCfa:
        reg = reader_.uleb();
        number = reader_.uleb();
        set_cfa(reg, number > static_cast<std::uint64_t>(kOverflow) ? kOverflow : static_cast<std::int64_t>(number));
        break;
      case kDefCfaSf:
        reg = reader_.uleb();
        set_cfa(reg, factored(reader_.sleb()));
        break;
      case kDefCfaRegister:
        reg = reader_.uleb();
        if (state_.cfa.kind != CfaState::Kind::kRegister) return fail(CfaError::kNotRegisterBased);
        set_cfa(reg, state_.cfa.offset);
        break;
      case kDefCfaOffset:
        number = reader_.uleb();
        if (state_.cfa.kind != CfaState::Kind::kRegister) return fail(CfaError::kNotRegisterBased);
        set_cfa(state_.cfa.reg,
                number > static_cast<std::uint64_t>(kOverflow) ? kOverflow : static_cast<std::int64_t>(number));
        break;
      case kDefCfaOffsetSf:
        if (state_.cfa.kind != CfaState::Kind::kRegister) return fail(CfaError::kNotRegisterBased);
        set_cfa(state_.cfa.reg, factored(reader_.sleb()));
        break;
      case kDefCfaExpression: {
        number = reader_.uleb();
        const std::span<const std::byte> expression = reader_.take(number);
        state_.cfa = recognise_cfa_expression(expression, context_.architecture);
        changed_ = true;
        break;
      }

      case kGnuArgsSize:
        number = reader_.uleb();
        break;
      case kAarch64NegateRaState:
      case kAarch64NegateRaStateWithPc:
        if (context_.architecture != Architecture::kArm64) return fail(CfaError::kUnknownInstruction);
        state_.ra_signed = !state_.ra_signed;
        changed_ = true;
        break;
      default:
        return fail(CfaError::kUnknownInstruction);
    }
    if (!reader_.ok()) return fail(CfaError::kTruncated);
    if (location_ != before) return Stop::kAdvanced;
  }
  return Stop::kFinished;
}

}  // namespace flamed::unwinder
