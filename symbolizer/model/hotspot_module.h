// SPDX-License-Identifier: Apache-2.0
//
// HotSpotModule: a library that is a HotSpot JVM, as a process has it loaded.
#pragma once

#include <cstdint>

#include "runtimes/hotspot/code_heap.h"
#include "runtimes/hotspot/layout.h"

namespace flamed::symbolizer {

struct HotSpotModule {
  runtimes::HotSpotLayout layout;
  /// Of its code: the address in the file minus the file offset.
  std::uint64_t code_bias = 0;

  /// What was added to the module's addresses in a process that has the file's code from `file_offset` on at `start`.
  [[nodiscard]] std::uint64_t base_of(std::uint64_t start, std::uint64_t file_offset) const {
    return start - file_offset - code_bias;
  }
};

/// A process that has the library loaded: a mapping of its code.
struct HotSpotMapping {
  std::uint64_t start = 0;
  std::uint64_t file_offset = 0;
};

}  // namespace flamed::symbolizer
