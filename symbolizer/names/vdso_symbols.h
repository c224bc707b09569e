// SPDX-License-Identifier: Apache-2.0
//
// The vdso: code that the kernel maps into every process (clock_gettime and the like). It has no file, but its image is
// the same in all 64-bit processes of a kernel, so flamed reads its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "symbolizer/model/elf_symbols.h"

namespace flamed::symbolizer {

struct AddressRange {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
};

/// The range in a /proc/PID/maps text that has `address`. Pure.
std::optional<AddressRange> mapping_that_holds(std::string_view maps, std::uint64_t address);

/// The functions of this process's own vdso; find() takes offsets from the start of the image. Any thread.
Result<ElfSymbols> read_vdso_symbols();

}  // namespace flamed::symbolizer
