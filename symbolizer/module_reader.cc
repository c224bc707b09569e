// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/module_reader.h"

#include "symbolizer/demangle.h"

namespace flamed::symbolizer {

Result<ElfSymbols> DirectModuleReader::read(int fd) { return read_elf_symbols(fd); }

std::vector<std::string> DirectModuleReader::demangle(std::span<const std::string> mangled) {
  std::vector<std::string> names;
  names.reserve(mangled.size());
  for (const std::string& name : mangled) names.push_back(symbolizer::demangle(name));
  return names;
}

}  // namespace flamed::symbolizer
