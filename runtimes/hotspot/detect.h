// SPDX-License-Identifier: Apache-2.0
//
// Recognises HotSpot, in libjvm.so, and reads its layout from a process. HotSpot describes itself for its
// serviceability agent by tables of names and offsets (vmStructs.cpp), which the dynamic linker and libjvm's
// constructors fill in: so they are read from a live process.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "runtimes/hotspot/layout.h"
#include "runtimes/program_image.h"
#include "runtimes/remote_memory.h"

namespace flamed::runtimes {

/// Where the module has the variables that tell of its tables.
struct HotSpotTables {
  struct Table {
    std::uint64_t entries = 0;  ///< holds the address of the first entry
    std::uint64_t stride = 0;   ///< holds the size of an entry
  };
  Table structures, types;
  // They hold offsets in an entry:
  std::uint64_t type_name = 0, field_name = 0, type_string = 0, is_static = 0, offset = 0, address = 0;
  std::uint64_t size_type_name = 0, size = 0;
};

/// Empty: it is not HotSpot. An error: it is, and why its processes can't be read.
Result<std::optional<HotSpotTables>> detect_hotspot(ProgramImage& image);

/// `base`: what was added to the module's addresses. An error with code EBUSY: the JVM is still being loaded.
Result<HotSpotLayout> read_hotspot_layout(RemoteMemory& memory, const HotSpotTables& tables, std::uint64_t base);

}  // namespace flamed::runtimes
