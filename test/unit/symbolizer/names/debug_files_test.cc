// SPDX-License-Identifier: Apache-2.0
//
// Names from outside of the program's own symbols: separate debug files, MiniDebugInfo, and files that come later.
#include <filesystem>
#include <map>
#include <stdexcept>

#include "symbolizer/names/caching_symbolizer.h"
#include "symbolizer/names/function_names.h"
#include "symbolizer/names/module_symbolizer.h"
#include "symbolizer/process/direct_root_files.h"
#include "symbolizer/reader/elf_symbol_reader.h"
#include "test/catch.h"
#include "test/support/manual_clock.h"
#include "test/unit/symbolizer/forwarding_reader.h"
#include "test/unit/symbolizer/victims.h"
#include "test/unit/symbolizer_processes/temporary_directory.h"

namespace flamed::symbolizer {
namespace {

constexpr const char* kBuildId = "00112233445566778899aabbccddeeff01234567";
constexpr const char* kByBuildId = "usr/lib/debug/.build-id/00/112233445566778899aabbccddeeff01234567.debug";

std::string split(const std::string& name) { return std::string(VICTIM_SPLIT) + "/" + name; }
std::string split_bytes(const std::string& name) { return bytes_of(split(name).c_str()); }

ElfSymbols symbols_of(const std::string& module, const std::string& debug = "") {
  const Fd module_file = open_victim(module.c_str());
  const Fd debug_file = debug.empty() ? Fd() : open_victim(debug.c_str());
  return read_elf_symbols({module_file.get(), debug_file.get()}).value();
}

std::string name_at(const ElfSymbols& symbols, std::uint64_t offset) {
  const auto found = symbols.find(offset);
  return found ? std::string(found->name) : "-";
}

void check_names(const ElfSymbols& symbols, const Truth& truth) {
  REQUIRE(truth.size() >= 3);
  for (const auto& [name, offset] : truth) {
    if (name != "victim_exported") CHECK(name_at(symbols, offset) == name);  // that one has aliases
  }
}

TEST_CASE("a stripped program has the names of its separate debug file") {
  const ElfSymbols symbols = symbols_of(split("stripped"), split("stripped.debug"));
  CHECK(symbols.source() == ElfSymbols::Source::kDebugFile);
  CHECK(symbols.build_id() == kBuildId);
  check_names(symbols, truth_of(split("stripped").c_str()));
  const ElfSymbols linked = symbols_of(split("linked"), split("linked.debug"));
  check_names(linked, truth_of(split("linked").c_str()));
}

TEST_CASE("a program with MiniDebugInfo has names for exported and for other functions") {
  const ElfSymbols symbols = symbols_of(split("mini"));
  CHECK(symbols.source() == ElfSymbols::Source::kMiniDebugInfo);
  const Truth truth = truth_of(split("mini").c_str());
  check_names(symbols, truth);
  CHECK(name_at(symbols, truth.at("victim_exported")) == "victim_alias");
}

TEST_CASE("a program's own symbols are preferred to a debug file's") {
  CHECK(symbols_of(VICTIM_DEBUG, split("stripped.debug")).source() == ElfSymbols::Source::kSymtab);
}

TEST_CASE("a damaged debug file costs only its own names") {
  for (const std::string& bad : {std::string("no ELF file"), split_bytes("stripped.debug").substr(0, 3000)}) {
    const Fd module = open_victim(split("mini").c_str());
    const Fd debug = file_with(bad);
    const Result<ElfSymbols> symbols = read_elf_symbols({module.get(), debug.get()});
    REQUIRE(symbols.ok());
    CHECK(symbols->source() == ElfSymbols::Source::kMiniDebugInfo);
  }
}

TEST_CASE("damaged MiniDebugInfo costs only its own names") {
  std::string bytes = split_bytes("mini");
  const std::size_t at = bytes.find(
      "\xfd"
      "7zXZ");
  REQUIRE(at != std::string::npos);
  for (std::size_t i = 0; i < 100; i += 3) {
    std::string bad = bytes;
    bad[at + i] = static_cast<char>(~bad[at + i]);
    const Fd file = file_with(bad);
    const Result<ElfSymbols> symbols = read_elf_symbols({file.get()});
    REQUIRE(symbols.ok());
    if (symbols->source() == ElfSymbols::Source::kMiniDebugInfo) continue;  // a byte that doesn't matter
    CHECK(symbols->source() == ElfSymbols::Source::kDynsym);
  }
}

#ifdef VICTIM_CLANG
TEST_CASE("the functions of a program that clang built are where the running program says") {
  check_names(symbols_of(VICTIM_CLANG), truth_of(VICTIM_CLANG));
}
#endif

TEST_CASE("compressed debug information doesn't matter to symbols") {
  check_names(symbols_of(VICTIM_COMPRESSED), truth_of(VICTIM_COMPRESSED));
}

// The tests below use the symbolizer.

class OneModule final : public Modules {
 public:
  static constexpr ModuleId kId{20};
  OneModule(std::string path, Fd file)
      : module_(std::make_shared<const Module>(
            Module{kId, ModuleKind::kFile, std::move(path), {}, std::move(file), "", nullptr})) {}
  ModulePtr find(ModuleId id) const override { return id == kId ? module_ : nullptr; }
  bool reopen(ModuleId id) override {
    reopens += id == kId ? 1 : 0;
    return may_reopen;
  }
  void close(KeptNamesPtr names) {
    auto closed = std::make_shared<Module>();
    closed->id = kId;
    closed->path = module_->path;
    closed->names = std::move(names);
    module_ = std::move(closed);
  }
  void open(Fd file) {
    module_ = std::make_shared<const Module>(Module{kId, ModuleKind::kFile, module_->path, {}, std::move(file), ""});
  }
  int reopens = 0;
  bool may_reopen = true;

 private:
  ModulePtr module_;
};

/// Makes up lines, and records the queries for them.
class LineReader final : public ForwardingReader {
 public:
  Result<std::vector<SourceChain>> locate(const ModuleFiles& files, std::span<const std::uint64_t> offsets) override {
    ++calls;
    asked.assign(offsets.begin(), offsets.end());
    had_debug_file = files.debug >= 0;
    if (throws) throw std::runtime_error("no reader");
    std::vector<SourceChain> found(offsets.size());
    for (std::size_t i = 0; i < offsets.size(); ++i) found[i] = chain;
    return found;
  }
  int calls = 0;
  std::vector<std::uint64_t> asked;
  bool had_debug_file = false;
  bool throws = false;
  SourceChain chain;
};

struct Fixture {
  explicit Fixture(const std::string& victim, RemoteDebugFiles* remote = nullptr)
      : truth(truth_of(victim.c_str())),
        modules("/opt/app/victim", open_victim(victim.c_str())),
        debug_files(reader, root_files, {}, remote) {}

  std::vector<SymbolChainPtr> name(const std::vector<std::uint64_t>& offsets) {
    std::vector<Frame> frames;
    for (const std::uint64_t offset : offsets) frames.push_back({OneModule::kId, offset});
    return cache.symbolise(frames);
  }
  Symbol name(const char* function) { return name({truth.at(function)}).front()->front(); }

  test::TemporaryDirectory host;
  Truth truth;
  ManualClock clock{{0}, {0}};
  OneModule modules;
  LineReader reader;
  KernelSymbols kernel{clock, {.path = "/nonexistent/kallsyms"}};
  DirectRootFiles root_files{{.proc = "/nonexistent", .host_root = host.path().string()}};
  DebugFileFinder debug_files;
  ModuleSymbolizer symbolizer{modules, kernel, reader, debug_files, clock};
  CachingSymbolizer cache{symbolizer, clock};
};

TEST_CASE("old addresses get names once a debug package is installed") {
  Fixture f(split("stripped"));
  CHECK(f.name("main").name == "main");
  CHECK(f.name("victim_private").kind == SymbolKind::kUnnamed);
  CHECK(f.symbolizer.stats().debug_files_missed == 1);

  f.host.write(kByBuildId, split_bytes("stripped.debug"));
  f.clock.advance_ns(59 * kNsPerSecond);
  CHECK(f.name("victim_private").kind == SymbolKind::kUnnamed);
  f.clock.advance_ns(2 * kNsPerSecond);
  CHECK(f.name("victim_private").name == "victim_private");
  CHECK(f.cache.stats().renewals == 1);
  CHECK(f.symbolizer.stats().debug_files_found == 1);
  CHECK(f.symbolizer.stats().loads == 2);

  // Nothing more can be found, so nothing is looked for.
  f.clock.advance_ns(120 * kNsPerSecond);
  CHECK(f.name("victim_private").name == "victim_private");
  CHECK(f.symbolizer.stats().loads == 2);
}

TEST_CASE("a closed module is opened once more when a debug package is installed") {
  Fixture f(split("stripped"));
  const std::uint64_t offset = f.truth.at("victim_private");
  const SymbolChainPtr before = f.name({offset}).front();
  CHECK(before->front().kind == SymbolKind::kUnnamed);
  f.modules.close(std::make_shared<const KeptNames>(std::vector<KeptNames::Named>{{offset, before}}));
  f.symbolizer.free_closed();
  CHECK(f.name({offset}).front()->front().kind == SymbolKind::kUnnamed);
  f.clock.advance_ns(61 * kNsPerSecond);
  f.name({offset});
  CHECK(f.modules.reopens == 0);

  f.host.write(kByBuildId, split_bytes("stripped.debug"));
  f.clock.advance_ns(61 * kNsPerSecond);
  f.modules.may_reopen = false;
  CHECK(f.name({offset}).front()->front().kind == SymbolKind::kUnnamed);
  CHECK(f.modules.reopens == 1);
  f.name({offset});
  CHECK(f.modules.reopens == 1);
  f.clock.advance_ns(61 * kNsPerSecond);
  f.modules.may_reopen = true;
  CHECK(f.name({offset}).front()->front().kind == SymbolKind::kUnnamed);
  CHECK(f.modules.reopens == 2);

  f.modules.open(open_victim(split("stripped").c_str()));
  CHECK(f.name({offset}).front()->front().name == "victim_private");
  const SymbolChainPtr after = f.name({offset}).front();
  f.modules.close(std::make_shared<const KeptNames>(std::vector<KeptNames::Named>{{offset, after}}));
  f.symbolizer.free_closed();
  f.clock.advance_ns(61 * kNsPerSecond);
  CHECK(f.name({offset}).front()->front().name == "victim_private");
  CHECK(f.modules.reopens == 2);
}

TEST_CASE("an address that had a name from another file is named again as well") {
  Fixture f(split("stripped"));
  const SymbolChainPtr before = f.name({f.truth.at("main")}).front();
  f.host.write(kByBuildId, split_bytes("stripped.debug"));
  f.reader.chain = {{"", "victim.c", 3, false}};
  f.clock.advance_ns(61 * kNsPerSecond);
  const SymbolChainPtr after = f.name({f.truth.at("main")}).front();
  CHECK(before->front().file.empty());
  CHECK(after->front().name == "main");
  CHECK(after->front().file == "victim.c");
  CHECK(after->front().line == 3);
  CHECK(f.reader.had_debug_file);
}

TEST_CASE("names that were found stay when the debug package is removed") {
  Fixture f(split("stripped"));
  const std::string path = f.host.write(kByBuildId, split_bytes("stripped.debug"));
  CHECK(f.name("victim_private").name == "victim_private");
  std::filesystem::remove(path);
  f.clock.advance_ns(120 * kNsPerSecond);
  CHECK(f.name("victim_private").name == "victim_private");
}

class SlowRemote final : public RemoteDebugFiles {
 public:
  Answer find(const std::string&) override {
    if (!arrived) return {Fd(), true};
    return {bytes.empty() ? Fd() : file_with(bytes), false};
  }
  bool arrived = false;
  std::string bytes;
};

TEST_CASE("a name is pending while a debug file is downloaded, and right in the first query after that") {
  SlowRemote remote;
  Fixture f(split("stripped"), &remote);
  CHECK(f.name("main").pending);
  CHECK(f.name("main").name == "main");
  CHECK(f.name("victim_private").pending);
  CHECK(f.cache.stats().entries == 0);
  remote.bytes = split_bytes("stripped.debug");
  remote.arrived = true;
  CHECK(f.name("victim_private").name == "victim_private");
  CHECK_FALSE(f.name("main").pending);
}

TEST_CASE("names are kept once it is known that no debug file comes") {
  SlowRemote remote;
  Fixture f(split("stripped"), &remote);
  CHECK(f.name("main").pending);
  remote.arrived = true;
  CHECK_FALSE(f.name("main").pending);
  CHECK(f.cache.stats().entries == 1);
}

TEST_CASE("an inlined call is inside the function that it was inlined into") {
  Fixture f(VICTIM_DEBUG);
  f.reader.chain = {
      {"ignored", "/src/a.c", 10, false}, {"_ZN3foo3barEi", "/src/b.h", 20, true}, {"", "/src/c.h", 30, true}};
  const SymbolChain chain = *f.name({f.truth.at("main") + 1}).front();
  REQUIRE(chain.size() == 3);
  CHECK(chain[0].name == "main");
  CHECK(chain[0].file == "/src/a.c");
  CHECK(chain[0].line == 10);
  CHECK_FALSE(chain[0].inlined);
  CHECK(chain[1].name == "foo::bar");
  CHECK(chain[1].full_name == "foo::bar(int)");
  CHECK(chain[1].line == 20);
  CHECK(chain[1].inlined);
  CHECK(chain[2].kind == SymbolKind::kUnknown);
  CHECK(chain[2].line == 30);
  for (const Symbol& symbol : {chain[0], chain[1]}) {
    CHECK(symbol.build_id == kBuildId);
    CHECK(symbol.module == "victim");
    CHECK(symbol.kind == SymbolKind::kNative);
  }
}

TEST_CASE("lines are looked up once per module and query, each address once") {
  Fixture f(VICTIM_DEBUG);
  const std::uint64_t offset = f.truth.at("main");
  const auto chains = f.name({offset + 2, offset, offset + 1, offset});
  CHECK(f.reader.calls == 1);
  CHECK(f.reader.asked == std::vector<std::uint64_t>{offset, offset + 1, offset + 2});
  // Adjacent addresses with the same line share their chain.
  CHECK(chains[0] == chains[1]);
}

TEST_CASE("lines are not looked up in a program without debug information") {
  Fixture f(split("stripped"));
  static_cast<void>(f.name("main"));
  CHECK(f.reader.calls == 0);
}

TEST_CASE("lines that can't be read cost no name") {
  Fixture f(VICTIM_DEBUG);
  f.reader.throws = true;
  const Symbol symbol = f.name("main");
  CHECK(symbol.name == "main");
  CHECK(symbol.file.empty());
  CHECK(f.symbolizer.stats().failed_locates == 1);
}

TEST_CASE("names that must cost nothing are functions of the symbol table, without lines") {
  Fixture f(VICTIM_DEBUG);
  f.reader.chain = {{"", "/src/a.c", 10, false}, {"inlined", "/src/a.h", 20, true}};
  FunctionNames quick(f.cache, f.symbolizer, f.clock);
  const std::uint64_t offset = f.truth.at("main");
  const std::vector<Frame> frames = {{OneModule::kId, offset + 2}, {OneModule::kId, offset}};
  const auto first = quick.symbolise(frames);
  REQUIRE(first.size() == 2);
  REQUIRE(first[0]->size() == 1);
  CHECK(first[0]->front().name == "main");
  CHECK(first[0]->front().file.empty());
  // A function is named once, not each of its addresses.
  CHECK(quick.symbolise(frames)[1] == first[0]);
  CHECK(f.reader.calls == 0);
}

TEST_CASE("names that must cost nothing have the lines that a query has asked for, and nothing else changes") {
  Fixture f(VICTIM_DEBUG);
  f.reader.chain = {{"", "/src/a.c", 10, false}, {"inlined", "/src/a.h", 20, true}};
  FunctionNames quick(f.cache, f.symbolizer, f.clock);
  const std::uint64_t offset = f.truth.at("main");
  const std::vector<Frame> frames = {{OneModule::kId, offset + 2}, {OneModule::kId, offset}};
  const std::string before = quick.symbolise(frames)[1]->front().name;
  const auto asked = f.name({offset});
  const auto after = quick.symbolise(frames);
  CHECK(after[1] == asked[0]);
  CHECK(after[1]->size() == 2);
  CHECK(after[1]->front().name == before);
  CHECK(after[0]->size() == 1);
  CHECK(f.reader.calls == 1);
}

TEST_CASE("names that must cost nothing improve when a debug file has appeared") {
  Fixture f(split("stripped"));
  FunctionNames quick(f.cache, f.symbolizer, f.clock);
  const Frame frame{OneModule::kId, f.truth.at("victim_private")};
  const auto name = [&] { return quick.symbolise(std::span(&frame, 1)).front()->front().name; };
  CHECK(name() != "victim_private");
  f.host.write(kByBuildId, split_bytes("stripped.debug"));
  f.clock.advance_ns(61 * kNsPerSecond);
  CHECK(f.name("victim_private").name == "victim_private");
  CHECK(name() == "victim_private");
}

TEST_CASE("a source file's name can't smuggle control characters out") {
  Fixture f(VICTIM_DEBUG);
  f.reader.chain = {{"", "/src/\x1b[2J\n.c", 1, false}};
  CHECK(f.name("main").file.find_first_of("\x1b\n") == std::string::npos);
}

}  // namespace
}  // namespace flamed::symbolizer
