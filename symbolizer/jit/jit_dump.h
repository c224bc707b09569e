// SPDX-License-Identifier: Apache-2.0
//
// Jitdump: the binary file (jit-PID.dump) in which just-in-time compilers log the addresses of their code, with the
// code itself. Described in the kernel's tools/perf/Documentation/jitdump-specification.txt, version 1.
#pragma once

#include "base/result.h"
#include "symbolizer/elf/elf_input.h"
#include "symbolizer/model/symbol_table.h"

namespace flamed::symbolizer {

/// The functions by address in the process, from JIT_CODE_LOAD and JIT_CODE_MOVE. The latest time counts, not the order
/// of the records; the log ends at a JIT_CODE_CLOSE, at an incomplete record (it may be being written) or at the first
/// damaged one. Other records are skipped, and code is not read. Fails for files that are not jitdumps, or have another
/// byte order, machine or version.
Result<SymbolTable> parse_jit_dump(const ElfInput& input);

/// From an open regular file, whose position is neither used nor changed.
Result<SymbolTable> read_jit_dump(int fd);

}  // namespace flamed::symbolizer
