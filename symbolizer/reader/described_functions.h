// SPDX-License-Identifier: Apache-2.0
//
// The functions that .eh_frame describes: stripped files keep it, for exceptions.
#pragma once

#include "symbolizer/elf/elf_sections.h"
#include "symbolizer/model/function_ranges.h"

namespace flamed::symbolizer {

/// By virtual address. None if there is no .eh_frame, if it is damaged, or if the file is for another architecture than
/// those that flamed unwinds.
FunctionRanges read_described_functions(ElfSections& file);

}  // namespace flamed::symbolizer
