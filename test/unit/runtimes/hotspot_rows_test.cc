// SPDX-License-Identifier: Apache-2.0
//
// The code is that of JDK 17 and 25, in which functions and stubs are some of HotSpot's shortest.
#include "runtimes/hotspot/code_rows.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "test/catch.h"
#include "unwinder/rule.h"

namespace flamed::runtimes {
namespace {

using unwinder::CfaKind;
using unwinder::FpKind;
using unwinder::RaKind;
using unwinder::Rule;

using Bytes = std::vector<std::uint8_t>;

/// The rule at each offset of some code.
class Rules {
 public:
  template <typename Add>
  Rules(const Bytes& code, Add&& add) {
    HotSpotRows rows(table_);
    add(rows, std::as_bytes(std::span(code)));
    rows_ = rows.take();
  }
  [[nodiscard]] const Rule& at(std::size_t offset) const {
    const auto after = std::upper_bound(rows_.begin(), rows_.end(), offset,
                                        [](std::size_t at, const unwinder::Row& row) { return at < row.offset; });
    REQUIRE(after != rows_.begin());
    return table_.rule((after - 1)->rule);
  }
  [[nodiscard]] const std::vector<unwinder::Row>& rows() const { return rows_; }

 private:
  unwinder::RuleTable table_;
  std::vector<unwinder::Row> rows_;
};

bool is_by_sp(const Rule& rule, std::int32_t offset, bool fp_is_saved) {
  return rule.cfa == CfaKind::kSpOffset && rule.cfa_offset == offset && rule.ra == RaKind::kAtCfa &&
         rule.ra_offset == -8 && rule.fp == (fp_is_saved ? FpKind::kAtCfa : FpKind::kSame) &&
         rule.fp_offset == (fp_is_saved ? -16 : 0);
}
bool is_by_fp(const Rule& rule) {
  return rule.cfa == CfaKind::kFpOffset && rule.cfa_offset == 16 && rule.ra == RaKind::kAtCfa && rule.ra_offset == -8 &&
         rule.fp == FpKind::kAtCfa && rule.fp_offset == -16;
}
bool is_interpreted(const Rule& rule) {
  return rule.cfa == CfaKind::kFpDeref && rule.cfa_offset == -8 && rule.ra == RaKind::kAtFp && rule.ra_offset == 8 &&
         rule.fp == FpKind::kAtFp && rule.fp_offset == 0;
}
bool is_by_register(const Rule& rule, std::uint8_t number) {
  return rule.cfa == CfaKind::kRegisterOffset && rule.other_register == number && rule.ra == RaKind::kAtSp &&
         rule.ra_offset == 0;
}
bool is_unknown(const Rule& rule) { return rule.cfa == CfaKind::kUnsupported; }

TEST_CASE("a compiled method has its frame between the instructions that set it up and leave it") {
  const Bytes code{
      0x89, 0x84, 0x24, 0x00, 0xc0, 0xfe, 0xff,  // 0x00 mov %eax,-0x14000(%rsp)
      0x55,                                      // 0x07 push %rbp
      0x48, 0x83, 0xec, 0x30,                    // 0x08 sub $0x30,%rsp
      0x89, 0x34, 0x24,                          // 0x0c mov %esi,(%rsp)
      0xe8, 0xb4, 0xff, 0xff, 0xff,              // 0x0f call
      0x48, 0x83, 0xc4, 0x30,                    // 0x14 add $0x30,%rsp
      0x5d,                                      // 0x18 pop %rbp
      0x49, 0x3b, 0xa7, 0x40, 0x03, 0x00, 0x00,  // 0x19 cmp 0x340(%r15),%rsp
      0x0f, 0x87, 0x1d, 0x00, 0x00, 0x00,        // 0x20 ja
      0xc3,                                      // 0x26 ret
      0x48, 0x8b, 0xf0,                          // 0x27 mov %rax,%rsi
      0x48, 0x83, 0xc4, 0x30,                    // 0x2a add $0x30,%rsp
      0x5d,                                      // 0x2e pop %rbp
      0xe9, 0x79, 0xbc, 0xad, 0xff,              // 0x2f jmp
      0xf4,                                      // 0x34 hlt
  };
  const Rules rules(code, [](HotSpotRows& rows, auto bytes) { CHECK(rows.add_compiled(bytes, 8, 0x0c)); });
  for (const std::size_t at : {0x00U, 0x07U}) CHECK(is_by_sp(rules.at(at), 8, false));
  CHECK(is_by_sp(rules.at(0x08), 16, true));
  for (const std::size_t at : {0x0cU, 0x13U, 0x14U, 0x27U, 0x2aU, 0x34U}) CHECK(is_by_sp(rules.at(at), 64, true));
  for (const std::size_t at : {0x18U, 0x2eU}) CHECK(is_by_sp(rules.at(at), 16, true));
  for (const std::size_t at : {0x19U, 0x20U, 0x26U, 0x2fU}) CHECK(is_by_sp(rules.at(at), 8, false));
}

TEST_CASE("a frame that is set up without a push has the caller's frame pointer once that is saved") {
  const Bytes code{
      0x48, 0x81, 0xec, 0x18, 0x00, 0x00, 0x00,  // 0x00 sub $0x18,%rsp
      0x48, 0x89, 0x6c, 0x24, 0x10,              // 0x07 mov %rbp,0x10(%rsp)
      0x90,                                      // 0x0c nop
      0x48, 0x83, 0xc4, 0x10,                    // 0x0d add $0x10,%rsp
      0x5d,                                      // 0x11 pop %rbp
      0xc3,                                      // 0x12 ret
  };
  const Rules rules(code, [](HotSpotRows& rows, auto bytes) { CHECK(rows.add_compiled(bytes, 4, 12)); });
  CHECK(is_by_sp(rules.at(0x00), 8, false));
  CHECK(is_by_sp(rules.at(0x07), 32, false));
  CHECK(is_by_sp(rules.at(0x0c), 32, true));
  CHECK(is_by_sp(rules.at(0x11), 16, true));
  CHECK(is_by_sp(rules.at(0x12), 8, false));
}

TEST_CASE("a compiled method that sets up a frame of another size than it says is not known") {
  const Bytes code{0x55, 0x48, 0x83, 0xec, 0x20, 0xc3};
  const Rules rules(code, [](HotSpotRows& rows, auto bytes) {
    CHECK_FALSE(rows.add_compiled(bytes, 8, 5));
    CHECK_FALSE(rows.add_compiled(bytes, 0, 5));
    CHECK_FALSE(rows.add_compiled(bytes, 0xffffffff, 5));
    rows.add_unknown();
  });
  CHECK(is_unknown(rules.at(3)));
}

TEST_CASE("a stub with a frame pointer is walked by it until it is left") {
  const Bytes code{
      0x90,                    // 0x00 nop
      0x55, 0x48, 0x8b, 0xec,  // 0x01 push %rbp; mov %rsp,%rbp
      0x90, 0xc9, 0xc3,        // 0x05 nop; leave; ret
      0x90, 0xc9, 0xc3,        // 0x08 the same frame, left once more
      0x90,                    // 0x0b who knows
      0x55, 0x48, 0x8b, 0xec,  // 0x0c
      0x5d, 0xc3,              // 0x10 pop %rbp; ret
      0x90,                    // 0x12
  };
  const Rules rules(code, [](HotSpotRows& rows, auto bytes) { rows.add_stub(bytes); });
  CHECK(is_by_sp(rules.at(0x00), 8, false));
  CHECK(is_by_sp(rules.at(0x02), 16, true));
  for (const std::size_t at : {0x05U, 0x06U, 0x08U, 0x09U}) CHECK(is_by_fp(rules.at(at)));
  CHECK(is_by_sp(rules.at(0x07), 8, false));
  CHECK(is_unknown(rules.at(0x0b)));
  CHECK(is_by_fp(rules.at(0x10)));
  CHECK(is_by_sp(rules.at(0x11), 8, false));
  CHECK(is_unknown(rules.at(0x12)));
}

TEST_CASE("code that a virtual thread's frames return to has the frame pointer of the thread's entry") {
  const Bytes code{
      0x59,                                      // 0x00 pop %rcx
      0x48, 0x8b, 0xe3,                          // 0x01 mov %rbx,%rsp
      0x5d, 0xc3,                                // 0x04 pop %rbp; ret
      0x49, 0x8b, 0xa7, 0x38, 0x05, 0x00, 0x00,  // 0x06 mov 0x538(%r15),%rsp
      0x50, 0x48, 0x83, 0xec, 0x10,              // 0x0d push %rax; sub $16,%rsp
      0xe8, 0x00, 0x00, 0x00, 0x00,              // 0x12 call
      0x5d, 0xc3,                                // 0x17 pop %rbp; ret
      0x90,                                      // 0x19
  };
  const Rules rules(code, [](HotSpotRows& rows, auto bytes) { rows.add_stub(bytes); });
  CHECK(is_by_fp(rules.at(0x00)));
  // The byte before it, too.
  for (const std::size_t at : {0x05U, 0x06U, 0x0dU, 0x16U, 0x17U}) CHECK(is_by_fp(rules.at(at)));
  CHECK(is_by_sp(rules.at(0x18), 8, false));
  CHECK(is_unknown(rules.at(0x19)));
}

TEST_CASE("an adapter from compiled code has the caller's stack pointer in a register") {
  const Bytes code{
      0x48, 0x83, 0xe4, 0xf0, 0x50,  // 0x00 and $-16,%rsp; push %rax
      0x90,                          // 0x05
      0x58, 0x4c, 0x8b, 0xec,        // 0x06 pop %rax; mov %rsp,%r13
      0x48, 0x83, 0xec, 0x30,        // 0x0a sub $0x30,%rsp
      0x48, 0x89, 0x04, 0x24,        // 0x0e mov %rax,(%rsp)
      0xff, 0xe1,                    // 0x12 jmp *%rcx
  };
  const Rules rules(code, [](HotSpotRows& rows, auto bytes) { rows.add_adapter(bytes); });
  CHECK(is_unknown(rules.at(0x00)));
  CHECK(is_by_sp(rules.at(0x05), 8, false));
  for (const std::size_t at : {0x07U, 0x0aU, 0x0eU}) CHECK(is_unknown(rules.at(at)));
  CHECK(is_by_register(rules.at(0x12), 13));
}

TEST_CASE("the interpreter's frames stand from a method's entry to its end") {
  const Bytes code{
      0x90, 0x90,                          // 0x00 another part
      0x90,                                // 0x02 an entry
      0x58, 0x4c, 0x8d, 0x74, 0xcc, 0xf8,  // 0x03 pop %rax; lea -8(%rsp,%rcx,8),%r14
      0x50,                                // 0x09 push %rax
      0x55, 0x48, 0x8b, 0xec, 0x41, 0x55,  // 0x0a push %rbp; mov %rsp,%rbp; push %r13
      0x90,                                // 0x10
      0xc9,                                // 0x11 leave
      0x5e, 0x48, 0x8b, 0xe3,              // 0x12 pop %rsi; mov %rbx,%rsp
      0xff, 0xe6,                          // 0x16 jmp *%rsi
      0x90,                                // 0x18
  };
  const std::array<std::size_t, 2> parts{0, 2};
  const Rules rules(code, [&](HotSpotRows& rows, auto bytes) { rows.add_interpreter(bytes, parts); });
  CHECK(is_interpreted(rules.at(0x00)));
  for (const std::size_t at : {0x02U, 0x03U}) CHECK(is_by_register(rules.at(at), 13));
  for (const std::size_t at : {0x04U, 0x09U, 0x0eU}) CHECK(is_unknown(rules.at(at)));
  for (const std::size_t at : {0x10U, 0x11U, 0x18U}) CHECK(is_interpreted(rules.at(at)));
  CHECK(is_by_register(rules.at(0x12), 3));
  for (const std::size_t at : {0x13U, 0x16U}) CHECK(is_unknown(rules.at(at)));
}

TEST_CASE("any bytes have rows from the first one on, in order") {
  // Mostly bytes of the sequences that are looked for.
  const Bytes likely{0x55, 0x48, 0x8b, 0xec, 0x41, 0x83, 0x81, 0xc4, 0x30, 0x5d, 0xc9, 0xc3, 0xe9, 0xff, 0xe6, 0x00,
                     0x49, 0x3b, 0x67, 0x0f, 0x87, 0x89, 0x2c, 0x24, 0x58, 0x4c, 0x8d, 0x74, 0xcc, 0xf8, 0xe4, 0xf0};
  std::mt19937 random(1);
  for (int round = 0; round < 20'000; ++round) {
    Bytes code(1 + random() % 64);
    for (std::uint8_t& byte : code) byte = likely[random() % likely.size()];
    const std::array<std::size_t, 2> parts{0, code.size() / 2};
    const Rules rules(code, [&](HotSpotRows& rows, auto bytes) {
      switch (random() % 4) {
        case 0:
          if (!rows.add_compiled(bytes, 2 + random() % 8, static_cast<std::int64_t>(random() % 64) - 1))
            rows.add_unknown();
          break;
        case 1:
          rows.add_stub(bytes);
          break;
        case 2:
          rows.add_adapter(bytes);
          break;
        default:
          rows.add_interpreter(bytes, parts);
      }
    });
    REQUIRE(!rules.rows().empty());
    CHECK(rules.rows().front().offset == 0);
    const auto is_not_after = [](const auto& a, const auto& b) { return a.offset >= b.offset; };
    CHECK(std::adjacent_find(rules.rows().begin(), rules.rows().end(), is_not_after) == rules.rows().end());
  }
}

}  // namespace
}  // namespace flamed::runtimes
