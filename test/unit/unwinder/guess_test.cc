// SPDX-License-Identifier: Apache-2.0
//
// What may have called code without rules: guess_stack() over small stacks, and indirect calls by their bytes.
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "test/catch.h"
#include "unwinder/call_site.h"
#include "unwinder/walk.h"

namespace flamed::unwinder {
namespace {

constexpr std::uint64_t kSp = 0x7ff0'0000'0000;
/// Code without rules; functions with frames of 16 bytes (one word below the return address); the entry.
constexpr std::uint64_t kJit = 0x1000, kSmall = 0x2000, kOther = 0x3000, kMain = 0x4000, kPendingCode = 0x5000;

/// A stack whose innermost code is compiled, with a frame pointer that leads nowhere.
struct GuessedStack {
  explicit GuessedStack(std::vector<std::uint64_t> stack) : words(std::move(stack)) {
    const auto numbers = registers_of(Architecture::kX86_64);
    registers[numbers.pc] = kJit + 8;
    registers[numbers.sp] = kSp;
    registers[numbers.fp] = 1;
  }

  [[nodiscard]] Code find(std::uint64_t address) const {
    Rule rule;
    rule.cfa = CfaKind::kSpOffset;
    rule.cfa_offset = 16;
    rule.ra_offset = -8;
    switch (address & ~std::uint64_t{0xfff}) {
      case kJit:
        return {Code::Is::kWithoutRows};
      case kSmall:
      case kOther:
        return {Code::Is::kRuled, rule};
      case kMain:
        rule = Rule{};
        rule.cfa = CfaKind::kOutermost;
        return {Code::Is::kRuled, rule};
      case kPendingCode:
        return {Code::Is::kPending};
      default:
        return {Code::Is::kUnmapped};
    }
  }
  [[nodiscard]] std::optional<WalkedStack> guess(std::size_t most_frames = 100) const {
    const auto look_up = [this](std::uint64_t address) { return find(address); };
    const auto read = [this](std::uint64_t address) -> std::optional<std::uint64_t> {
      const std::uint64_t index = (address - kSp) / 8;
      return index < words.size() ? std::optional(words[index]) : std::nullopt;
    };
    const WalkedStack failed = walk_stack(Architecture::kX86_64, registers, most_frames, look_up, read);
    REQUIRE(failed.end == WalkEnd::kNoInformation);
    REQUIRE(failed.unsure);
    return guess_stack(Architecture::kX86_64, failed, most_frames, look_up, read,
                       [this](std::uint64_t address) { return no_calls.count(address) == 0; });
  }

  std::vector<std::uint64_t> words;
  std::set<std::uint64_t> no_calls;  ///< addresses without an indirect call before them
  AllRegisters registers{};
};

using Addresses = std::vector<std::uint64_t>;

TEST_CASE("the callers of code without rules are those from which rules lead to the outermost frame") {
  const GuessedStack stack({7, 42, kSmall + 4, 0, kMain + 4});
  const auto guess = stack.guess();
  REQUIRE(guess);
  CHECK(guess->end == WalkEnd::kOutermost);
  CHECK(guess->addresses == Addresses{kJit + 8, kSmall + 4, kMain + 4});
}

TEST_CASE("a word from which rules lead nowhere, or that no indirect call is before, is no caller") {
  GuessedStack stack({kOther + 4, 9, 9, kSmall + 4, 0, kMain + 4});
  CHECK(stack.guess()->addresses == Addresses{kJit + 8, kSmall + 4, kMain + 4});
  GuessedStack passes({kOther + 4, 0, kSmall + 4, 0, kMain + 4});
  CHECK(passes.guess()->addresses == Addresses{kJit + 8, kOther + 4, kSmall + 4, kMain + 4});
  passes.no_calls = {kOther + 4};
  CHECK(passes.guess()->addresses == Addresses{kJit + 8, kSmall + 4, kMain + 4});
}

TEST_CASE("there is no guess if what was called earlier has left a stack of its own") {
  CHECK_FALSE(GuessedStack({kOther + 4, kSmall + 4, kMain + 4, kMain + 8}).guess());
  CHECK_FALSE(GuessedStack({kSmall + 4, 0, kMain + 4, kOther + 4, 0, kMain + 9}).guess());
}

TEST_CASE("a guess waits for rows that are pending") {
  CHECK(GuessedStack({kPendingCode + 4, 0, kMain + 4}).guess()->end == WalkEnd::kPending);
  CHECK(GuessedStack({kSmall + 4, 0, kPendingCode + 4}).guess()->end == WalkEnd::kPending);
}

TEST_CASE("without any caller in reach there is no guess, and with little room only short ones") {
  CHECK_FALSE(GuessedStack({}).guess());
  CHECK_FALSE(GuessedStack({1, 2, 3}).guess());
  CHECK_FALSE(GuessedStack({0, kJit + 4, 0, 0}).guess());
  std::vector<std::uint64_t> far(512, 0);
  far.push_back(kMain + 4);
  CHECK_FALSE(GuessedStack(far).guess());
  far[511] = kMain + 4;
  CHECK(GuessedStack(far).guess());
  CHECK_FALSE(GuessedStack({kSmall + 4, 0, kMain + 4}).guess(2));
  CHECK(GuessedStack({kSmall + 4, 0, kMain + 4}).guess(3)->addresses.size() == 3);
}

/// Before them stand bytes that no call begins with.
bool is_call(Architecture architecture, const std::vector<unsigned>& bytes) {
  std::array<std::byte, kCallBytes> before{};
  before.fill(std::byte{0x90});
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    before[kCallBytes - bytes.size() + i] = static_cast<std::byte>(bytes[i]);
  }
  return is_indirect_call(architecture, before);
}

TEST_CASE("indirect calls of x86-64 are recognised in every form, and other instructions are not") {
  const auto is = [](const std::vector<unsigned>& bytes) { return is_call(Architecture::kX86_64, bytes); };
  CHECK(is({0xff, 0xd0}));                                // call *%rax
  CHECK(is({0x41, 0xff, 0xd7}));                          // call *%r15
  CHECK(is({0x3e, 0xff, 0xd2}));                          // notrack call *%rdx
  CHECK(is({0xff, 0x13}));                                // call *(%rbx)
  CHECK(is({0x41, 0xff, 0x14, 0x24}));                    // call *(%r12)
  CHECK(is({0xff, 0x14, 0xc3}));                          // call *(%rbx,%rax,8)
  CHECK(is({0xff, 0x50, 0x18}));                          // call *0x18(%rax)
  CHECK(is({0x41, 0xff, 0x54, 0x24, 0x08}));              // call *8(%r12)
  CHECK(is({0xff, 0x90, 0x00, 0x01, 0x00, 0x00}));        // call *0x100(%rax)
  CHECK(is({0xff, 0x94, 0xc3, 0x00, 0x01, 0x00, 0x00}));  // call *0x100(%rbx,%rax,8)
  CHECK_FALSE(is({0xe8, 0x10, 0x20, 0x00, 0x00}));        // call f
  CHECK_FALSE(is({0xff, 0x15, 0x10, 0x20, 0x00, 0x00}));  // call *f@GOTPCREL(%rip)
  CHECK_FALSE(is({0xff, 0xe0}));                          // jmp *%rax
  CHECK_FALSE(is({0xff, 0x30}));                          // push (%rax)
  CHECK_FALSE(is({}));
}

TEST_CASE("indirect calls of arm64 are recognised, and other instructions are not") {
  const auto is = [](std::uint32_t instruction) {
    return is_call(Architecture::kArm64,
                   {instruction & 0xff, instruction >> 8 & 0xff, instruction >> 16 & 0xff, instruction >> 24});
  };
  CHECK(is(0xd63f0000));        // blr x0
  CHECK(is(0xd63f03c0));        // blr x30
  CHECK(is(0xd63f081f));        // blraaz x0
  CHECK(is(0xd73f0c41));        // blrab x2, x1
  CHECK_FALSE(is(0x94000010));  // bl
  CHECK_FALSE(is(0xd61f0000));  // br x0
  CHECK_FALSE(is(0xd65f03c0));  // ret
}

}  // namespace
}  // namespace flamed::unwinder
