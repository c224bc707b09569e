// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/reader/module_rows.h"

#include <sys/auxv.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/keyed_hash.h"
#include "symbolizer/process/proc_text.h"
#include "symbolizer/reader/elf_unwind_source.h"
#include "unwinder/file_rows.h"
#include "unwinder/rows_builder.h"
#include "unwinder/signal_return.h"

namespace flamed::symbolizer {
namespace {

#if defined(__aarch64__)
constexpr auto kMachine = ElfUnwindSource::Machine::kArm64;
constexpr auto kArchitecture = unwinder::Architecture::kArm64;
#else
constexpr auto kMachine = ElfUnwindSource::Machine::kX86_64;
constexpr auto kArchitecture = unwinder::Architecture::kX86_64;
#endif

/// The largest gap between functions that counts as padding: see unwinder::BuildInput.
constexpr std::uint32_t kMaxPadding = 15;

Result<unwinder::UnwindRows> rows_of(const ElfUnwindSource& source) {
  if (source.machine != kMachine) return unwinder::UnwindRows{};
  std::vector<unwinder::FrameSection> sections;
  for (const ElfUnwindSource::Section& section : source.sections) {
    unwinder::FrameSection to;
    to.format = section.format() == ElfUnwindSource::Section::Format::kEhFrame
                    ? unwinder::FrameSection::Format::kEhFrame
                    : unwinder::FrameSection::Format::kDebugFrame;
    to.bytes = section.bytes();
    to.address = section.address();
    to.ends_at_terminator = section.ends_at_terminator();
    sections.push_back(to);
  }
  std::vector<unwinder::AddressRange> code;
  std::vector<unwinder::CodeSegment> segments;
  for (const ElfUnwindSource::Segment& segment : source.code) {
    code.push_back({segment.address, segment.size});
    segments.push_back({segment.address, segment.offset, segment.size});
  }
  Result<unwinder::UnwindRows> rows =
      unwinder::build_rows({kArchitecture, sections, code, kMaxPadding, source.ruled_code});
  if (!rows) return rows;
  return unwinder::by_file_offset(std::move(rows).value(), segments);
}

}  // namespace

Result<SourcedRows> read_module_rows(int fd) {
  Result<ElfUnwindSource> source = read_elf_unwind_source(fd);
  if (!source) return std::move(source).error();
  Result<unwinder::UnwindRows> rows = rows_of(*source);
  if (!rows) return std::move(rows).error();
  SourcedRows result{std::move(*rows), {}, false};
  const std::uint64_t key = random_hash_key();
  if (const Result<std::uint64_t> digest = digest_of(fd, source->ranges, key)) {
    result.source = {std::move(source->ranges), key, *digest};
  }
  return result;
}

Result<unwinder::UnwindRows> read_vdso_rows() {
  constexpr std::size_t kMapsLimitBytes = 4U << 20;
  const Result<std::string> maps = read_file("/proc/self/maps", kMapsLimitBytes);
  if (!maps) return Error(maps.error()).with_context("finding the vdso");
  for (const MapsLine& line : parse_executable_maps(*maps)) {
    if (line.path != "[vdso]") continue;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): /proc has only the address.
    const std::span image(reinterpret_cast<const std::byte*>(line.start), line.end - line.start);
    Result<ElfUnwindSource> source = read_elf_unwind_source(image);
    if (!source) return Error(source.error()).with_context("reading the vdso");
    for (const ElfUnwindSource::Segment& segment : source->code) {
      const auto at = unwinder::find_signal_return(kArchitecture, image.subspan(segment.offset, segment.size));
      if (!at) continue;
      source->ruled_code.push_back(
          {{segment.address + *at, unwinder::kSignalReturnBytes}, unwinder::signal_frame_rule(kArchitecture)});
    }
    return rows_of(*source);
  }
  return unwinder::UnwindRows{};
}

}  // namespace flamed::symbolizer
