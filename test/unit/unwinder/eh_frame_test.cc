// SPDX-License-Identifier: Apache-2.0
#include "unwinder/eh_frame.h"

#include <cstdint>
#include <vector>

#include "test/catch.h"
#include "test/unit/unwinder/frame_assembler.h"

namespace flamed::unwinder {
namespace {

using Next = FrameRecords::Next;

struct Seen {
  std::vector<Fde> fdes;
  std::vector<Cie> cies;
  std::vector<Next> all;
};

Seen read(const FrameSection& section, Architecture architecture = Architecture::kX86_64) {
  FrameRecords records(section, architecture);
  Seen seen;
  for (;;) {
    Fde fde;
    seen.all.push_back(records.next(fde));
    if (seen.all.back() == Next::kFinished || seen.all.back() == Next::kDamaged) return seen;
    if (seen.all.back() != Next::kFde) continue;
    seen.fdes.push_back(fde);
    seen.cies.push_back(records.cie(fde.cie));
  }
}

FrameSection section(const Bytes& bytes) {
  FrameSection section;
  section.bytes = bytes;
  section.address = EhFrame::kAddress;
  return section;
}

Seen read(EhFrame& frames) { return read(section(frames.bytes())); }

FrameSection debug_section(const Bytes& bytes) {
  FrameSection section;
  section.format = FrameSection::Format::kDebugFrame;
  section.bytes = bytes;
  return section;
}

TEST_CASE("A function's record has its address, size and initial state") {
  EhFrame frames;
  frames.fde(frames.cie(x86_64_start()), 0x40'1000, 0x20, {});
  const Seen seen = read(frames);
  REQUIRE(seen.fdes.size() == 1);
  CHECK(seen.fdes[0].begin == 0x40'1000);
  CHECK(seen.fdes[0].size == 0x20);
  CHECK(seen.cies[0].initial.cfa == CfaState{.kind = CfaState::Kind::kRegister, .reg = 7, .offset = 8});
  CHECK(seen.cies[0].initial.ra == RegisterState{.kind = RegisterState::Kind::kAtCfa, .offset = -8});
  CHECK_FALSE(seen.cies[0].signal_frame);
  CHECK(seen.all.back() == Next::kFinished);
}

TEST_CASE("An empty section has no functions") { CHECK(read(section({})).all == std::vector{Next::kFinished}); }

TEST_CASE("Functions find their own CIE among several, also a later one") {
  EhFrame frames;
  const std::size_t first = frames.cie(x86_64_start());
  const std::size_t second = frames.cie({0x0c, 7, 16, 0x90, 1});
  frames.fde(first, 0x1000, 1, {});
  frames.fde(second, 0x2000, 1, {});
  frames.fde(first, 0x3000, 1, {});
  const Seen seen = read(frames);
  REQUIRE(seen.fdes.size() == 3);
  CHECK(seen.cies[0].initial.cfa.offset == 8);
  CHECK(seen.cies[1].initial.cfa.offset == 16);
  CHECK(seen.cies[2].initial.cfa.offset == 8);
}

TEST_CASE("Augmentations of gcc and clang are read: personality, exception tables, signal frames, arm64 keys") {
  const auto augmentation = GENERATE(0, 1, 2, 3, 4);
  EhFrame frames;
  std::size_t cie = 0;
  switch (augmentation) {
    case 0:
      cie = frames.cie_with("zPLR", Bytes{0x9b, 1, 2, 3, 4, 0x1b, 0x1b}, x86_64_start());
      break;
    case 1:
      cie = frames.cie_with("zPR", Bytes{0x00, 1, 2, 3, 4, 5, 6, 7, 8, 0x1b}, x86_64_start());
      break;
    case 2:
      cie = frames.cie_with("zRS", Bytes{0x1b}, x86_64_start());
      break;
    case 3:
      cie = frames.cie_with("zPLRB", Bytes{0x9b, 1, 2, 3, 4, 0x1b, 0x1b}, x86_64_start());
      break;
    default:
      cie = frames.cie_with("zPR", Bytes{0xff, 0x1b}, x86_64_start());
      break;
  }
  frames.fde(cie, 0x40'1000, 0x20, {});
  const Seen seen = read(frames);
  REQUIRE(seen.fdes.size() == 1);
  CHECK(seen.fdes[0].begin == 0x40'1000);
  CHECK(seen.cies[0].signal_frame == (augmentation == 2));
  CHECK(seen.cies[0].initial.cfa.offset == 8);
}

TEST_CASE("gcc 2's \"eh\" augmentation holds one pointer, and its addresses are absolute") {
  Bytes bytes;
  Bytes cie;
  cie.u32(0).u8(1).text("eh").u64(0x1234).uleb(1).sleb(-8).u8(16).append(x86_64_start());
  bytes.u32(static_cast<std::uint32_t>(cie.size())).append(cie);
  const auto back = static_cast<std::uint32_t>(bytes.size() + 4);
  bytes.u32(4 + 16).u32(back).u64(0x40'1000).u64(0x20);
  const Seen seen = read(section(bytes));
  REQUIRE(seen.fdes.size() == 1);
  CHECK(seen.fdes[0].begin == 0x40'1000);
}

TEST_CASE("A CIE with an unknown augmentation, version or damaged instructions loses only its own functions") {
  EhFrame frames;
  const auto damage = GENERATE(0, 1, 2, 3, 4);
  std::size_t bad = 0;
  switch (damage) {
    case 0:
      bad = frames.cie_with("zRX", Bytes{0x1b}, x86_64_start());
      break;
    case 1:
      bad = frames.cie_with("R", Bytes{0x1b}, x86_64_start());
      break;
    case 2:
      bad = frames.cie_with("zR", Bytes{0x1b}, x86_64_start(), 2);
      break;
    case 3:
      bad = frames.cie_with("zR", Bytes{0x1b}, Bytes{0x3f});
      break;
    default:
      bad = frames.cie_with("zR", Bytes{}, x86_64_start());
      break;
  }
  frames.fde(bad, 0x1000, 1, {});
  frames.fde(frames.cie(x86_64_start()), 0x2000, 1, {});
  const Seen seen = read(frames);
  CHECK(seen.all == std::vector{Next::kBadCie, Next::kFde, Next::kFinished});
}

TEST_CASE("A function without a CIE, or with a function as its CIE, is skipped") {
  EhFrame frames;
  const std::size_t cie = frames.cie(x86_64_start());
  const std::size_t fde = frames.fde(cie, 0x1000, 1, {});
  frames.fde(fde, 0x2000, 1, {});
  frames.fde(cie + 3, 0x3000, 1, {});
  Bytes before_start;
  before_start.u32(0x7000'0000).u32(0).u32(0).u8(0);
  frames.record(before_start);
  CHECK(read(frames).all == std::vector{Next::kFde, Next::kBadCie, Next::kBadCie, Next::kBadFde, Next::kFinished});
}

TEST_CASE("A CIE of more than 4 KiB is refused") {
  Bytes nops = x86_64_start();
  for (std::size_t i = 0; i < FrameRecords::kMaxCieBytes; ++i) nops.u8(0);
  EhFrame frames;
  frames.fde(frames.cie(nops), 0x1000, 1, {});
  CHECK(read(frames).all == std::vector{Next::kBadCie, Next::kFinished});
}

TEST_CASE("A truncated function's record is skipped, the next one is not") {
  EhFrame frames;
  const std::size_t cie = frames.cie(x86_64_start());
  Bytes cut;
  cut.u32(static_cast<std::uint32_t>(frames.size() + 4 - cie)).u32(0);
  frames.record(cut);
  frames.record(Bytes{1, 2});
  frames.fde(cie, 0x2000, 1, {});
  CHECK(read(frames).all == std::vector{Next::kBadFde, Next::kBadFde, Next::kFde, Next::kFinished});
}

TEST_CASE("A length beyond the section, or a reserved one, ends the read as damage") {
  const auto length = GENERATE(0x100U, 0xffff'fff0U, 0xffff'fffeU);
  EhFrame frames;
  frames.fde(frames.cie(x86_64_start()), 0x1000, 1, {});
  frames.bytes().u32(length);
  CHECK(read(frames).all == std::vector{Next::kFde, Next::kDamaged});
}

TEST_CASE("A section that ends within a length is damaged") {
  CHECK(read(section(Bytes{1, 2, 3})).all == std::vector{Next::kDamaged});
  CHECK(read(section(Bytes{0xff, 0xff, 0xff, 0xff, 1, 2})).all == std::vector{Next::kDamaged});
  CHECK(read(section(Bytes{0xff, 0xff, 0xff, 0xff}.u64(~std::uint64_t{0}))).all == std::vector{Next::kDamaged});
}

TEST_CASE("A terminator ends a section of unknown size, and is skipped if the size is known") {
  EhFrame frames;
  const std::size_t cie = frames.cie(x86_64_start());
  frames.bytes().u32(0);
  frames.fde(cie, 0x1000, 1, {});
  FrameSection known = section(frames.bytes());
  CHECK(read(known).all == std::vector{Next::kFde, Next::kFinished});
  known.ends_at_terminator = true;
  CHECK(read(known).all == std::vector{Next::kFinished});
}

TEST_CASE("Records with 64-bit lengths are read in .eh_frame, where the CIE's offset stays 4 bytes") {
  Bytes bytes;
  Bytes cie;
  cie.u32(0).u8(1).text("zR").uleb(1).sleb(-8).u8(16).uleb(1).u8(0x00).append(x86_64_start());
  bytes.u32(0xffff'ffff).u64(cie.size()).append(cie);
  const std::size_t fde_at = bytes.size();
  Bytes fde;
  fde.u32(static_cast<std::uint32_t>(fde_at + 12)).u64(0x40'1000).u64(0x20).uleb(0);
  bytes.u32(0xffff'ffff).u64(fde.size()).append(fde);
  const Seen seen = read(section(bytes));
  REQUIRE(seen.fdes.size() == 1);
  CHECK(seen.fdes[0].begin == 0x40'1000);
}

TEST_CASE(".debug_frame names a CIE by its offset, with plain addresses, in versions 1, 3 and 4") {
  const auto version = GENERATE(1U, 3U, 4U);
  Bytes cie;
  cie.u32(0xffff'ffff).u8(version).text("");
  if (version == 4) cie.u8(8).u8(0);
  cie.uleb(1).sleb(-8).uleb(16).append(x86_64_start());
  Bytes bytes;
  bytes.u32(static_cast<std::uint32_t>(cie.size())).append(cie);
  bytes.u32(4 + 16).u32(0).u64(0x40'1000).u64(0x20);
  const Seen seen = read(debug_section(bytes));
  REQUIRE(seen.fdes.size() == 1);
  CHECK(seen.fdes[0].begin == 0x40'1000);
  CHECK(seen.fdes[0].size == 0x20);
}

TEST_CASE(".debug_frame in 64-bit DWARF has 8-byte ids, and its CIE may come after the function") {
  Bytes cie;
  cie.u64(~std::uint64_t{0}).u8(3).text("").uleb(1).sleb(-8).uleb(16).append(x86_64_start());
  Bytes fde;
  fde.u64(12 + 24).u64(0x40'1000).u64(0x20);
  Bytes bytes;
  bytes.u32(0xffff'ffff).u64(fde.size()).append(fde);
  bytes.u32(0xffff'ffff).u64(cie.size()).append(cie);
  const Seen seen = read(debug_section(bytes));
  REQUIRE(seen.fdes.size() == 1);
  CHECK(seen.fdes[0].begin == 0x40'1000);
}

TEST_CASE("A version 4 CIE with 4-byte addresses is read; with segments or odd sizes it is refused") {
  const auto read_with = [](unsigned address_size, unsigned segment_size) {
    Bytes cie;
    cie.u32(0xffff'ffff).u8(4).text("").u8(address_size).u8(segment_size).uleb(1).sleb(-8).uleb(16);
    cie.append(x86_64_start());
    Bytes bytes;
    bytes.u32(static_cast<std::uint32_t>(cie.size())).append(cie);
    bytes.u32(4 + 8).u32(0).u32(0x40'1000).u32(0x20);
    return read(debug_section(bytes));
  };
  const Seen four = read_with(4, 0);
  REQUIRE(four.fdes.size() == 1);
  CHECK(four.fdes[0].begin == 0x40'1000);
  CHECK(four.fdes[0].size == 0x20);
  CHECK(read_with(4, 1).all.front() == Next::kBadCie);
  CHECK(read_with(2, 0).all.front() == Next::kBadCie);
}

}  // namespace
}  // namespace flamed::unwinder
