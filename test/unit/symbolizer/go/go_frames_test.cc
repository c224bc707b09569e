// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/go/go_frames.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "symbolizer/elf/elf_sections.h"
#include "symbolizer/go/go_module.h"
#include "symbolizer/reader/elf_unwind_source.h"
#include "test/catch.h"
#include "test/unit/symbolizer/victims.h"
#include "unwinder/rows_builder.h"

namespace flamed::symbolizer {
namespace {

#if !defined(__x86_64__) || !defined(VICTIM_GO)
TEST_CASE("the rows from a Go program's own tables are those of its .debug_frame") {
  WARN("SKIP: there was no Go compiler (Debian: golang-go) when this was configured");
}
#else

using unwinder::CfaKind;
using unwinder::FpKind;
using unwinder::Rule;
using unwinder::UnwindRows;

struct Victim {
  explicit Victim(const char* path) : fd(open_victim(path)) {
    Result<ElfUnwindSource> read = read_elf_unwind_source(fd.get());
    REQUIRE(read.ok());
    source = std::move(read).value();
    Result<ElfSections> file = ElfSections::open(fd.get());
    REQUIRE(file.ok());
    Result<std::optional<GoModule> > module = GoModule::read(*file, GoModule::With::kNames);
    REQUIRE(module.ok());
    REQUIRE(module->has_value());
    go = std::move(*module);
    for (const ElfUnwindSource::Segment& segment : source.code) code.push_back({segment.address, segment.size});
  }

  [[nodiscard]] UnwindRows rows(std::span<const std::byte> debug_frame) const {
    unwinder::FrameSection section;
    section.format = unwinder::FrameSection::Format::kDebugFrame;
    section.bytes = debug_frame;
    Result<UnwindRows> rows = unwinder::build_rows(
        {.architecture = unwinder::Architecture::kX86_64, .sections = {&section, 1}, .code = code});
    REQUIRE(rows.ok());
    return std::move(rows).value();
  }
  [[nodiscard]] const GoLineTable& table() const { return go->table(); }

  Fd fd;
  ElfUnwindSource source;
  std::optional<GoModule> go;
  std::vector<unwinder::AddressRange> code;
};

TEST_CASE("the rows from a Go program's own tables are those of its .debug_frame, with the frame pointer") {
  const Victim victim(VICTIM_GO);
  // The first one is flamed's, the second one the linker's.
  REQUIRE(victim.source.sections.size() == 2);
  constexpr std::size_t kMostBytes = 64 << 20;
  const std::vector<std::byte> frames = go_frames(victim.table(), kMostBytes);
  const std::span<const std::byte> first = victim.source.sections[0].bytes();
  CHECK(std::equal(frames.begin(), frames.end(), first.begin(), first.end()));
  const UnwindRows ours = victim.rows(frames);
  const UnwindRows linkers = victim.rows(victim.source.sections[1].bytes());

  std::uint64_t compared = 0;
  for (std::size_t i = 0; i < victim.table().size(); ++i) {
    const GoLineTable::Function function = victim.table().function(i);
    INFO(function.name);
    const bool is_preemption = function.name == "runtime.asyncPreempt";
    bool is_equal = true;
    for (std::uint64_t at = function.entry; at < function.end; ++at) {
      const Rule& linkers_rule = linkers.find(at);
      // Padding.
      if (linkers_rule.cfa == CfaKind::kNone) continue;
      Rule expected = linkers_rule;
      expected.signal_frame = is_preemption ? 1 : 0;
      if (expected.cfa_offset >= 16) {
        expected.fp = FpKind::kAtCfa;
        expected.fp_offset = -16;
      }
      is_equal = is_equal && ours.find(at) == expected;
      ++compared;
    }
    CHECK(is_equal);
  }
  CHECK(compared > 100'000);
}

TEST_CASE("a stripped Go program has the same rows") {
  const std::string path = GENERATE(as<std::string>{}, VICTIMS_GO);
  INFO(path);
  const Victim victim(path.c_str());
  REQUIRE_FALSE(victim.source.sections.empty());
  const UnwindRows rows = victim.rows(victim.source.sections[0].bytes());
  for (std::size_t i = 0; i < victim.table().size(); ++i) {
    const GoLineTable::Function function = victim.table().function(i);
    for (const GoLineTable::StackDepth& depth : victim.table().stack_depths(i)) {
      const Rule& rule = rows.find(function.entry + depth.distance);
      if (rule.cfa == CfaKind::kSpOffset && rule.cfa_offset == depth.bytes + 8) continue;
      FAIL(function.name << " at " << depth.distance);
    }
  }
}

TEST_CASE("tables of frames beyond the limit are left out") {
  const Victim victim(VICTIM_GO);
  CHECK(go_frames(victim.table(), 1000).empty());
}
#endif

}  // namespace
}  // namespace flamed::symbolizer
