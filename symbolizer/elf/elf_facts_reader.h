// SPDX-License-Identifier: Apache-2.0
//
// What an ELF file says of itself and of other files about it. Any thread.
#pragma once

#include "base/result.h"
#include "symbolizer/model/elf_facts.h"

namespace flamed::symbolizer {

/// Every size in the file is checked before memory is spent on it. A file that is no ELF or damaged is an error. What
/// dwz writes counts as an object file, so these are read too.
Result<ElfFacts> read_elf_facts(int fd);

}  // namespace flamed::symbolizer
