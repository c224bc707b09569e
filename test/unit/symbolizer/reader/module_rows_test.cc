// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/reader/module_rows.h"

#include <cstdint>
#include <string>

#include "symbolizer/reader/direct_module_reader.h"
#include "test/catch.h"
#include "test/unit/symbolizer/victims.h"
#include "unwinder/architecture.h"

namespace flamed::symbolizer {
namespace {

#ifndef __x86_64__
TEST_CASE("a Go program's signal handlers return to code with the rule of a signal frame") {
  WARN("SKIP x86-64: signal frames are recognised by x86-64's code");
}
#elif !defined(VICTIM_GO)
TEST_CASE("a Go program's signal handlers return to code with the rule of a signal frame") {
  WARN("SKIP: there was no Go compiler (Debian: golang-go) when this was configured");
}
#else
TEST_CASE("only the code that a Go program's signal handlers return to has the rule of a signal frame") {
  const std::string victim = GENERATE(as<std::string>{}, VICTIMS_GO);
  INFO(victim);
  const Fd fd = open_victim(victim.c_str());
  const Result<SourcedRows> read = read_module_rows(fd.get());
  REQUIRE(read.ok());
  const unwinder::UnwindRows& rows = read->rows;
  ModuleFiles files;
  files.module = fd.get();
  const Result<ElfSymbols> symbols = DirectModuleReader().read_symbols(files);
  REQUIRE(symbols.ok());

  constexpr unwinder::Rule kSignalFrame = unwinder::signal_frame_rule(unwinder::Architecture::kX86_64);
  std::uint64_t bytes = 0;
  for (const ElfSymbols::Segment& segment : symbols->parts().segments) {
    for (std::uint64_t at = segment.offset; at < segment.offset + segment.size; ++at) {
      const auto found = symbols->find(at);
      const bool returns = found && found->name.starts_with("runtime.sigreturn");
      const auto next = symbols->find(at + 1);
      const bool is_before = next && next->name.starts_with("runtime.sigreturn");
      CHECK((rows.find(at) == kSignalFrame) == (returns || is_before));
      bytes += returns ? 1 : 0;
    }
  }
  CHECK(bytes >= 9);
}
#endif

}  // namespace
}  // namespace flamed::symbolizer
