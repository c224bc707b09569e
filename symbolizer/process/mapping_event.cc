// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/process/mapping_event.h"

#include <cstddef>

#include "base/identity.h"
#include "symbolizer/process/proc_text.h"

namespace flamed::symbolizer {
namespace {

/// Not a file with names: .NET maps the same memory twice, writes its code at one address and runs it at another.
constexpr std::string_view kDotnetMemory = "/memfd:doublemapper";

}  // namespace

NewMapping mapping_of(const MappingEvent& event, ModuleTable& modules) {
  NewMapping found;
  Mapping& mapping = found.mapping;
  mapping.start = event.start;
  mapping.end = event.start + event.length;
  if (event.file.is_file() && event.path.substr(0, kDotnetMemory.size()) != kDotnetMemory) {
    const ModuleTable::MappedFile file = modules.file(event.file, without_deleted_mark(event.path));
    mapping.module = file.module;
    found.is_closed = file.is_closed;
    mapping.file_offset = event.file_offset;
  } else if (event.path == "[vdso]") {
    mapping.module = kVdsoModule;
    mapping.file_offset = 0;
  } else {
    // The module is added when it is first needed: most processes never run code from such memory.
    mapping.module = kNoModule;
    mapping.file_offset = event.start;
  }
  return found;
}

}  // namespace flamed::symbolizer
