// SPDX-License-Identifier: Apache-2.0
#include "unwinder/expression.h"

#include <limits>

namespace flamed::unwinder {
namespace {

enum Operation : std::uint8_t {
  kDeref = 0x06,
  kAnd = 0x1a,
  kPlus = 0x22,
  kPlusUconst = 0x23,
  kShl = 0x24,
  kGe = 0x2a,
  kLit0 = 0x30,
  kBreg0 = 0x70,
  kBregx = 0x92,
};

constexpr std::uint8_t kX86_64ReturnAddress = 16;

bool fits(std::int64_t offset) {
  return offset >= std::numeric_limits<std::int32_t>::min() && offset <= std::numeric_limits<std::int32_t>::max();
}

/// `breg N offset` or `bregx N offset`.
bool read_base(ByteReader& reader, std::uint8_t& reg, std::int32_t& offset) {
  const std::uint8_t operation = reader.u8();
  std::uint64_t number = 0;
  if (operation >= kBreg0 && operation < kBreg0 + 32) {
    number = operation - kBreg0;
  } else if (operation == kBregx) {
    number = reader.uleb();
  } else {
    return false;
  }
  const std::int64_t wide = reader.sleb();
  if (!reader.ok() || number >= kNoRegister || !fits(wide)) return false;
  reg = static_cast<std::uint8_t>(number);
  offset = static_cast<std::int32_t>(wide);
  return true;
}

/// The number that a DW_OP_plus_uconst, or a small literal and DW_OP_plus, adds.
bool read_addend(ByteReader& reader, std::int32_t& addend) {
  const std::uint8_t operation = reader.u8();
  std::uint64_t number = 0;
  if (operation == kPlusUconst) {
    number = reader.uleb();
  } else if (operation >= kLit0 && operation < kLit0 + 32) {
    number = operation - kLit0;
    if (reader.u8() != kPlus) return false;
  } else {
    return false;
  }
  if (!reader.ok() || number > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max())) return false;
  addend = static_cast<std::int32_t>(number);
  return true;
}

/// The rest of a lazy PLT's expression after its first operation. Linkers (GNU ld, gold, mold) write one FDE with a
/// single expression for all its 16-byte stubs:
///   breg7 8, breg16 0, lit15, and, lit11, ge, lit3, shl, plus
/// From its byte 11 on (9 or 10 in stubs that begin with endbr64, 5 in those with bnd prefixes) a stub has pushed the
/// relocation's index, so the CFA is 8 further up.
bool read_plt_rest(ByteReader& reader, std::int32_t& threshold) {
  std::uint8_t reg = 0;
  std::int32_t offset = 0;
  if (!read_base(reader, reg, offset) || reg != kX86_64ReturnAddress || offset != 0) return false;
  if (reader.u8() != kLit0 + 15 || reader.u8() != kAnd) return false;
  const std::uint8_t literal = reader.u8();
  if (literal < kLit0 || literal > kLit0 + 15) return false;
  threshold = literal - kLit0;
  return reader.u8() == kGe && reader.u8() == kLit0 + 3 && reader.u8() == kShl && reader.u8() == kPlus;
}

}  // namespace

CfaState recognise_cfa_expression(std::span<const std::byte> expression, Architecture architecture) {
  const CfaState unsupported{.kind = CfaState::Kind::kUnsupported};
  ByteReader reader(expression);
  CfaState state;
  if (!read_base(reader, state.reg, state.offset)) return unsupported;
  if (reader.left() == 0) {
    state.kind = CfaState::Kind::kRegister;
    return state;
  }

  ByteReader plt = reader;
  if (architecture == Architecture::kX86_64 && read_plt_rest(plt, state.addend)) {
    state.kind = CfaState::Kind::kPlt;
    return plt.left() == 0 && plt.ok() ? state : unsupported;
  }

  state.kind = CfaState::Kind::kDeref;
  state.addend = 0;
  if (reader.u8() != kDeref) return unsupported;
  if (reader.left() != 0 && !read_addend(reader, state.addend)) return unsupported;
  return reader.left() == 0 && reader.ok() ? state : unsupported;
}

RegisterState recognise_register_expression(std::span<const std::byte> expression, bool is_value) {
  const RegisterState unsupported{.kind = RegisterState::Kind::kUnsupported};
  ByteReader reader(expression);
  RegisterState state;
  if (!read_base(reader, state.reg, state.offset)) return unsupported;
  if (!is_value) {
    state.kind = RegisterState::Kind::kAtRegister;
  } else {
    state.kind = RegisterState::Kind::kDeref;
    if (reader.u8() != kDeref) return unsupported;
  }
  return reader.left() == 0 && reader.ok() ? state : unsupported;
}

}  // namespace flamed::unwinder
