// SPDX-License-Identifier: Apache-2.0
#include "unwinder/rows_builder.h"

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/keyed_hash.h"
#include "test/catch.h"
#include "test/unit/unwinder/frame_assembler.h"

namespace flamed::unwinder {
namespace {

constexpr std::uint64_t kCode = 0x40'0000;
constexpr AddressRange kAllCode{kCode, 0x10'0000};

Result<UnwindRows> try_build(EhFrame& frames, const BuildLimits& limits = {}, std::uint32_t max_padding = 0) {
  FrameSection section;
  section.bytes = frames.bytes();
  section.address = EhFrame::kAddress;
  return build_rows(BuildInput{.sections = {&section, 1}, .code = {&kAllCode, 1}, .max_padding = max_padding}, limits);
}

UnwindRows build(EhFrame& frames, std::uint32_t max_padding = 0) {
  Result<UnwindRows> rows = try_build(frames, {}, max_padding);
  REQUIRE(rows.ok());
  return std::move(rows).value();
}

/// The rule of a function that consists of `instructions`.
std::pair<Rule, BuildStats> rule_of(const Bytes& instructions, std::string_view augmentation = "zR") {
  EhFrame frames;
  const std::size_t cie = frames.cie_with(augmentation, Bytes{0x1b}, x86_64_start());
  frames.fde(cie, kCode, 0x10, instructions);
  const UnwindRows rows = build(frames);
  return {rows.find(kCode), rows.stats};
}

Rule sp_plus(std::int32_t offset) {
  Rule rule;
  rule.cfa = CfaKind::kSpOffset;
  rule.cfa_offset = offset;
  rule.ra_offset = -8;
  return rule;
}

std::vector<std::uint32_t> offsets(const UnwindRows& rows) {
  std::vector<std::uint32_t> all;
  for (const Row& row : rows.rows) all.push_back(row.offset);
  return all;
}

TEST_CASE("A function with a frame pointer gets a row for each step of its prologue and epilogue") {
  EhFrame frames;
  // push %rbp; mov %rsp,%rbp; ...; leave; ret
  frames.fde(frames.cie(x86_64_start()), kCode + 0x10, 0x20,
             {0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x5b, 0x0c, 7, 8, 0xc6});
  const UnwindRows rows = build(frames);
  CHECK(rows.base == kCode);
  CHECK(offsets(rows) == std::vector<std::uint32_t>{0x10, 0x11, 0x14, 0x2f, 0x30});
  CHECK(rows.find(kCode + 0x0f) == Rule{});
  CHECK(rows.find(kCode + 0x10) == sp_plus(8));
  Rule saved = sp_plus(16);
  saved.fp = FpKind::kAtCfa;
  saved.fp_offset = -16;
  CHECK(rows.find(kCode + 0x11) == saved);
  saved.cfa = CfaKind::kFpOffset;
  CHECK(rows.find(kCode + 0x14) == saved);
  CHECK(rows.find(kCode + 0x2e) == saved);
  CHECK(rows.find(kCode + 0x2f) == sp_plus(8));
  CHECK(rows.find(kCode + 0x30) == Rule{});
  CHECK(rows.find(kCode - 1) == Rule{});
  CHECK(rows.stats.functions == 1);
  CHECK(rows.stats.rows_before_merging == 4);
}

TEST_CASE("The rows of known functions have not changed since the current edition") {
  EhFrame frames;
  const std::size_t cie = frames.cie(x86_64_start());
  // A frame pointer; sp alone, with its state remembered and restored; the PLT's expression; an undefined return
  // address; a saved register and a CFA by another register; an expression that no rule has; a gap.
  frames.fde(cie, kCode, 0x20, {0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x5b, 0x0c, 7, 8, 0xc6});
  frames.fde(cie, kCode + 0x20, 0x20, {0x44, 0x0e, 32, 0x0a, 0x44, 0x0e, 8, 0x44, 0x0b});
  frames.fde(cie, kCode + 0x40, 0x20, {0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22});
  frames.fde(cie, kCode + 0x60, 0x20, {0x07, 16});
  frames.fde(cie, kCode + 0x80, 0x20, {0x44, 0x0c, 10, 0, 0x44, 0x0f, 3, 0x76, 0x78, 0x06});
  frames.fde(cie, kCode + 0xa0, 0x20, {0x44, 0x0f, 2, 0x30, 0x31});
  frames.fde(cie, kCode + 0xd0, 0x10, {});
  const UnwindRows rows = build(frames, 15);
  KeyedDigest digest(0x9e3779b97f4a7c15ULL);
  for (const Row& row : rows.rows) {
    digest.add(std::as_bytes(std::span(&row.offset, 1)));
    digest.add(std::as_bytes(std::span(&rows.rules[row.rule.value], 1)));
  }
  // Another digest: raise kRowsEdition, or the rows that users have on disk are wrong. Then put both numbers here.
  CHECK(kRowsEdition == 3);
  CHECK(digest.value() == 0x62160cbf7eea9585ULL);
}

TEST_CASE("Rows are sorted by address whatever the order of the records") {
  EhFrame frames;
  const std::size_t cie = frames.cie(x86_64_start());
  frames.fde(cie, kCode + 0x200, 0x10, {});
  frames.fde(cie, kCode + 0x100, 0x10, {});
  frames.fde(cie, kCode + 0x300, 0x10, {});
  CHECK(offsets(build(frames)) == std::vector<std::uint32_t>{0x100, 0x110, 0x200, 0x210, 0x300, 0x310});
}

TEST_CASE("Neighbours with the same rule become one row, within a function and across functions") {
  EhFrame frames;
  const std::size_t cie = frames.cie(x86_64_start());
  frames.fde(cie, kCode, 0x10, {0x44, 0x83, 2});
  frames.fde(cie, kCode + 0x10, 0x10, {0x44, 0x0e, 16});
  const UnwindRows rows = build(frames);
  CHECK(offsets(rows) == std::vector<std::uint32_t>{0, 0x14, 0x20});
  CHECK(rows.stats.rows_before_merging == 4);
}

TEST_CASE("Gaps between functions are rows without a known rule, unless taken for padding") {
  EhFrame frames;
  const std::size_t cie = frames.cie(x86_64_start());
  frames.fde(cie, kCode, 0x11, {});
  frames.fde(cie, kCode + 0x20, 0x10, {});
  frames.fde(cie, kCode + 0x40, 0x10, {});
  CHECK(offsets(build(frames)) == std::vector<std::uint32_t>{0, 0x11, 0x20, 0x30, 0x40, 0x50});
  CHECK(build(frames).find(kCode + 0x11) == Rule{});
  CHECK(offsets(build(frames, 15)) == std::vector<std::uint32_t>{0, 0x30, 0x40, 0x50});
}

TEST_CASE("At the same address the first record wins; of overlapping functions the one that begins first") {
  EhFrame frames;
  const std::size_t cie = frames.cie(x86_64_start());
  frames.fde(cie, kCode, 0x20, {0x0e, 16});
  frames.fde(cie, kCode, 0x20, {0x0e, 24});
  frames.fde(cie, kCode + 0x10, 0x20, {0x0e, 32, 0x58, 0x0e, 40});
  frames.fde(cie, kCode + 0x08, 0x04, {0x0e, 48});
  const UnwindRows rows = build(frames);
  CHECK(rows.find(kCode) == sp_plus(16));
  CHECK(rows.find(kCode + 0x1f) == sp_plus(16));
  CHECK(rows.find(kCode + 0x20) == sp_plus(32));
  CHECK(rows.find(kCode + 0x28) == sp_plus(40));
  CHECK(rows.find(kCode + 0x30) == Rule{});
  CHECK(rows.stats.count(Skipped::kOverlap) == 3);
}

TEST_CASE("Records outside of executable code are counted and left out; those past its end are cut") {
  EhFrame frames;
  const std::size_t cie = frames.cie(x86_64_start());
  frames.fde(cie, 0, 0x10, {});
  frames.fde(cie, kCode + kAllCode.size, 0x10, {});
  frames.fde(cie, kCode + kAllCode.size - 8, 0x10, {});
  frames.fde(cie, kCode, 0, {});
  const UnwindRows rows = build(frames);
  CHECK(rows.stats.count(Skipped::kNotCode) == 2);
  CHECK(offsets(rows) == std::vector<std::uint32_t>{0xf'fff8, 0x10'0000});
}

TEST_CASE("From a damaged instruction to the function's end no rule is known") {
  EhFrame frames;
  frames.fde(frames.cie(x86_64_start()), kCode, 0x10, {0x44, 0x0e, 16, 0x44, 0x3f});
  const UnwindRows rows = build(frames);
  CHECK(rows.find(kCode + 3) == sp_plus(8));
  CHECK(rows.find(kCode + 4) == sp_plus(16));
  CHECK(rows.find(kCode + 8).cfa == CfaKind::kUnsupported);
  CHECK(rows.find(kCode + 0xf).cfa == CfaKind::kUnsupported);
  CHECK(rows.stats.count(Skipped::kBadProgram) == 1);
}

TEST_CASE("An undefined return address means that the stack ends here") {
  const auto [rule, stats] = rule_of({0x07, 16});
  Rule outermost;
  outermost.cfa = CfaKind::kOutermost;
  CHECK(rule == outermost);
}

TEST_CASE("gcc's dynamically realigned frames have exact rules") {
  // lea 8(%rsp),%r10: CFA is r10. Later: CFA is *(rbp - 8), rbp is saved at rbp.
  Rule by_register = sp_plus(0);
  by_register.cfa = CfaKind::kRegisterOffset;
  by_register.other_register = 10;
  CHECK(rule_of({0x0c, 10, 0}).first == by_register);

  Rule realigned;
  realigned.cfa = CfaKind::kFpDeref;
  realigned.cfa_offset = -8;
  realigned.fp = FpKind::kAtFp;
  realigned.ra_offset = -8;
  CHECK(rule_of({0x0c, 10, 0, 0x10, 6, 2, 0x76, 0, 0x0f, 3, 0x76, 0x78, 0x06}).first == realigned);
  // Behind the epilogue's pops: the CFA is sp + 8, and the frame pointer is the caller's.
  CHECK(rule_of({0x0c, 10, 0, 0x10, 6, 2, 0x76, 0, 0x0c, 7, 8}).first == sp_plus(8));
}

TEST_CASE("Where one function's CFA is found by the base register, all rules say where it is") {
  const auto rows_with = [](const Bytes& last) {
    EhFrame frames;
    const std::size_t cie = frames.cie(x86_64_start());
    // push %rbx; a large frame; pop %rbx, and the same far away.
    frames.fde(cie, kCode, 0x20, {0x41, 0x0e, 16, 0x83, 2, 0x42, 0x0e, 64, 0x48, 0x0e, 8, 0xc3});
    frames.fde(cie, kCode + 0x20, 0x10, {0x83, 0xfe, 1, 0x44, 0x83, 0xff, 1});  // 254 and 255 words below the CFA
    frames.fde(cie, kCode + 0x30, 0x10, {0x16, 3, 2, 0x77, 0});                 // a value that is computed
    frames.fde(cie, kCode + 0x40, 0x10, {0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22});
    frames.fde(cie, kCode + 0x50, 0x10, last);
    return build(frames);
  };
  const UnwindRows without = rows_with({0x0c, 10, 0});
  for (const Rule& rule : without.rules) CHECK(rule.base_words == 0);
  CHECK(without.stats.functions == 5);

  const UnwindRows rows = rows_with({0x41, 0x0e, 16, 0x83, 2, 0x43, 0x0d, 3});
  const auto words_at = [&](std::uint64_t offset) { return int{rows.find(kCode + offset).base_words}; };
  CHECK(words_at(0) == kSameBase);
  CHECK(words_at(0x01) == 2);
  CHECK(words_at(0x04) == 2);
  CHECK(words_at(0x0b) == kSameBase);
  CHECK(words_at(0x20) == 254);
  CHECK(words_at(0x24) == 0);
  CHECK(words_at(0x30) == 0);
  CHECK(words_at(0x40) == kSameBase);
  CHECK(rows.find(kCode + 0x40).plt_threshold == 11);
  Rule by_base = sp_plus(16);
  by_base.cfa = CfaKind::kRegisterOffset;
  by_base.other_register = 3;
  by_base.base_words = 2;
  CHECK(rows.find(kCode + 0x54) == by_base);
  CHECK(rows.find(kCode + 0x60) == Rule{});
  // What was built first has left nothing behind.
  CHECK(rows.stats.functions == without.stats.functions);
  for (std::size_t i = 2; i < rows.rules.size(); ++i)
    CHECK((rows.rules[i].base_words != 0 || rows.rules[i].cfa_offset == 8));
}

TEST_CASE("Assembly that saves the caller's stack pointer in its frame has exact rules") {
  Rule rule = sp_plus(88);
  rule.cfa = CfaKind::kSpDeref;
  rule.cfa_addend = 8;
  CHECK(rule_of({0x0f, 6, 0x77, 0xd8, 0x00, 0x06, 0x23, 8}).first == rule);
}

TEST_CASE("The PLT's expression has its threshold") {
  Rule rule = sp_plus(8);
  rule.cfa = CfaKind::kPlt;
  rule.plt_threshold = 11;
  CHECK(rule_of({0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22}).first == rule);
}

TEST_CASE("glibc's signal trampoline has the rule of signal_frame_rule") {
  Bytes trampoline{0x0f, 4, 0x77, 0xa0, 0x01, 0x06};                        // CFA: *(rsp + 160)
  trampoline.append({0x10, 16, 3, 0x77, 0xa8, 0x01});                       // rip: at rsp + 168
  trampoline.append({0x10, 6, 3, 0x77, 0xf8, 0x00});                        // rbp: at rsp + 120
  trampoline.append({0x10, 7, 3, 0x77, 0xa0, 0x01, 0x10, 8, 2, 0x77, 40});  // rsp: at rsp + 160; r8
  CHECK(rule_of(trampoline, "zRS").first == signal_frame_rule(Architecture::kX86_64));

  Rule plain = signal_frame_rule(Architecture::kX86_64);
  plain.cfa = CfaKind::kSpDeref;
  plain.signal_frame = 0;
  CHECK(rule_of(trampoline).first == plain);
}

TEST_CASE("the code that signal handlers return to has the rule of a signal frame, from the byte before it on") {
  EhFrame frames;
  const std::size_t cie = frames.cie(x86_64_start());
  frames.fde(cie, kCode + 0x10, 0x20, {0x41, 0x0e, 16});
  frames.fde(cie, kCode + 0x40, 0x10, {});
  frames.fde(cie, kCode + 0x60, 0x10, {0x48, 0x0e, 32});
  FrameSection section;
  section.bytes = frames.bytes();
  section.address = EhFrame::kAddress;
  const auto rows_with = [&](const AddressRange& signal_return) {
    const RuledCode ruled{signal_return, signal_frame_rule(Architecture::kX86_64)};
    Result<UnwindRows> rows =
        build_rows(BuildInput{.sections = {&section, 1}, .code = {&kAllCode, 1}, .ruled_code = {&ruled, 1}});
    REQUIRE(rows.ok());
    return std::move(rows).value();
  };
  const Rule expected = signal_frame_rule(Architecture::kX86_64);
  struct Case {
    std::string where;
    AddressRange range;
    Rule before;
    Rule after;
  };
  const Case wanted = GENERATE(values<Case>({
      {"a function of its own", {kCode + 0x40, 0x10}, Rule{}, Rule{}},
      {"right behind another", {kCode + 0x30, 0x8}, sp_plus(16), Rule{}},
      {"a part of one", {kCode + 0x62, 0x9}, sp_plus(8), sp_plus(32)},
      {"code without a description, behind all", {kCode + 0x100, 0x10}, Rule{}, Rule{}},
      {"code without a description, before all", {kCode + 0x8, 0x2}, Rule{}, Rule{}},
      {"up to the next one", {kCode + 0x50, 0x10}, sp_plus(8), sp_plus(8)},
  }));
  INFO(wanted.where);
  const UnwindRows rows = rows_with(wanted.range);
  const std::uint64_t end = wanted.range.address + wanted.range.size;
  CHECK(rows.find(wanted.range.address - 2) == wanted.before);
  CHECK(rows.find(wanted.range.address - 1) == expected);
  CHECK(rows.find(end - 1) == expected);
  CHECK(rows.find(end) == wanted.after);
  CHECK(rows.rules[rows.rows.back().rule.value] == Rule{});
  for (std::size_t i = 1; i < rows.rows.size(); ++i) {
    CHECK(rows.rows[i - 1].offset < rows.rows[i].offset);
    CHECK(rows.rows[i - 1].rule != rows.rows[i].rule);
  }
}

TEST_CASE("known rules replace those of the unwind information, exactly for their code") {
  EhFrame frames;
  const std::size_t cie = frames.cie(x86_64_start());
  frames.fde(cie, kCode + 0x10, 0x40, {0x48, 0x0e, 16});
  FrameSection section;
  section.bytes = frames.bytes();
  section.address = EhFrame::kAddress;
  Rule other = sp_plus(64);
  Rule outermost;
  outermost.cfa = CfaKind::kOutermost;
  // In any order, one right behind another, and one that replaces a part of another.
  const std::vector<RuledCode> ruled{
      {{kCode + 0x30, 0x10}, outermost}, {{kCode + 0x20, 0x10}, other}, {{kCode + 0x34, 0x2}, sp_plus(8)}};
  const Result<UnwindRows> rows =
      build_rows(BuildInput{.sections = {&section, 1}, .code = {&kAllCode, 1}, .ruled_code = ruled});
  REQUIRE(rows.ok());
  CHECK(offsets(*rows) == std::vector<std::uint32_t>{0x10, 0x18, 0x20, 0x30, 0x34, 0x36, 0x40, 0x50});
  CHECK(rows->find(kCode + 0x1f) == sp_plus(16));
  CHECK(rows->find(kCode + 0x20) == other);
  CHECK(rows->find(kCode + 0x30) == outermost);
  CHECK(rows->find(kCode + 0x35) == sp_plus(8));
  CHECK(rows->find(kCode + 0x3f) == outermost);
  CHECK(rows->find(kCode + 0x40) == sp_plus(16));
}

TEST_CASE("a known rule for code outside of the code changes nothing") {
  const AddressRange outside = GENERATE(AddressRange{kCode - 4, 16}, AddressRange{kCode + 0xf'fff8, 16},
                                        AddressRange{kCode, ~std::uint64_t{0}}, AddressRange{kCode, 0});
  const RuledCode ruled{outside, signal_frame_rule(Architecture::kX86_64)};
  const Result<UnwindRows> rows =
      build_rows(BuildInput{.sections = {}, .code = {&kAllCode, 1}, .ruled_code = {&ruled, 1}});
  REQUIRE(rows.ok());
  CHECK(rows->rows.empty());
  CHECK(rows->stats.count(Skipped::kNotCode) == 1);
}

TEST_CASE("the code that signal handlers return to may be the first code, or all of it") {
  const RuledCode all{{kCode, 0x10'0000}, signal_frame_rule(Architecture::kX86_64)};
  const Result<UnwindRows> rows =
      build_rows(BuildInput{.sections = {}, .code = {&kAllCode, 1}, .ruled_code = {&all, 1}});
  REQUIRE(rows.ok());
  CHECK(offsets(*rows) == std::vector<std::uint32_t>{0, 0x10'0000});
  CHECK(rows->find(kCode) == signal_frame_rule(Architecture::kX86_64));
}

TEST_CASE("A return address or frame pointer in another register has that register's number") {
  Rule vfork = sp_plus(0);
  vfork.ra = RaKind::kInRegister;
  vfork.ra_offset = 0;
  vfork.other_register = 5;
  CHECK(rule_of({0x0e, 0, 0x09, 16, 5}).first == vfork);

  Rule rule = sp_plus(8);
  rule.fp = FpKind::kInRegister;
  rule.other_register = 11;
  CHECK(rule_of({0x09, 6, 11}).first == rule);
}

TEST_CASE("State that a rule can't express is unsupported and counted by its kind") {
  const auto check = [](const Bytes& instructions, Skipped kind) {
    const auto [rule, stats] = rule_of(instructions);
    CHECK(rule.cfa == CfaKind::kUnsupported);
    CHECK(stats.count(kind) == 1);
  };
  check({0x0f, 3, 0x77, 8, 0x96}, Skipped::kCfaExpression);
  check(Bytes{0x0c, 7}.uleb(std::uint64_t{1} << 33), Skipped::kCfaExpression);
  check({0x14, 16, 1}, Skipped::kRaExpression);
  check({0x10, 16, 2, 0x73, 0}, Skipped::kRaExpression);
  check({0x08, 16}, Skipped::kRaExpression);  // x86-64 has no register to leave it in
  check({0x87, 2}, Skipped::kSpRule);
  check({0x09, 7, 10}, Skipped::kSpRule);
}

TEST_CASE("A frame pointer that can't be expressed costs the frame pointer, not the caller") {
  const auto [rule, stats] = rule_of({0x16, 6, 3, 0x77, 8, 0x06});
  Rule expected = sp_plus(8);
  expected.fp = FpKind::kUnknown;
  CHECK(rule == expected);
  CHECK(stats.count(Skipped::kFpExpression) == 1);

  const auto [undefined, no_loss] = rule_of({0x07, 6});
  CHECK(undefined == expected);
  CHECK(no_loss.count(Skipped::kFpExpression) == 0);
}

TEST_CASE("An explicit rule that the caller's stack pointer is the CFA is accepted") {
  CHECK(rule_of({0x14, 7, 0}).first == sp_plus(8));
}

TEST_CASE("Without a defined CFA nothing is known") {
  EhFrame frames;
  frames.fde(frames.cie({0x90, 1}), kCode, 0x10, {});
  const UnwindRows rows = build(frames);
  CHECK(rows.find(kCode) == Rule{});
}

TEST_CASE("A damaged section has its rows before the damage and is reported") {
  EhFrame frames;
  frames.fde(frames.cie(x86_64_start()), kCode, 0x10, {});
  CHECK_FALSE(build(frames).stats.cut_short);
  frames.bytes().u32(0x1000);
  const UnwindRows rows = build(frames);
  CHECK(rows.stats.cut_short);
  CHECK(rows.find(kCode) == sp_plus(8));
}

TEST_CASE("No sections or no code give no rows") {
  const Result<UnwindRows> nothing = build_rows(BuildInput{});
  REQUIRE(nothing.ok());
  CHECK(nothing->rows.empty());
  CHECK(nothing->find(kCode) == Rule{});
  const Result<UnwindRows> no_sections = build_rows(BuildInput{.sections = {}, .code = {&kAllCode, 1}});
  REQUIRE(no_sections.ok());
  CHECK(no_sections->find(kCode) == Rule{});
}

TEST_CASE("Two sections complete each other, and the first wins where both have a rule") {
  EhFrame first;
  first.fde(first.cie(x86_64_start()), kCode, 0x10, {});
  EhFrame second;
  const std::size_t cie = second.cie(x86_64_start());
  second.fde(cie, kCode, 0x10, {0x0e, 16});
  second.fde(cie, kCode + 0x10, 0x10, {0x0e, 24});
  std::array<FrameSection, 2> sections;
  sections[0].bytes = first.bytes();
  sections[1].bytes = second.bytes();
  sections[0].address = sections[1].address = EhFrame::kAddress;
  const Result<UnwindRows> rows = build_rows(BuildInput{.sections = sections, .code = {&kAllCode, 1}});
  REQUIRE(rows.ok());
  CHECK(rows->find(kCode) == sp_plus(8));
  CHECK(rows->find(kCode + 0x10) == sp_plus(24));
}

TEST_CASE("Each limit is an error that names it") {
  EhFrame frames;
  const std::size_t cie = frames.cie(x86_64_start());
  for (std::uint64_t i = 0; i < 4; ++i) frames.fde(cie, kCode + i * 0x10, 0x10, Bytes{0x0e}.uleb(8 * (i + 2)));
  const auto error = [&](const BuildLimits& limits) {
    const Result<UnwindRows> rows = try_build(frames, limits);
    REQUIRE_FALSE(rows.ok());
    return rows.error().message();
  };
  CHECK(error({.max_section_bytes = 10}).find("more than the limit of 10") != std::string::npos);
  CHECK(error({.max_functions = 3}).find("more functions in the unwind information than the limit of 3") !=
        std::string::npos);
  CHECK(error({.max_rows = 4}).find("more unwind rows than the limit of 4") != std::string::npos);
  CHECK(error({.max_rules = 5}).find("more different rules in the unwind information than the limit of 5") !=
        std::string::npos);
  CHECK(try_build(frames, {.max_functions = 4, .max_rows = 5, .max_rules = 6}).ok());
}

TEST_CASE("The limit of CPU time ends the read of a section of endless small records") {
  EhFrame frames;
  const std::size_t cie = frames.cie(x86_64_start());
  for (std::uint64_t i = 0; i < 10'000; ++i) frames.fde(cie, kCode + i * 0x10, 0x10, {});
  const Result<UnwindRows> rows = try_build(frames, {.max_cpu_ns = 0});
  REQUIRE_FALSE(rows.ok());
  CHECK(rows.error().message().find("CPU time") != std::string::npos);
}

TEST_CASE("Executable ranges out of order, or over a span of more than 4 GiB, are refused") {
  const std::array<AddressRange, 2> unordered{AddressRange{0x2000, 0x1000}, AddressRange{0x1000, 0x1000}};
  CHECK_FALSE(build_rows(BuildInput{.sections = {}, .code = unordered}).ok());
  const std::array<AddressRange, 2> spread{AddressRange{0, 0x1000}, AddressRange{std::uint64_t{1} << 32, 0x1000}};
  CHECK_FALSE(build_rows(BuildInput{.sections = {}, .code = spread}).ok());
  const AddressRange wraps{~std::uint64_t{0} - 8, 0x1000};
  CHECK_FALSE(build_rows(BuildInput{.sections = {}, .code = {&wraps, 1}}).ok());
}

/// .eh_frame at 0x10080 of these functions, as aarch64-linux-gnu-gcc 12 -O2 -mbranch-protection=pac-ret writes it:
///   int leaf(int x) { return x + 1; }                                 0x10000, 8 bytes
///   int plain(int x) { int a[4] = {x}; return g(a) + 1; }             0x10010, 0x34 bytes
///   int big(int x) { int a[4096]; a[0] = x; return g(a) + 2; }        0x10044, 0x3c bytes
const Bytes kArm64EhFrame{0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x7a, 0x52, 0x00, 0x04, 0x78, 0x1e,
                          0x01, 0x1b, 0x0c, 0x1f, 0x00, 0x10, 0x00, 0x00, 0x00, 0x18, 0x00, 0x00, 0x00, 0x64, 0xff,
                          0xff, 0xff, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x20, 0x00, 0x00, 0x00, 0x2c,
                          0x00, 0x00, 0x00, 0x60, 0xff, 0xff, 0xff, 0x34, 0x00, 0x00, 0x00, 0x00, 0x41, 0x2d, 0x42,
                          0x0e, 0x20, 0x9d, 0x04, 0x9e, 0x03, 0x48, 0xde, 0xdd, 0x0e, 0x00, 0x41, 0x2d, 0x00, 0x00,
                          0x00, 0x24, 0x00, 0x00, 0x00, 0x50, 0x00, 0x00, 0x00, 0x70, 0xff, 0xff, 0xff, 0x3c, 0x00,
                          0x00, 0x00, 0x00, 0x41, 0x2d, 0x42, 0x0e, 0x90, 0x80, 0x01, 0x43, 0x9d, 0x82, 0x10, 0x9e,
                          0x81, 0x10, 0x47, 0xdd, 0xde, 0x0e, 0x00, 0x41, 0x2d, 0x00, 0x00};

TEST_CASE("arm64 functions keep their return address in lr until they save it, signed or not") {
  FrameSection section;
  section.bytes = kArm64EhFrame;
  section.address = 0x10080;
  const AddressRange code{0x10000, 0x80};
  const Result<UnwindRows> built =
      build_rows(BuildInput{.architecture = Architecture::kArm64, .sections = {&section, 1}, .code = {&code, 1}});
  REQUIRE(built.ok());
  const UnwindRows& rows = *built;
  CHECK(rows.stats.functions == 3);
  for (std::size_t i = 0; i < kSkippedKinds; ++i) CHECK(rows.stats.skipped[i] == 0);

  Rule in_lr;
  in_lr.cfa = CfaKind::kSpOffset;
  in_lr.ra = RaKind::kInLr;
  Rule in_lr_signed = in_lr;
  in_lr_signed.ra_signed = 1;
  Rule saved;
  saved.cfa = CfaKind::kSpOffset;
  saved.cfa_offset = 32;
  saved.fp = FpKind::kAtCfa;
  saved.fp_offset = -32;
  saved.ra_offset = -24;
  saved.ra_signed = 1;
  CHECK(rows.find(0x10000) == in_lr);
  CHECK(rows.find(0x10008) == Rule{});
  CHECK(rows.find(0x10010) == in_lr);
  CHECK(rows.find(0x10014) == in_lr_signed);
  CHECK(rows.find(0x1001c) == saved);
  CHECK(rows.find(0x10038) == saved);
  CHECK(rows.find(0x1003c) == in_lr_signed);
  CHECK(rows.find(0x10040) == in_lr);

  Rule big_not_saved = in_lr_signed;
  big_not_saved.cfa_offset = 16'400;
  Rule big_saved = saved;
  big_saved.cfa_offset = 16'400;
  big_saved.fp_offset = -16'400;
  big_saved.ra_offset = -16'392;
  CHECK(rows.find(0x10050) == big_not_saved);
  CHECK(rows.find(0x1005c) == big_saved);
  CHECK(rows.find(0x1007c) == in_lr);
  CHECK(rows.find(0x10080) == Rule{});
}

}  // namespace
}  // namespace flamed::unwinder
