// SPDX-License-Identifier: Apache-2.0
//
// Reads what a library and a process say of the HotSpot JVM, for DirectModuleReader.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/result.h"
#include "symbolizer/model/hotspot_module.h"
#include "symbolizer/model/hotspot_names.h"

namespace flamed::symbolizer {

/// See ModuleReader::find_hotspot().
Result<std::optional<HotSpotModule>> find_hotspot(int fd, int memory, const HotSpotMapping& mapping);

/// See ModuleReader::read_hotspot_code().
Result<runtimes::HotSpotCode> read_hotspot_code(int memory, const runtimes::HotSpotLayout& layout, std::uint64_t base,
                                                std::span<const runtimes::HotSpotKnownBlob> known);

/// See ModuleReader::read_hotspot_names().
Result<HotSpotNames> read_hotspot_names(int memory, const runtimes::HotSpotLayout& layout, std::uint64_t base,
                                        const HotSpotQuestion& question);

}  // namespace flamed::symbolizer
