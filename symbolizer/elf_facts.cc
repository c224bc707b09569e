// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/elf_facts.h"

#include "symbolizer/elf_symbols.h"

namespace flamed::symbolizer {

Result<ElfFacts> read_elf_facts(int fd) {
  const Result<ElfSymbols> symbols = read_elf_symbols(fd);
  if (!symbols) return Error(symbols.error());
  ElfFacts facts;
  facts.build_id = symbols->build_id();
  facts.has_symtab = symbols->source() == ElfSymbols::Source::kSymtab;
  return facts;
}

}  // namespace flamed::symbolizer
