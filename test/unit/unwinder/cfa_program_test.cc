// SPDX-License-Identifier: Apache-2.0
#include "unwinder/cfa_program.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "test/catch.h"
#include "test/unit/unwinder/frame_assembler.h"

namespace flamed::unwinder {
namespace {

using Kind = RegisterState::Kind;

constexpr std::uint64_t kStart = 0x1000;

CfaContext x86_64() {
  CfaContext context;
  context.data_alignment = -8;
  context.ra_register = 16;
  return context;
}

FrameState initial_state() {
  FrameState state;
  state.cfa = CfaState{.kind = CfaState::Kind::kRegister, .reg = 7, .offset = 8};
  state.ra = RegisterState{.kind = Kind::kAtCfa, .offset = -8};
  return state;
}

struct Outcome {
  /// The end of each state but the last.
  std::vector<std::uint64_t> ends;
  std::vector<FrameState> states;
  CfaError error = CfaError::kNone;
  [[nodiscard]] const FrameState& last() const { return states.back(); }
};

Outcome run(const Bytes& instructions, const CfaContext& context = x86_64()) {
  const FrameState initial = initial_state();
  RememberedStates stack;
  CfaProgram program(context, instructions, stack, initial, kStart);
  Outcome outcome;
  for (;;) {
    const CfaProgram::Stop stop = program.run();
    outcome.error = program.error();
    if (stop == CfaProgram::Stop::kFailed) return outcome;
    outcome.states.push_back(program.state());
    if (stop == CfaProgram::Stop::kFinished) return outcome;
    outcome.ends.push_back(program.location());
  }
}

TEST_CASE("Without instructions the CIE's state holds everywhere") {
  const Outcome outcome = run({});
  CHECK(outcome.ends.empty());
  CHECK(outcome.last() == initial_state());
}

TEST_CASE("Each form of advance moves the location by its operand times the code alignment") {
  CfaContext context = x86_64();
  context.code_alignment = 4;
  Bytes all{0x42, 0x02, 3};
  all.append(Bytes{0x03}).u16(0x100);
  all.append(Bytes{0x04}).u32(0x10000);
  all.append(Bytes{0x1d}).u64(0x20000);
  CHECK(run(all, context).ends ==
        std::vector<std::uint64_t>{kStart + 8, kStart + 20, kStart + 0x414, kStart + 0x40414, kStart + 0xc0414});
}

TEST_CASE("Advances by zero don't end a row") { CHECK(run({0x40, 0x02, 0, 0x00}).ends.empty()); }

TEST_CASE("DW_CFA_set_loc moves the location to an encoded address") {
  CHECK(run(Bytes{0x01}.u64(kStart + 0x30)).ends == std::vector<std::uint64_t>{kStart + 0x30});
}

TEST_CASE("A location that decreases, can't be read or overflows is an error") {
  CHECK(run(Bytes{0x01}.u64(kStart - 1)).error == CfaError::kBadLocation);
  CfaContext context = x86_64();
  context.pointer_encoding = 0x9b;
  CHECK(run(Bytes{0x01}.u32(4), context).error == CfaError::kBadLocation);
  context = x86_64();
  context.code_alignment = std::uint64_t{1} << 63;
  CHECK(run({0x42}, context).error == CfaError::kBadLocation);
  CHECK(run(Bytes{0x1d}.u64(~std::uint64_t{0})).error == CfaError::kBadLocation);
}

TEST_CASE("Definitions of the CFA give its register and its offset") {
  const auto cfa = [](const Bytes& instructions) {
    const CfaState state = run(instructions).last().cfa;
    REQUIRE(state.kind == CfaState::Kind::kRegister);
    return std::pair<int, int>(state.reg, state.offset);
  };
  CHECK(cfa({0x0c, 6, 16}) == std::pair(6, 16));
  CHECK(cfa(Bytes{0x12, 6}.sleb(-2)) == std::pair(6, 16));
  CHECK(cfa({0x0d, 6}) == std::pair(6, 8));
  CHECK(cfa({0x0e, 0x90, 0x01}) == std::pair(7, 144));
  CHECK(cfa(Bytes{0x13}.sleb(-3)) == std::pair(7, 24));
  CHECK(cfa({0x0c, 10, 0}) == std::pair(10, 0));
}

TEST_CASE("A CFA offset beyond 32 bits is unsupported, not truncated") {
  CHECK(run(Bytes{0x0c, 7}.uleb(std::uint64_t{1} << 32)).last().cfa.kind == CfaState::Kind::kUnsupported);
  CHECK(run(Bytes{0x0c, 7}.uleb(~std::uint64_t{0})).last().cfa.kind == CfaState::Kind::kUnsupported);
  CHECK(run(Bytes{0x0e}.uleb(std::uint64_t{1} << 31)).last().cfa.kind == CfaState::Kind::kUnsupported);
  CHECK(run(Bytes{0x12, 7}.sleb(std::int64_t{1} << 62)).last().cfa.kind == CfaState::Kind::kUnsupported);
  CHECK(run(Bytes{0x0c}.uleb(1000).uleb(8)).last().cfa.kind == CfaState::Kind::kUnsupported);
}

TEST_CASE("Each rule for the frame pointer is kept as it is written") {
  const auto fp = [](const Bytes& instructions) { return run(instructions).last().fp; };
  CHECK(fp({0x86, 2}) == RegisterState{.kind = Kind::kAtCfa, .offset = -16});
  CHECK(fp({0x05, 6, 2}) == RegisterState{.kind = Kind::kAtCfa, .offset = -16});
  CHECK(fp(Bytes{0x11, 6}.sleb(-2)) == RegisterState{.kind = Kind::kAtCfa, .offset = 16});
  CHECK(fp({0x2f, 6, 2}) == RegisterState{.kind = Kind::kAtCfa, .offset = 16});
  CHECK(fp({0x14, 6, 2}) == RegisterState{.kind = Kind::kCfaPlus, .offset = -16});
  CHECK(fp(Bytes{0x15, 6}.sleb(-2)) == RegisterState{.kind = Kind::kCfaPlus, .offset = 16});
  CHECK(fp({0x07, 6}) == RegisterState{.kind = Kind::kUndefined});
  CHECK(fp({0x08, 6}) == RegisterState{.kind = Kind::kSame});
  CHECK(fp({0x09, 6, 11}) == RegisterState{.kind = Kind::kInRegister, .reg = 11});
  CHECK(fp({0x09, 6, 6}) == RegisterState{.kind = Kind::kSame});
  CHECK(fp(Bytes{0x09, 6}.uleb(70'000)).kind == Kind::kUnsupported);
  CHECK(fp({0x10, 6, 2, 0x76, 0}) == RegisterState{.kind = Kind::kAtRegister, .reg = 6, .offset = 0});
  CHECK(fp({0x16, 6, 3, 0x77, 16, 0x06}) == RegisterState{.kind = Kind::kDeref, .reg = 7, .offset = 16});
  CHECK(fp({0x16, 6, 2, 0x77, 16}).kind == Kind::kUnsupported);
  CHECK(fp(Bytes{0x05, 6}.uleb(std::uint64_t{1} << 40)).kind == Kind::kUnsupported);
  CHECK(fp(Bytes{0x05, 6}.uleb(~std::uint64_t{0})).kind == Kind::kUnsupported);
}

TEST_CASE("The base register has a rule") {
  const auto base = [](const Bytes& instructions) { return run(instructions).last().base; };
  CHECK(base({0x83, 2}) == RegisterState{.kind = Kind::kAtCfa, .offset = -16});
  CHECK(base({0x83, 2, 0xc3}) == initial_state().base);
}

TEST_CASE("Rules for registers that no caller's frame depends on are skipped") {
  const Bytes others{0x81, 2, 0x05, 12, 3, 0x07, 0, 0x08, 13, 0x09, 14, 1, 0x10, 10, 2, 0x76, 0x78, 0x16, 2, 1, 0x30};
  CHECK(run(others).last() == initial_state());
}

TEST_CASE("DW_CFA_GNU_args_size does not affect registers") {
  CHECK(run({0x2e, 0x90, 0x01}).last() == initial_state());
}

TEST_CASE("DW_CFA_restore restores the CIE's rule") {
  CHECK(run({0x86, 2, 0x41, 0xc6}).last().fp == RegisterState{});
  CHECK(run({0x86, 2, 0x41, 0x06, 6}).last().fp == RegisterState{});
  CHECK(run({0x07, 16, 0x41, 0xc0 + 16}).last().ra == initial_state().ra);
}

TEST_CASE("DW_CFA_restore in a CIE is an error: there is nothing to restore") {
  RememberedStates stack;
  const CfaContext context = x86_64();
  const Bytes instructions{0xc6};
  CfaProgram program(context, instructions, stack);
  CHECK(program.run() == CfaProgram::Stop::kFailed);
  CHECK(program.error() == CfaError::kNoInitialState);
}

TEST_CASE("Remembered states are restored whole, with the CFA, last first") {
  const Outcome outcome = run({0x0a, 0x0e, 16, 0x86, 2, 0x0a, 0x0e, 24, 0x41, 0x0b, 0x41, 0x0b});
  REQUIRE(outcome.states.size() == 3);
  CHECK(outcome.states[0].cfa.offset == 24);
  CHECK(outcome.states[1].cfa.offset == 16);
  CHECK(outcome.states[1].fp.kind == Kind::kAtCfa);
  CHECK(outcome.states[2] == initial_state());
}

TEST_CASE("Restoring without a remembered state, or remembering too many, is an error") {
  CHECK(run({0x0b}).error == CfaError::kStackEmpty);
  Bytes many;
  for (std::size_t i = 0; i <= RememberedStates{}.size(); ++i) many.u8(0x0a);
  CHECK(run(many).error == CfaError::kStackOverflow);
}

TEST_CASE("Changing the register or offset of a CFA that is an expression is an error") {
  const Bytes expression{0x0f, 3, 0x77, 8, 0x06};
  CHECK(run(expression).last().cfa.kind == CfaState::Kind::kDeref);
  for (const Bytes& change : {Bytes{0x0d, 6}, Bytes{0x0e, 16}, Bytes{0x13, 1}}) {
    CHECK(run(Bytes(expression).append(change)).error == CfaError::kNotRegisterBased);
  }
}

TEST_CASE("Operands beyond the end are an error, for every instruction") {
  for (const Bytes& cut : {Bytes{0x86}, Bytes{0x02}, Bytes{0x03, 1}, Bytes{0x04, 1, 2, 3}, Bytes{0x1d, 1},
                           Bytes{0x05, 6}, Bytes{0x0c, 7}, Bytes{0x0e}, Bytes{0x0f, 2, 0x77}, Bytes{0x10, 6, 9, 0x77},
                           Bytes{0x2e}, Bytes{0x09, 6}, Bytes{0x01, 1, 2, 3, 4, 5, 6}}) {
    const CfaError error = run(cut).error;
    CHECK((error == CfaError::kTruncated || error == CfaError::kBadLocation));
  }
}

TEST_CASE("Unknown instructions are an error, as their operands can't be skipped") {
  CHECK(run({0x3f}).error == CfaError::kUnknownInstruction);
  CHECK(run({0x2d}).error == CfaError::kUnknownInstruction);  // arm64's, or SPARC's
}

TEST_CASE("On arm64 DW_CFA_AARCH64_negate_ra_state toggles whether the return address is signed") {
  CfaContext context = x86_64();
  context.architecture = Architecture::kArm64;
  context.ra_register = 30;
  const Outcome outcome = run({0x41, 0x2d, 0x41, 0x2c}, context);
  REQUIRE(outcome.states.size() == 3);
  CHECK_FALSE(outcome.states[0].ra_signed);
  CHECK(outcome.states[1].ra_signed);
  CHECK_FALSE(outcome.states[2].ra_signed);
}

TEST_CASE("take_changed ignores changes of other registers") {
  const CfaContext context = x86_64();
  const FrameState initial = initial_state();
  const Bytes instructions{0x41, 0x81, 2, 0x41, 0x0e, 16};
  RememberedStates stack;
  CfaProgram program(context, instructions, stack, initial, kStart);
  REQUIRE(program.run() == CfaProgram::Stop::kAdvanced);
  CHECK(program.take_changed());
  REQUIRE(program.run() == CfaProgram::Stop::kAdvanced);
  CHECK_FALSE(program.take_changed());
  REQUIRE(program.run() == CfaProgram::Stop::kFinished);
  CHECK(program.take_changed());
}

}  // namespace
}  // namespace flamed::unwinder
