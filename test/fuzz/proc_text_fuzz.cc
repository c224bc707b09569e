// SPDX-License-Identifier: Apache-2.0
//
// Any text as /proc/PID/maps and as /proc/PID/stat: any user can choose the paths and comms in them.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "symbolizer/process/mapping_set.h"
#include "symbolizer/process/proc_text.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

bool is_within(std::string_view part, std::string_view whole) {
  return part.empty() || (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace flamed::symbolizer;
  const std::string_view text(reinterpret_cast<const char*>(data), size);

  MappingSet set;
  for (const MapsLine& line : parse_executable_maps(text)) {
    require(line.executable && line.start < line.end && is_within(line.path, text));
    require(line.path.find('\n') == std::string_view::npos);
    set.insert({line.start, line.end, line.file_offset, flamed::ModuleId{16}});
    require(set.find(line.start) != nullptr && set.find(line.end - 1) != nullptr);
  }
  std::uint64_t end = 0;
  for (const Mapping& mapping : set.mappings()) {
    require(mapping.start >= end && mapping.start < mapping.end);
    end = mapping.end;
  }

  if (const auto stat = parse_stat(text)) require(is_within(stat->comm, text));
  return 0;
}
