// SPDX-License-Identifier: Apache-2.0
//
// Jitdump: the binary file (jit-PID.dump) in which just-in-time compilers log what they put where, with the code
// itself. Described in the kernel's tools/perf/Documentation/jitdump-specification.txt, version 1.
#pragma once

#include "base/result.h"
#include "symbolizer/elf/elf_input.h"
#include "symbolizer/model/symbol_table.h"

namespace flamed::symbolizer {

/// The functions by address in the process, as JIT_CODE_LOAD and JIT_CODE_MOVE tell them. What happened last counts,
/// whatever the order of the records; the log ends at a JIT_CODE_CLOSE, at a record that is not whole (it may just be
/// written) or at the first damaged one. Other records are passed over, and code is not looked at.
/// Fails for files that are no jitdump, or one of another byte order, machine or version.
Result<SymbolTable> parse_jit_dump(const ElfInput& input);

/// From an open regular file, whose position does not matter and is not changed.
Result<SymbolTable> read_jit_dump(int fd);

}  // namespace flamed::symbolizer
