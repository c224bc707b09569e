// SPDX-License-Identifier: Apache-2.0
//
// Reads an ELF file's facts: its identity, and its references to debug files. Any thread.
#pragma once

#include "base/result.h"
#include "symbolizer/model/elf_facts.h"

namespace flamed::symbolizer {

/// Every size in the file is checked before memory is allocated. A file that is not ELF, or damaged, is an error. Files
/// of dwz are object files, so these are read as well.
Result<ElfFacts> read_elf_facts(int fd);

}  // namespace flamed::symbolizer
