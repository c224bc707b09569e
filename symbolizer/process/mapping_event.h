// SPDX-License-Identifier: Apache-2.0
//
// MappingEvent: the kernel's record of a mapping, and the Mapping made of it. Ingest's.
#pragma once

#include <cstdint>
#include <string_view>

#include "symbolizer/model/file_key.h"
#include "symbolizer/process/mapping_set.h"
#include "symbolizer/process/module_table.h"

namespace flamed::symbolizer {

/// The kernel mapped something as code into a process (MMAP2).
struct MappingEvent {
  std::int32_t pid = 0;
  std::uint64_t start = 0, length = 0, file_offset = 0;
  FileKey file;
  std::string_view path;  ///< "//anon", "[vdso]" and the like for memory without a file
};

struct NewMapping {
  Mapping mapping;         ///< for a MappingSet
  bool is_closed = false;  ///< see ModuleTable::file()
};

/// A file's module is entered into `modules`. The event's addresses don't wrap.
NewMapping mapping_of(const MappingEvent& event, ModuleTable& modules);

}  // namespace flamed::symbolizer
