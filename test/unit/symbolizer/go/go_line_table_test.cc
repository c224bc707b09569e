// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/go/go_line_table.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/file.h"
#include "symbolizer/elf/elf_sections.h"
#include "symbolizer/go/go_module.h"
#include "symbolizer/reader/direct_module_reader.h"
#include "test/catch.h"
#include "test/unit/symbolizer/go/go_recording.h"
#include "test/unit/symbolizer/victims.h"

namespace flamed::symbolizer {
namespace {

std::string recording(const std::string& name) {
  return read_file(std::string(GO_RECORDINGS) + "/" + name, std::size_t{1} << 20).value();
}

/// "main.outer go_chain.go:18 > main.middle go_chain.go:13 (inlined)", outermost first, without directories.
std::string text_of(const SourceChain& chain) {
  std::string text;
  for (const SourceFrame& frame : chain) {
    text += (text.empty() ? "" : " > ") + frame.function + " " + frame.file.substr(frame.file.rfind('/') + 1) + ":" +
            std::to_string(frame.line) + (frame.inlined ? " (inlined)" : "");
  }
  return text;
}

std::optional<GoLineTable::Function> named(const GoLineTable& table, const std::string& name) {
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (table.function(i).name == name) return table.function(i);
  }
  return std::nullopt;
}

/// The chains of all places in a function.
std::set<std::string> chains_of(const GoLineTable& table, const std::string& name) {
  std::set<std::string> chains;
  const auto function = named(table, name);
  if (!function) return chains;
  for (std::uint64_t at = function->entry; at < function->end; ++at) chains.insert(text_of(table.locate(at)));
  return chains;
}

const std::set<std::string> kAlone = {"main.alone go_chain.go:25"};
const std::set<std::string> kLines = {
    "main.outer go_chain.go:19", "main.outer go_chain.go:20",
    "main.outer go_chain.go:18 > main.middle go_chain.go:13 (inlined)",
    "main.outer go_chain.go:18 > main.middle go_chain.go:13 (inlined) > main.leaf go_chain.go:9 (inlined)"};

/// Padding after a function has a line in some versions of Go and none in others.
void check_chains(const GoLineTable& table) {
  const std::set<std::string> outer = chains_of(table, "main.outer");
  for (const std::string& line : kLines) CHECK(outer.count(line) == 1);
  CHECK(chains_of(table, "main.alone").count(*kAlone.begin()) == 1);
}

TEST_CASE("the names, lines and inlined calls of every version of Go since 1.15 are read") {
  const std::string version = GENERATE("go_1_15", "go_1_16", "go_1_19", "go_1_24");
  INFO(version);
  const std::string bytes = recording(version);
  const Result<GoLineTable> table = GoLineTable::parse(go_recording(bytes));
  REQUIRE(table.ok());
  check_chains(*table);
  CHECK(named(*table, "main.main"));
  // Later versions record type arguments.
  CHECK(named(*table, "main.largest[...]").has_value() == (version == "go_1_19"));
  CHECK(named(*table, "main.largest[go.shape.uint64]").has_value() == (version == "go_1_24"));
}

TEST_CASE("an address outside of Go's code has no chain") {
  const std::string bytes = recording("go_1_24");
  const Result<GoLineTable> table = GoLineTable::parse(go_recording(bytes));
  REQUIRE(table.ok());
  CHECK(table->locate(table->start() - 1).empty());
  CHECK_FALSE(table->locate(table->start()).empty());
  CHECK_FALSE(table->locate(table->end() - 1).empty());
  CHECK(table->locate(table->end()).empty());
  CHECK(table->locate(0).empty());
  CHECK(table->locate(UINT64_MAX).empty());
}

TEST_CASE("without the function data there are names and lines, but no inlined calls") {
  const std::string bytes = recording("go_1_24");
  GoParts parts = go_recording(bytes);
  parts.function_data = {};
  const Result<GoLineTable> table = GoLineTable::parse(parts);
  REQUIRE(table.ok());
  const std::set<std::string> chains = chains_of(*table, "main.outer");
  CHECK(chains.count("main.outer go_chain.go:9") == 1);
  for (const std::string& chain : chains) CHECK(chain.find("inlined") == std::string::npos);
}

// The tests below read invalid tables.

std::string error_of(std::string_view bytes) {
  GoParts parts;
  parts.line_table = bytes;
  const Result<GoLineTable> table = GoLineTable::parse(parts);
  return table ? "" : table.error().message();
}

bool mentions(const std::string& message, const char* what) { return message.find(what) != std::string::npos; }

TEST_CASE("data that is no line table is reported as such") {
  CHECK(mentions(error_of(""), "cut off"));
  CHECK(mentions(error_of("abcdefghijkl"), "format that is not known"));
  CHECK(mentions(error_of(std::string_view("\xf1\xff\xff\xff\x00\x00\x01\x07", 8)), "header is invalid"));
  CHECK(mentions(error_of(std::string_view("\xf1\xff\xff\xff\x00\x00\x01\x08", 8)), "cut off"));
}

/// The recording with one 64-bit word of its line table's header changed.
std::string with_word(std::size_t at, std::uint64_t value) {
  std::string bytes = recording("go_1_24").substr(24);
  std::memcpy(bytes.data() + at, &value, sizeof(value));
  return bytes;
}

TEST_CASE("counts and offsets that don't fit into the table are errors") {
  CHECK(mentions(error_of(with_word(8, 0)), "no functions"));
  CHECK(mentions(error_of(with_word(8, 1'000'000)), "don't fit"));
  CHECK(mentions(error_of(with_word(8, UINT64_MAX)), "18446744073709551615 functions"));
  for (const std::size_t at : {32U, 40U, 48U, 56U, 64U}) {
    CHECK_FALSE(error_of(with_word(at, UINT64_MAX)).empty());
    CHECK_FALSE(error_of(with_word(at, 1 << 20)).empty());
  }
}

TEST_CASE("functions that don't ascend are an error") {
  std::string bytes = recording("go_1_24");
  const GoParts parts = go_recording(bytes);
  const auto at = 24 + GoLineTable::read_header(parts.line_table)->function_table;
  const std::uint32_t last = UINT32_MAX;
  std::memcpy(bytes.data() + at, &last, sizeof(last));
  CHECK(mentions(GoLineTable::parse(go_recording(bytes)).error().message(), "don't ascend"));
}

void use(const std::string& bytes) {
  const Result<GoLineTable> table = GoLineTable::parse(go_recording(bytes));
  if (!table) return;
  for (std::size_t i = 0; i < table->size() && i < 8; ++i) {
    const GoLineTable::Function function = table->function(i);
    for (std::uint64_t step = 0; step < 8 && function.entry + step < function.end; ++step) {
      CHECK(table->locate(function.entry + step).size() <= 200);
    }
  }
}

TEST_CASE("a line table truncated anywhere, or with any byte wrong, is never read outside of its bytes") {
  for (const char* version : {"go_1_15", "go_1_16", "go_1_19", "go_1_24"}) {
    const std::string whole = recording(version);
    // Copies of exact size, so that sanitizers find reads past the end.
    for (std::size_t bytes = 0; bytes < whole.size(); bytes += 3) use(std::string(whole.data(), bytes));
    for (std::size_t at = 24; at < whole.size(); ++at) {
      for (const char value : {'\x00', '\x7f', '\xff'}) {
        std::string bad = whole;
        bad[at] = value;
        use(bad);
      }
    }
  }
}

TEST_CASE("a circle of inlined calls ends") {
  std::string bytes = recording("go_1_24");
  GoParts parts = go_recording(bytes);
  const std::size_t data = bytes.size() - parts.function_data.size();
  const Result<GoLineTable> whole = GoLineTable::parse(parts);
  REQUIRE(whole.ok());
  const auto outer = named(*whole, "main.outer");
  REQUIRE(outer);
  std::uint64_t inside = outer->entry;
  while (inside < outer->end && whole->locate(inside).size() != 3) ++inside;
  REQUIRE(inside < outer->end);
  // Each call claims that its caller is at the innermost one's place: {funcID and padding, name, parent pc, start
  // line}.
  const auto parent = static_cast<std::uint32_t>(inside - outer->entry);
  for (std::size_t call = data; call + 16 <= bytes.size(); call += 16) {
    std::memcpy(bytes.data() + call + 8, &parent, sizeof(parent));
  }
  const Result<GoLineTable> table = GoLineTable::parse(go_recording(bytes));
  REQUIRE(table.ok());
  CHECK(table->locate(inside).size() == 2);
}

#ifdef VICTIM_GO
/// The functions of a real program, by their names in its own line table.
std::string name_at(const ElfSymbols& symbols, std::uint64_t offset) {
  const auto found = symbols.find(offset);
  return found ? std::string(found->name) : "-";
}

TEST_CASE("names, lines and inlined calls of Go are read from the file, also stripped or position-independent") {
  const std::string victim = GENERATE(as<std::string>{}, VICTIMS_GO);
  INFO(victim);
  const Fd fd = open_victim(victim.c_str());
  DirectModuleReader reader;
  ModuleFiles files;
  files.module = fd.get();
  const Result<ElfSymbols> symbols = reader.read_symbols(files);
  REQUIRE(symbols.ok());
  REQUIRE(symbols->is_go());
  const CodeRange code = symbols->parts().go_code;
  std::vector<std::uint64_t> offsets;
  std::set<std::string> names;
  for (const ElfSymbols::Segment& segment : symbols->parts().segments) {
    for (std::uint64_t at = 0; at < segment.size; ++at) {
      if (!code.holds(segment.address + at)) continue;
      const std::string name = name_at(*symbols, segment.offset + at);
      if (name.rfind("main.", 0) != 0) continue;
      names.insert(name);
      CHECK(symbols->is_go_at(segment.offset + at));
      offsets.push_back(segment.offset + at);
    }
  }
  CHECK(names.count("main.outer") == 1);
  CHECK(names.count("main.alone") == 1);
  CHECK(std::any_of(names.begin(), names.end(), [](const auto& name) { return name.rfind("main.largest[", 0) == 0; }));
  CHECK(names.count("main.leaf") == 0);  // has no code of its own
  const Result<std::vector<SourceChain>> chains = reader.locate(files, offsets);
  REQUIRE(chains.ok());
  REQUIRE(chains->size() == offsets.size());
  std::set<std::string> texts;
  for (const SourceChain& chain : *chains) texts.insert(text_of(chain));
  for (const std::string& line : kLines) CHECK(texts.count(line) == 1);
  CHECK(texts.count(*kAlone.begin()) == 1);
}

/// The victim with its moduledata in Go 1.27's layout; empty if it has that already, and before 1.20.
std::string with_layout_of_127() {
  constexpr std::size_t kTypes = 37;
  std::string bytes = bytes_of(VICTIM_GO);
  const Fd fd = open_victim(VICTIM_GO);
  ElfSections file = ElfSections::open(fd.get()).value();
  const GElf_Shdr section = file.with_bytes(".gopclntab")->header;
  const std::uint64_t line_table = section.sh_addr;
  if (bytes[section.sh_offset] != '\xf1') return {};
  const auto word = [&](std::size_t at) {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data() + at, sizeof(value));
    return value;
  };
  std::size_t at = 0;
  // Its first word, followed by the pointer to the names, which are in the line table.
  while (word(at) != line_table || word(at + 8) - line_table > 4096) at += 8;
  const std::size_t types = at + kTypes * 8;
  if (word(types + 8) < word(types)) return {};
  const std::uint64_t values[] = {16, word(types + 8), 0, 0, word(types + 16), word(types + 24)};
  std::memcpy(bytes.data() + types + 8, values, sizeof(values));
  return bytes;
}

TEST_CASE("inlined calls of Go are found in Go 1.27's layout") {
  const std::string bytes = with_layout_of_127();
  if (bytes.empty()) return;  // the test above covers it
  const Fd fd = file_with(bytes);
  ElfSections file = ElfSections::open(fd.get()).value();
  const Result<std::optional<GoModule>> module = GoModule::read(file, GoModule::With::kInlines);
  REQUIRE(module.ok());
  REQUIRE(module->has_value());
  check_chains((*module)->table());
}

TEST_CASE("a Go program with a damaged line table still has the names of its symbol table") {
  std::string bytes = bytes_of(VICTIM_GO);
  const std::string magic("\xff\xff\xff\x00\x00\x01\x08", 7);
  const std::size_t at = bytes.find(magic);
  REQUIRE(at != std::string::npos);
  bytes[at + 4] = '\x09';
  const Fd fd = file_with(bytes);
  ModuleFiles files;
  files.module = fd.get();
  const Result<ElfSymbols> symbols = DirectModuleReader().read_symbols(files);
  REQUIRE(symbols.ok());
  CHECK_FALSE(symbols->is_go());
  CHECK(symbols->source() == ElfSymbols::Source::kSymtab);
}
#else
TEST_CASE("a Go program's names, lines and inlined calls are read from the file") {
  WARN("SKIP: there was no Go compiler (Debian: golang-go) when this was configured");
}
#endif

}  // namespace
}  // namespace flamed::symbolizer
