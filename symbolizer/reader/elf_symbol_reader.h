// SPDX-License-Identifier: Apache-2.0
//
// Reads the functions of one ELF file. Any thread.
//
// Any user can write such a file, so nothing in it is trusted: every size is checked against the file and against a
// fixed limit before memory is allocated. Files are read, never mapped: a file that its owner truncates while it is
// being parsed gives an error, not a SIGBUS.
#pragma once

#include <cstddef>
#include <span>

#include "base/result.h"
#include "symbolizer/model/elf_symbols.h"
#include "symbolizer/model/module_files.h"

namespace flamed::symbolizer {

/// The functions of a module: Go's from .gopclntab, all others from the first source that has some: its own .symtab,
/// the .symtab of the separate debug file, .gnu_debugdata (MiniDebugInfo) together with .dynsym, .dynsym; and
/// "name@plt" for the stubs of the procedure linkage table. Where .eh_frame describes functions without a
/// name, their ranges. A module without symbols is not an error; one that is not ELF, is damaged or exceeds a limit is.
/// A damaged debug file, MiniDebugInfo or Go table counts as missing.
Result<ElfSymbols> read_elf_symbols(const ModuleFiles& files);

/// The same from an image in memory, such as the vdso.
Result<ElfSymbols> read_elf_symbols(std::span<const std::byte> image);

}  // namespace flamed::symbolizer
