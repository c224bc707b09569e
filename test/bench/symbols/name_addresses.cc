// SPDX-License-Identifier: Apache-2.0
//
// name_addresses FILE: reads addresses of FILE from standard input, a hexadecimal number a line. Prints for each the
// mangled name of its function as flamed finds it, including the host's debug files, or "??".
#include <fcntl.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>

#include "base/handle.h"
#include "symbolizer/names/debug_file_finder.h"
#include "symbolizer/process/direct_root_files.h"
#include "symbolizer/reader/direct_module_reader.h"

namespace {

using namespace flamed::symbolizer;

const char* name_of(ElfSymbols::Source source) {
  switch (source) {
    case ElfSymbols::Source::kNone:
      return "none";
    case ElfSymbols::Source::kDynsym:
      return "dynsym";
    case ElfSymbols::Source::kMiniDebugInfo:
      return "mini";
    case ElfSymbols::Source::kDebugFile:
      return "debug file";
    case ElfSymbols::Source::kGo:
      return "go";
    case ElfSymbols::Source::kSymtab:
      return "symtab";
  }
  return "?";
}

std::optional<std::uint64_t> offset_of(const ElfSymbols& symbols, std::uint64_t address) {
  for (const ElfSymbols::Segment& segment : symbols.parts().segments) {
    if (address >= segment.address && address - segment.address < segment.size) {
      return address - segment.address + segment.offset;
    }
  }
  return std::nullopt;
}

int fail(const flamed::Error& error) {
  std::fprintf(stderr, "name_addresses: %s\n", error.message().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return fail(flamed::Error("usage: name_addresses FILE < ADDRESSES"));
  const flamed::Fd file(::open(argv[1], O_RDONLY | O_CLOEXEC));
  if (!file) return fail(flamed::Error::from_errno(argv[1]));
  DirectModuleReader reader;
  const flamed::Result<ElfFacts> facts = reader.inspect(file.get());
  if (!facts) return fail(facts.error());
  flamed::symbolizer::DirectRootFiles files;
  DebugFileFinder finder(reader, files);
  const DebugFiles debug = finder.find({argv[1], *facts, 0, flamed::symbolizer::owner_of(file.get())});
  const flamed::Result<ElfSymbols> symbols =
      reader.read_symbols({file.get(), debug.debug.get(), debug.alternate.get()});
  if (!symbols) return fail(symbols.error());

  std::printf("%s\n", name_of(symbols->source()));
  for (std::string line; std::getline(std::cin, line);) {
    const std::optional<std::uint64_t> offset = offset_of(*symbols, std::strtoull(line.c_str(), nullptr, 16));
    const std::optional<SymbolTable::Found> found = offset ? symbols->find(*offset) : std::nullopt;
    std::printf("%s\n", found ? std::string(found->name).c_str() : "??");
  }
  return 0;
}
