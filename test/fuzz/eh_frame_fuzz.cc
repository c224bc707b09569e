// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as .eh_frame or .debug_frame: rows are sorted and within the code, and a step works with every rule. The
// first byte chooses architecture, format and options; the rest is the section.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>

#include "unwinder/file_rows.h"
#include "unwinder/rows_builder.h"
#include "unwinder/step.h"

namespace {

using namespace flamed::unwinder;

constexpr std::uint64_t kSectionAddress = 0x50'0000;
constexpr AddressRange kCode[] = {{0x1'0000, 0x8'0000}, {0x40'0000, 0x20'0000}};
constexpr CodeSegment kSegments[] = {{0x1'0000, 0x20'0000, 0x8'0000}, {0x40'0000, 0x0, 0x20'0000}};

void require(bool holds) {
  if (!holds) std::abort();
}

void check(const UnwindRows& rows) {
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    require(rows.rows[i].rule.value < rows.rules.size());
    if (i == 0) continue;
    require(rows.rows[i].offset > rows.rows[i - 1].offset);
    require(rows.rows[i].rule != rows.rows[i - 1].rule);
  }
  if (!rows.rows.empty()) require(rows.rows.back().rule == kNoneRule);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::uint8_t choice = data[0];
  FrameSection section;
  section.bytes = std::as_bytes(std::span(data + 1, size - 1));
  section.address = kSectionAddress;
  section.format = (choice & 2) != 0 ? FrameSection::Format::kDebugFrame : FrameSection::Format::kEhFrame;
  section.ends_at_terminator = (choice & 4) != 0;
  if ((choice & 8) != 0) section.text_address = section.data_address = kCode[0].address;

  BuildInput input;
  input.architecture = (choice & 1) != 0 ? Architecture::kArm64 : Architecture::kX86_64;
  input.sections = {&section, 1};
  input.code = kCode;
  input.max_padding = (choice & 16) != 0 ? 15 : 0;
  BuildLimits limits;
  limits.max_rows = 10'000;
  limits.max_rules = 500;
  limits.max_functions = 5'000;
  flamed::Result<UnwindRows> rows = build_rows(input, limits);
  if (!rows) return 0;
  check(*rows);

  AllRegisters registers{};
  for (const Rule& rule : rows->rules) {
    WalkFrame frame{.pc = kCode[0].address, .sp = 0x7000, .fp = 0x7100, .lr = 1, .lr_known = true};
    frame.registers = &registers;
    static_cast<void>(step(rule, input.architecture, frame,
                           [](std::uint64_t address) { return std::optional<std::uint64_t>(address * 7); }));
  }

  flamed::Result<UnwindRows> file_rows = by_file_offset(*rows, kSegments);
  require(file_rows.ok());
  check(*file_rows);
  for (const Row& row : rows->rows) {
    const std::uint64_t address = rows->base + row.offset;
    for (const CodeSegment& segment : kSegments) {
      if (address < segment.address || address - segment.address >= segment.size) continue;
      require(file_rows->find(address - segment.address + segment.offset) == rows->find(address));
    }
  }
  return 0;
}
