// SPDX-License-Identifier: Apache-2.0
//
// Prints the names of flamed's own reader for one module, to compare them with other tools. Usage:
//   module_names FILE                  offsets (in hex) from standard input: for each "OFFSET SYMBOL", then its chain,
//                                      innermost first, " FUNCTION FILE:LINE", then an empty line SYMBOL is "??" if
// there is none.
#include <fcntl.h>

#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "base/handle.h"
#include "symbolizer/reader/direct_module_reader.h"

int main(int argc, char** argv) {
  using namespace flamed::symbolizer;
  if (argc != 2) {
    std::cerr << "usage: module_names FILE < OFFSETS\n";
    return 2;
  }
  const flamed::Fd fd(::open(argv[1], O_RDONLY | O_CLOEXEC));
  ModuleFiles files;
  files.module = fd.get();
  DirectModuleReader reader;
  const auto symbols = reader.read_symbols(files);
  if (!symbols) {
    std::cerr << argv[1] << ": " << symbols.error().message() << '\n';
    return 1;
  }
  std::vector<std::uint64_t> offsets;
  for (std::string line; std::getline(std::cin, line);) offsets.push_back(std::stoull(line, nullptr, 16));
  const auto chains = reader.locate(files, offsets);
  if (!chains) {
    std::cerr << argv[1] << ": " << chains.error().message() << '\n';
    return 1;
  }
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const auto found = symbols->find(offsets[i]);
    std::cout << std::hex << offsets[i] << std::dec << ' ' << (found ? found->name : "??") << '\n';
    const SourceChain& chain = (*chains)[i];
    for (auto frame = chain.rbegin(); frame != chain.rend(); ++frame) {
      std::cout << "  " << frame->function << ' ' << frame->file << ':' << frame->line << '\n';
    }
    std::cout << '\n';
  }
}
