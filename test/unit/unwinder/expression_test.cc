// SPDX-License-Identifier: Apache-2.0
#include "unwinder/expression.h"

#include "test/catch.h"
#include "test/unit/unwinder/frame_assembler.h"

namespace flamed::unwinder {
namespace {

using Kind = CfaState::Kind;

CfaState cfa(const Bytes& expression) { return recognise_cfa_expression(expression, Architecture::kX86_64); }

/// breg7 8, breg16 0, lit15, and, lit<threshold>, ge, lit3, shl, plus
Bytes plt(unsigned threshold) { return Bytes{0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x30 + threshold, 0x2a, 0x33, 0x24, 0x22}; }

TEST_CASE("The linkers' PLT expression is recognised with any threshold") {
  CHECK(cfa(plt(11)) == CfaState{.kind = Kind::kPlt, .reg = 7, .offset = 8, .addend = 11});
  CHECK(cfa(plt(10)) == CfaState{.kind = Kind::kPlt, .reg = 7, .offset = 8, .addend = 10});
  CHECK(cfa(plt(5)) == CfaState{.kind = Kind::kPlt, .reg = 7, .offset = 8, .addend = 5});
}

TEST_CASE("Expressions that only resemble the PLT's are unsupported") {
  CHECK(cfa(plt(16)).kind == Kind::kUnsupported);                  // pc & 15 is never 16
  CHECK(cfa(Bytes(plt(11)).u8(0x22)).kind == Kind::kUnsupported);  // goes on
  CHECK(cfa({0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x34, 0x24, 0x22}).kind == Kind::kUnsupported);  // << 4
  CHECK(cfa({0x77, 8, 0x80, 1, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22}).kind == Kind::kUnsupported);  // pc + 1
  CHECK(recognise_cfa_expression(plt(11), Architecture::kArm64).kind == Kind::kUnsupported);
}

TEST_CASE("A saved stack pointer in the frame is recognised, with its offset") {
  CHECK(cfa({0x76, 0x78, 0x06}) == CfaState{.kind = Kind::kDeref, .reg = 6, .offset = -8, .addend = 0});
  CHECK(cfa(Bytes{0x77}.sleb(88).append({0x06, 0x23, 8})) ==
        CfaState{.kind = Kind::kDeref, .reg = 7, .offset = 88, .addend = 8});
  CHECK(cfa({0x77, 8, 0x06, 0x38, 0x22}) == CfaState{.kind = Kind::kDeref, .reg = 7, .offset = 8, .addend = 8});
  CHECK(cfa({0x92, 7, 8, 0x06}) == CfaState{.kind = Kind::kDeref, .reg = 7, .offset = 8, .addend = 0});
}

TEST_CASE("A register plus an offset is read as a plain rule") {
  CHECK(cfa({0x77, 8}) == CfaState{.kind = Kind::kRegister, .reg = 7, .offset = 8, .addend = 0});
}

TEST_CASE("Other, truncated and overflowing expressions are unsupported") {
  CHECK(cfa({}).kind == Kind::kUnsupported);
  CHECK(cfa({0x77}).kind == Kind::kUnsupported);
  CHECK(cfa({0x77, 8, 0x06, 0x23}).kind == Kind::kUnsupported);
  CHECK(cfa({0x77, 8, 0x06, 0x06}).kind == Kind::kUnsupported);
  CHECK(cfa({0x77, 8, 0x79, 0, 0x38, 0x1e, 0x22, 0x06, 0x23, 8}).kind == Kind::kUnsupported);
  CHECK(cfa(Bytes{0x77}.sleb(std::int64_t{1} << 31).append({0x06})).kind == Kind::kUnsupported);
  CHECK(cfa(Bytes{0x77, 0, 0x06, 0x23}.uleb(std::uint64_t{1} << 31)).kind == Kind::kUnsupported);
  CHECK(cfa(Bytes{0x92}.uleb(300).append({0, 0x06})).kind == Kind::kUnsupported);
}

}  // namespace
}  // namespace flamed::unwinder
