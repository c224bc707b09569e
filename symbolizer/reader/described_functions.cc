// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/reader/described_functions.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "symbolizer/reader/elf_unwind_source.h"
#include "unwinder/eh_frame.h"

namespace flamed::symbolizer {
namespace {

/// Linkers leave records of functions that they have removed.
bool is_code(const ElfUnwindSource& source, const CodeRange& function) {
  return std::any_of(source.code.begin(), source.code.end(), [&](const ElfUnwindSource::Segment& segment) {
    return function.start >= segment.address && function.start - segment.address < segment.size &&
           function.end - function.start <= segment.size - (function.start - segment.address);
  });
}

}  // namespace

FunctionRanges read_described_functions(ElfSections& file) {
  const Result<ElfUnwindSource> source = read_eh_frame(file);
  if (!source || source->machine == ElfUnwindSource::Machine::kOther) return {};
  const auto architecture = source->machine == ElfUnwindSource::Machine::kArm64 ? unwinder::Architecture::kArm64
                                                                                : unwinder::Architecture::kX86_64;
  std::vector<CodeRange> functions;
  for (const ElfUnwindSource::Section& section : source->sections) {
    unwinder::FrameSection frames;
    frames.bytes = section.bytes();
    frames.address = section.address();
    frames.ends_at_terminator = section.ends_at_terminator();
    unwinder::FrameRecords records(frames, architecture);
    unwinder::Fde fde;
    using Next = unwinder::FrameRecords::Next;
    for (Next next = records.next(fde); next != Next::kFinished && next != Next::kDamaged; next = records.next(fde)) {
      if (next != Next::kFde || fde.size == 0 || fde.size > FunctionRanges::kNoEnd - fde.begin) continue;
      const CodeRange function{fde.begin, fde.begin + fde.size};
      if (is_code(*source, function)) functions.push_back(function);
      if (functions.size() == FunctionRanges::kMost) return FunctionRanges(std::move(functions));
    }
  }
  return FunctionRanges(std::move(functions));
}

}  // namespace flamed::symbolizer
