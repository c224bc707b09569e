// SPDX-License-Identifier: Apache-2.0
//
// Prints the source chains of addresses, read from standard input in hex, one a line, like llvm-symbolizer: for each
// frame, innermost first, the function and "file:line", and an empty line after the last one.
//
//   source_chains [--warm] MODULE [DEBUG_FILE [ALTERNATE_FILE]]
//
// --warm: queries again through the cache, and prints both times in ns to standard error.
#include <fcntl.h>

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/handle.h"
#include "symbolizer/dwarf/dwarf_sections.h"
#include "symbolizer/names/caching_symbolizer.h"
#include "symbolizer/reader/direct_module_reader.h"

namespace {

using flamed::Fd;
using flamed::Frame;
using flamed::Result;
using namespace flamed::symbolizer;

/// Names frames only by debug information.
class SourceSymbolizer final : public Symbolizer {
 public:
  explicit SourceSymbolizer(ModuleFiles files) : files_(files) {}

  std::vector<SymbolChainPtr> symbolise(std::span<const Frame> frames) override {
    std::vector<std::uint64_t> offsets;
    offsets.reserve(frames.size());
    for (const Frame& frame : frames) offsets.push_back(frame.offset);
    Result<std::vector<SourceChain>> found = DirectModuleReader().locate(files_, offsets);
    if (!found) {
      std::fprintf(stderr, "source_chains: %s\n", found.error().message().c_str());
      std::exit(1);
    }
    std::vector<SymbolChainPtr> chains;
    chains.reserve(frames.size());
    for (SourceChain& source : *found) {
      SymbolChain chain;
      for (SourceFrame& frame : source) {
        Symbol symbol;
        symbol.name = std::move(frame.function);
        symbol.kind = SymbolKind::kNative;
        symbol.file = std::move(frame.file);
        symbol.line = frame.line;
        symbol.inlined = frame.inlined;
        chain.push_back(std::move(symbol));
      }
      chains.push_back(std::make_shared<const SymbolChain>(std::move(chain)));
    }
    return chains;
  }

 private:
  ModuleFiles files_;
};

std::optional<std::uint64_t> offset_of(const std::vector<DwarfSections::Segment>& code, std::uint64_t address) {
  for (const auto& segment : code) {
    if (address >= segment.address && address - segment.address < segment.size) {
      return segment.offset + (address - segment.address);
    }
  }
  return std::nullopt;
}

void print(const SymbolChain& chain) {
  for (auto symbol = chain.rbegin(); symbol != chain.rend(); ++symbol) {
    std::printf("%s\n%s:%" PRIu32 "\n", symbol->name.empty() ? "??" : symbol->name.c_str(),
                symbol->file.empty() ? "??" : symbol->file.c_str(), symbol->line);
  }
  if (chain.empty()) std::printf("??\n??:0\n");
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  const bool is_warm = argc > 1 && std::strcmp(argv[1], "--warm") == 0;
  std::vector<Fd> files;
  for (int i = is_warm ? 2 : 1; i < argc; ++i) {
    files.emplace_back(::open(argv[i], O_RDONLY | O_CLOEXEC));
    if (!files.back()) {
      std::perror(argv[i]);
      return 1;
    }
  }
  if (files.empty() || files.size() > 3) {
    std::fprintf(stderr, "usage: source_chains [--warm] MODULE [DEBUG_FILE [ALTERNATE_FILE]] < ADDRESSES\n");
    return 2;
  }
  const Result<DwarfSections> module = DwarfSections::open(files[0].get());
  if (!module) {
    std::fprintf(stderr, "source_chains: %s\n", module.error().message().c_str());
    return 1;
  }
  std::vector<Frame> frames;
  std::uint64_t address = 0;
  while (std::scanf("%" SCNx64, &address) == 1) {
    frames.push_back({flamed::kFirstFreeModule, offset_of(module->code(), address).value_or(UINT64_MAX)});
  }

  const flamed::SystemClock clock;
  SourceSymbolizer source(
      {files[0].get(), files.size() > 1 ? files[1].get() : -1, files.size() > 2 ? files[2].get() : -1});
  CachingSymbolizer::Options options;
  options.budget_bytes = std::size_t{256} << 20;
  CachingSymbolizer cache(source, clock, options);
  const std::int64_t start = clock.monotonic().ns;
  const std::vector<SymbolChainPtr> chains = cache.symbolise(frames);
  const std::int64_t between = clock.monotonic().ns;
  if (is_warm) {
    const std::vector<SymbolChainPtr> again = cache.symbolise(frames);
    const std::int64_t end = clock.monotonic().ns;
    if (again != chains) std::fprintf(stderr, "source_chains: the cache did not hold all answers\n");
    std::fprintf(stderr, "cold_ns %" PRId64 " warm_ns %" PRId64 "\n", between - start, end - between);
  }
  for (const SymbolChainPtr& chain : chains) print(*chain);
  return 0;
}
