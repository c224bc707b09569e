// SPDX-License-Identifier: Apache-2.0
//
// locate_sources: inline chains, source files and lines from the DWARF debug information (versions 2 to 5) of a module.
//
// Any user can write such a file, so nothing in it is trusted. Files are read, never mapped, a unit at a time; no other
// file is opened.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "symbolizer/model/module_reader.h"
#include "symbolizer/model/source_chain.h"

namespace flamed::symbolizer {

/// One chain for each file offset in `files.module`, in order; empty if the debug information does not have it, or
/// can't be read there. A file without debug information gives empty chains. A file that is not ELF, or has damaged
/// headers, is an error.
Result<std::vector<SourceChain>> locate_sources(const ModuleFiles& files, std::span<const std::uint64_t> offsets);

}  // namespace flamed::symbolizer
