// SPDX-License-Identifier: Apache-2.0
//
// Builds an ELF file's rows as the daemon does.
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "symbolizer/reader/elf_unwind_source.h"
#include "unwinder/file_rows.h"
#include "unwinder/rows_builder.h"

namespace flamed::unwinder {

inline std::optional<Architecture> architecture_of(const symbolizer::ElfUnwindSource& source) {
  switch (source.machine) {
    case symbolizer::ElfUnwindSource::Machine::kX86_64:
      return Architecture::kX86_64;
    case symbolizer::ElfUnwindSource::Machine::kArm64:
      return Architecture::kArm64;
    case symbolizer::ElfUnwindSource::Machine::kOther:
      break;
  }
  return std::nullopt;
}

/// Rows by virtual address.
inline Result<UnwindRows> rows_of(const symbolizer::ElfUnwindSource& source, std::uint32_t max_padding = 0) {
  using Format = symbolizer::ElfUnwindSource::Section::Format;
  const std::optional<Architecture> architecture = architecture_of(source);
  if (!architecture) return Error("no unwinding for this machine's code");
  std::vector<FrameSection> sections;
  for (const auto& section : source.sections) {
    sections.push_back(FrameSection{
        .format =
            section.format() == Format::kEhFrame ? FrameSection::Format::kEhFrame : FrameSection::Format::kDebugFrame,
        .bytes = section.bytes(),
        .address = section.address(),
        .text_address = std::nullopt,
        .data_address = std::nullopt,
        .ends_at_terminator = section.ends_at_terminator(),
    });
  }
  std::vector<AddressRange> code;
  for (const auto& segment : source.code) code.push_back(AddressRange{segment.address, segment.size});
  return build_rows(BuildInput{.architecture = *architecture,
                               .sections = sections,
                               .code = code,
                               .max_padding = max_padding,
                               .ruled_code = source.ruled_code});
}

inline std::vector<CodeSegment> segments_of(const symbolizer::ElfUnwindSource& source) {
  std::vector<CodeSegment> segments;
  for (const auto& segment : source.code) {
    segments.push_back(CodeSegment{segment.address, segment.offset, segment.size});
  }
  return segments;
}

}  // namespace flamed::unwinder
