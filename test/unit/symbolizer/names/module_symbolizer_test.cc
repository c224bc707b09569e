// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/names/module_symbolizer.h"

#include <sys/stat.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "symbolizer/process/direct_root_files.h"
#include "symbolizer/reader/elf_symbol_reader.h"
#include "test/catch.h"
#include "test/support/manual_clock.h"
#include "test/unit/symbolizer/forwarding_reader.h"
#include "test/unit/symbolizer/victims.h"

namespace flamed::symbolizer {
namespace {

class FakeModules final : public Modules {
 public:
  ModulePtr find(ModuleId id) const override {
    const auto found = modules_.find(id.value);
    return found == modules_.end() ? nullptr : found->second;
  }
  ModuleId add(std::uint32_t id, Module module) {
    module.id = ModuleId{id};
    modules_[id] = std::make_shared<const Module>(std::move(module));
    return ModuleId{id};
  }
  ModuleId add_file(std::uint32_t id, std::string path, Fd file, std::string why_no_file = "") {
    return add(id, Module{{}, ModuleKind::kFile, std::move(path), {}, std::move(file), std::move(why_no_file)});
  }
  void remove(ModuleId id) { modules_.erase(id.value); }

 private:
  std::map<std::uint32_t, ModulePtr> modules_;
};

class CountingReader final : public ForwardingReader {
 public:
  Result<ElfSymbols> read_symbols(const ModuleFiles& files) override {
    ++reads;
    if (throws) throw std::runtime_error("worker died");
    return ForwardingReader::read_symbols(files);
  }
  Result<std::vector<DemangledName>> demangle(std::span<const std::string> mangled) override {
    demangled += mangled.size();
    return ForwardingReader::demangle(mangled);
  }
  std::atomic<int> reads = 0;
  std::atomic<std::size_t> demangled = 0;
  std::atomic<bool> throws = false;
};

struct Fixture {
  ManualClock clock{{0}, {0}};
  FakeModules modules;
  CountingReader reader;
  KernelSymbols kernel{clock, {.path = "/nonexistent/kallsyms"}};
  // Debug files that are installed on this machine must not be used.
  DirectRootFiles root_files{{.proc = "/nonexistent", .host_root = "/nonexistent"}};
  DebugFileFinder debug_files{reader, root_files};
  ModuleSymbolizer symbolizer{modules, kernel, reader, debug_files, clock};

  SymbolChain name(ModuleId module, std::uint64_t offset) {
    const Frame frame{module, offset};
    const auto chains = symbolizer.symbolise(std::span(&frame, 1));
    REQUIRE(chains.size() == 1);
    REQUIRE(chains[0] != nullptr);
    REQUIRE(chains[0]->size() == 1);
    return *chains[0];
  }
};

TEST_CASE("a function of a file has its name, module and kind, and no reason") {
  Fixture f;
  const ModuleId id = f.modules.add_file(20, "/opt/app/victim_c", open_victim(VICTIM_C));
  const Symbol symbol = f.name(id, truth_of(VICTIM_C).at("main")).front();
  CHECK(symbol.name == "main");
  CHECK(symbol.module == "victim_c");
  CHECK(symbol.kind == SymbolKind::kNative);
  CHECK(symbol.reason.empty());
}

TEST_CASE("C++ functions are demangled") {
  Fixture f;
  const ModuleId id = f.modules.add_file(20, "victim_cpp", open_victim(VICTIM_CPP));
  const Truth truth = truth_of(VICTIM_CPP);
  REQUIRE(truth.size() == 2);
  for (const auto& [name, offset] : truth) CHECK(f.name(id, offset).front().name == name);
}

TEST_CASE("a file that was deleted is named from its descriptor") {
  Fixture f;
  std::string path = "/tmp/flamed-victim-XXXXXX";
  Fd fd(::mkstemp(path.data()));
  const std::string bytes = bytes_of(VICTIM_C);
  REQUIRE(::write(fd.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  REQUIRE(::unlink(path.c_str()) == 0);
  const ModuleId id = f.modules.add_file(20, path + " (deleted)", std::move(fd));
  const Symbol symbol = f.name(id, truth_of(VICTIM_C).at("main")).front();
  CHECK(symbol.name == "main");
  CHECK("/tmp/" + symbol.module == path);
}

TEST_CASE("answers are in the order of the query, whatever the modules") {
  Fixture f;
  const ModuleId c = f.modules.add_file(20, "victim_c", open_victim(VICTIM_C));
  const ModuleId cpp = f.modules.add_file(21, "victim_cpp", open_victim(VICTIM_CPP));
  const std::uint64_t main_offset = truth_of(VICTIM_C).at("main");
  const std::uint64_t hidden_offset = truth_of(VICTIM_CPP).at("victim::(anonymous namespace)::hidden");
  const std::vector<Frame> frames = {{cpp, hidden_offset},        {c, main_offset},
                                     {ModuleId{77}, 5},           {cpp, hidden_offset},
                                     {kKernelModule, 1ULL << 63}, {c, main_offset + 1}};
  const auto chains = f.symbolizer.symbolise(frames);
  REQUIRE(chains.size() == frames.size());
  CHECK(chains[0]->front().name == "victim::(anonymous namespace)::hidden");
  CHECK(chains[1]->front().name == "main");
  CHECK(chains[2]->front().name == "[unknown] (module 77+0x5)");
  CHECK(chains[3]->front().name == "victim::(anonymous namespace)::hidden");
  CHECK(chains[4]->front().kind == SymbolKind::kUnknown);
  CHECK(chains[5]->front().name == "main");
}

TEST_CASE("without lines, addresses of one function share one chain, and only mangled names are demangled") {
  Fixture f;
  const ModuleId id = f.modules.add_file(20, "victim_stripped", open_victim(VICTIM_STRIPPED));
  const std::uint64_t offset = truth_of(VICTIM_STRIPPED).at("main");
  const std::vector<Frame> frames = {{id, offset}, {id, offset + 3}, {id, offset + 1}};
  const auto chains = f.symbolizer.symbolise(frames);
  CHECK(chains[0] == chains[1]);
  CHECK(chains[0] == chains[2]);
  CHECK(f.reader.demangled == 0);
  const ModuleId cpp = f.modules.add_file(21, "victim_cpp", open_victim(VICTIM_CPP));
  const std::uint64_t hidden = truth_of(VICTIM_CPP).at("victim::(anonymous namespace)::hidden");
  static_cast<void>(f.symbolizer.symbolise(std::vector<Frame>{{cpp, hidden}, {cpp, hidden + 1}}));
  CHECK(f.reader.demangled == 1);
}

TEST_CASE("code comes with its instructions from the very file, and otherwise with the reason") {
  Fixture f;
  const std::uint64_t offset = truth_of(VICTIM_C).at("main");
  const ModuleId id = f.modules.add_file(20, "victim_c", open_victim(VICTIM_C));
  const std::string build_id = f.name(id, offset).front().build_id;
  REQUIRE_FALSE(build_id.empty());
  const MachineCode code = f.symbolizer.code_at({id, build_id, {offset, offset + 4}});
  CHECK(code.reason.empty());
  REQUIRE(code.functions.size() == 1);
  CHECK(code.functions[0].offset == offset);
  REQUIRE_FALSE(code.functions[0].instructions.empty());
  CHECK(code.functions[0].instructions[0].offset == offset);

  const auto has_no_code = [&](const CodeQuestion& question, std::string_view reason) {
    const MachineCode none = f.symbolizer.code_at(question);
    INFO(none.reason);
    return none.functions.empty() && none.reason.find(reason) != std::string::npos;
  };
  CHECK(has_no_code({id, "00", {offset}}, "another build-id"));
  CHECK(has_no_code({id, build_id, {1}}, "no function is known there"));
  CHECK(has_no_code({ModuleId{99}, build_id, {offset}}, "no longer known"));
  CHECK(has_no_code({kKernelModule, "", {offset}}, "kernel"));
  CHECK(has_no_code({kRuntimeModule, "", {offset}}, "runtime"));
  const ModuleId memory = f.modules.add(21, Module{{}, ModuleKind::kAnonymous, "[anon]", {}, {}, ""});
  CHECK(has_no_code({memory, "", {offset}}, "just-in-time"));
  const ModuleId gone = f.modules.add_file(22, "gone", Fd(), "deleted before it was opened");
  CHECK(has_no_code({gone, "", {offset}}, "deleted before it was opened"));
}

TEST_CASE("a module is read once") {
  Fixture f;
  const ModuleId id = f.modules.add_file(20, "victim_c", open_victim(VICTIM_C));
  static_cast<void>(f.name(id, 0));
  static_cast<void>(f.name(id, 1));
  CHECK(f.reader.reads == 1);
  CHECK(f.symbolizer.stats().tables == 1);
  CHECK(f.symbolizer.stats().table_bytes > 0);
}

TEST_CASE("a module without a descriptor is unknown, with its own reason") {
  Fixture f;
  const ModuleId id = f.modules.add_file(20, "/usr/lib/libfoo.so.1", Fd(), "not opened yet");
  const Symbol symbol = f.name(id, 0x1a2b).front();
  CHECK(symbol.name == "[unknown] (libfoo.so.1+0x1a2b)");
  CHECK(symbol.module == "libfoo.so.1");
  CHECK(symbol.kind == SymbolKind::kUnknown);
  CHECK(symbol.reason == "not opened yet");
}

TEST_CASE("a module that is opened later gets names") {
  Fixture f;
  const std::uint64_t offset = truth_of(VICTIM_C).at("main");
  const ModuleId id = f.modules.add_file(20, "victim_c", Fd(), "not opened yet");
  CHECK(f.name(id, offset).front().kind == SymbolKind::kUnknown);
  f.modules.add_file(20, "victim_c", open_victim(VICTIM_C));
  CHECK(f.name(id, offset).front().name == "main");
}

TEST_CASE("a closed module has the names that were kept, and a reason why there are no others") {
  Fixture f;
  Module closed{{}, ModuleKind::kFile, "/mnt/usb/tool", {}, Fd(), "its file was closed"};
  closed.names = std::make_shared<const KeptNames>(
      std::vector<KeptNames::Named>{{16, share({Symbol{"kept", "tool", SymbolKind::kNative, {}}})}});
  const ModuleId id = f.modules.add(20, std::move(closed));
  CHECK(f.name(id, 16).front().name == "kept");
  const Symbol other = f.name(id, 17).front();
  CHECK(other.name == "[unknown] (tool+0x11)");
  CHECK(other.reason == "its file was closed");
  CHECK_FALSE(other.pending);
  CHECK(f.reader.reads == 0);

  Module memory{{}, ModuleKind::kAnonymous, "[anon]", {42, 1}, Fd(), "its files were closed"};
  memory.names = f.modules.find(id)->names;
  const ModuleId jit = f.modules.add(21, std::move(memory));
  CHECK(f.name(jit, 16).front().name == "kept");
  CHECK(f.name(jit, 17).front().name == "[unknown] (anon+0x11)");
  CHECK(f.name(jit, 17).front().reason == "its files were closed");
}

TEST_CASE("a stack that may not be shown is replaced with the reason") {
  Fixture f;
  const Symbol symbol = f.name(kHiddenModule, 0).front();
  CHECK(symbol.name == "[not shown: not dumpable]");
  CHECK_FALSE(symbol.reason.empty());
}

TEST_CASE("nothing of a closed module is kept in use") {
  Fixture f;
  const ModuleId id = f.modules.add_file(20, "victim_c", open_victim(VICTIM_C));
  f.name(id, truth_of(VICTIM_C).at("main"));
  CHECK(f.symbolizer.stats().tables == 1);
  Module closed{{}, ModuleKind::kFile, "victim_c", {}, Fd(), ""};
  closed.names = std::make_shared<const KeptNames>();
  f.modules.add(20, std::move(closed));
  const std::size_t held = f.symbolizer.stats().table_bytes;
  CHECK(f.symbolizer.free_closed() == held);
  CHECK(f.symbolizer.stats().tables == 0);
  CHECK(f.symbolizer.stats().table_bytes == 0);
}

TEST_CASE("a module whose id is reused is read again") {
  Fixture f;
  const std::uint64_t offset = truth_of(VICTIM_C).at("main");
  const ModuleId id = f.modules.add_file(20, "script", file_with("#!/bin/sh\n"));
  CHECK(f.name(id, offset).front().reason == "not an ELF file");
  f.modules.add_file(20, "victim_c", open_victim(VICTIM_C));
  CHECK(f.name(id, offset).front().name == "main");
}

TEST_CASE("an address that neither a symbol nor a described function covers has a reason") {
  Fixture f;
  const ModuleId id = f.modules.add_file(20, "victim_nameless", open_victim(VICTIM_NAMELESS));
  const Symbol symbol = f.name(id, 0).front();
  CHECK(symbol.name == "[unknown] (victim_nameless+0x0)");
  CHECK(symbol.kind == SymbolKind::kUnknown);
  CHECK(symbol.reason == "no symbol covers this address (stripped?); build it without stripping");
}

TEST_CASE("all addresses of a function without a symbol are that function, by its first byte") {
  Fixture f;
  const ModuleId id = f.modules.add_file(20, "/usr/bin/tool", open_victim(VICTIM_NAMELESS));
  const Truth truth = truth_of(VICTIM_NAMELESS);
  const std::uint64_t start = truth.at("main");
  const std::vector<Frame> frames = {{id, start + 5}, {id, truth.at("victim_private")}, {id, start}, {id, start + 1}};
  const auto chains = f.symbolizer.symbolise(frames);
  CHECK(chains[0] == chains[2]);
  CHECK(chains[0] == chains[3]);
  CHECK(chains[0]->front().name != chains[1]->front().name);
  const Symbol& symbol = chains[0]->front();
  std::ostringstream name;
  name << "[tool+0x" << std::hex << start << "]";
  CHECK(symbol.name == name.str());
  CHECK(symbol.kind == SymbolKind::kUnnamed);
  CHECK(symbol.offset == start);
  CHECK(symbol.module == "tool");
  CHECK(symbol.reason == "no symbol covers this address (stripped?); build it without stripping");
}

TEST_CASE("a stripped file's reason names its package where the host's file is the mapped one, else its build-id") {
  std::string folder = "/tmp/flamed-packages-XXXXXX";
  REQUIRE(::mkdtemp(folder.data()) != nullptr);
  std::ofstream(folder + "/victim1.list") << VICTIM_STRIPPED << "\n";
  DebianPackages packages(folder);
  Fixture f;
  ModuleSymbolizer symbolizer(f.modules, f.kernel, f.reader, f.debug_files, f.clock, {.packages = &packages});
  const std::uint64_t offset = truth_of(VICTIM_STRIPPED).at("victim_private");
  const auto reason_of = [&](std::uint32_t id, const char* victim) {
    const Frame frame{f.modules.add_file(id, VICTIM_STRIPPED, open_victim(victim)), offset};
    return symbolizer.symbolise(std::span(&frame, 1)).front()->front().reason;
  };
  const std::string installed = reason_of(20, VICTIM_STRIPPED);
  CHECK(installed.find("; apt install victim1-dbgsym (of some packages victim1-dbg)") != std::string::npos);
  const std::string other = reason_of(21, VICTIM_NAMELESS);
  CHECK(other.find("victim1") == std::string::npos);
  CHECK(other.find("; build it without stripping") != std::string::npos);
  std::filesystem::remove_all(folder);
}

TEST_CASE("a file that can't be read is tried again after a while, not at once") {
  Fixture f;
  const std::uint64_t offset = truth_of(VICTIM_C).at("main");
  const ModuleId id = f.modules.add_file(20, "victim_c", open_victim(VICTIM_C));
  f.reader.throws = true;
  CHECK(f.name(id, offset).front().reason.find("worker died") != std::string::npos);
  f.reader.throws = false;
  CHECK(f.name(id, offset).front().reason.find("worker died") != std::string::npos);
  CHECK(f.reader.reads == 1);
  CHECK(f.symbolizer.stats().failed_loads == 1);
  f.clock.advance_ns(61 * kNsPerSecond);
  CHECK(f.name(id, offset).front().name == "main");
}

TEST_CASE("memory without a file is JIT code without a name") {
  Fixture f;
  const ModuleId id = f.modules.add(20, Module{{}, ModuleKind::kAnonymous, "[anon]", {}, Fd(), ""});
  const Symbol symbol = f.name(id, 0x7f0012345678).front();
  CHECK(symbol.name == "[unknown] (anon+0x7f0012345678)");
  CHECK(symbol.module == "[anon]");
  CHECK(symbol.kind == SymbolKind::kJit);
  CHECK(symbol.reason == "no file behind this memory; no perf map or jitdump was looked for yet");
}

TEST_CASE("a module that no longer exists has a reason") {
  Fixture f;
  CHECK(f.name(ModuleId{77}, 5).front().reason == "the module is no longer known");
  CHECK(f.name(kNoModule, 5).front().reason == "no mapping covered this address");
}

TEST_CASE("a path can't smuggle control characters out") {
  Fixture f;
  const ModuleId id = f.modules.add_file(20, "/tmp/a\x1b[2Jb\nc", Fd(), "because\nof this");
  const Symbol symbol = f.name(id, 1).front();
  for (const std::string& text : {symbol.name, symbol.module, symbol.reason}) {
    CHECK(text.find_first_of("\x1b\n") == std::string::npos);
  }
}

TEST_CASE("a symbol's name can't smuggle control characters out") {
  Fixture f;
  std::string bytes = bytes_of(VICTIM_C);
  std::size_t at = 0;
  int changed = 0;
  while ((at = bytes.find("victim_private", at)) != std::string::npos) {
    bytes.replace(at, 14, "v\x1b[2Jm_pr\xff\n\rte");
    ++changed;
  }
  REQUIRE(changed > 0);
  const ModuleId id = f.modules.add_file(20, "victim", file_with(bytes));
  const Symbol symbol = f.name(id, truth_of(VICTIM_C).at("victim_private")).front();
  CHECK(symbol.kind == SymbolKind::kNative);
  CHECK(symbol.name.find_first_of("\x1b\n\r\xff") == std::string::npos);
}

TEST_CASE("kernel addresses are named with their module") {
  Fixture f;
  std::string path = "/tmp/flamed-kallsyms-XXXXXX";
  Fd fd(::mkstemp(path.data()));
  const std::string text =
      "ffffffff81000000 T schedule\n"
      "ffffffffc0000000 t nft_do_chain\t[nf_tables]\n"
      "ffffffffc0000100 t _RNvC6_123foo3bar\t[rust_mod]\n";
  REQUIRE(::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  KernelSymbols kernel(f.clock, {.path = path});
  ModuleSymbolizer symbolizer(f.modules, kernel, f.reader, f.debug_files, f.clock);
  const std::vector<Frame> frames = {{kKernelModule, 0xffffffff81000004},
                                     {kKernelModule, 0xffffffffc0000004},
                                     {kKernelModule, 0xffffffffc0000104},
                                     {kKernelModule, 0xffffffff70000000}};
  const auto chains = symbolizer.symbolise(frames);
  ::unlink(path.c_str());
  CHECK(chains[0]->front().name == "schedule");
  CHECK(chains[0]->front().module == "[kernel]");
  CHECK(chains[0]->front().kind == SymbolKind::kKernel);
  CHECK(chains[1]->front().module == "[nf_tables]");
  CHECK(chains[2]->front().name == "123foo::bar");
  CHECK(chains[3]->front().name == "[unknown] (kernel+0xffffffff70000000)");
  CHECK_FALSE(chains[3]->front().reason.empty());
}

TEST_CASE("vdso addresses are named or have a reason") {
  Fixture f;
  const Symbol symbol = f.name(kVdsoModule, 0).front();
  CHECK(symbol.module == "[vdso]");
  CHECK(symbol.name == "[unknown] (vdso+0x0)");
  CHECK_FALSE(symbol.reason.empty());
}

TEST_CASE("tables stay within the budget; the one used last stays") {
  Fixture f;
  const ModuleId c = f.modules.add_file(20, "victim_c", open_victim(VICTIM_C));
  const ModuleId cpp = f.modules.add_file(21, "victim_cpp", open_victim(VICTIM_CPP));
  static_cast<void>(f.name(c, 0));
  const std::size_t one = f.symbolizer.stats().table_bytes;
  ModuleSymbolizer small(f.modules, f.kernel, f.reader, f.debug_files, f.clock, {.table_budget_bytes = one + one / 2});
  const Frame in_c{c, 0};
  const Frame in_cpp{cpp, 0};
  static_cast<void>(small.symbolise(std::span(&in_c, 1)));
  static_cast<void>(small.symbolise(std::span(&in_cpp, 1)));
  CHECK(small.stats().tables == 1);
  CHECK(small.stats().evictions == 1);
  CHECK(small.stats().table_bytes <= one + one / 2);
  const int reads = f.reader.reads;
  static_cast<void>(small.symbolise(std::span(&in_cpp, 1)));
  CHECK(f.reader.reads == reads);
  static_cast<void>(small.symbolise(std::span(&in_c, 1)));
  CHECK(f.reader.reads == reads + 1);
}

TEST_CASE("a table larger than the budget still answers") {
  Fixture f;
  const ModuleId id = f.modules.add_file(20, "victim_c", open_victim(VICTIM_C));
  ModuleSymbolizer small(f.modules, f.kernel, f.reader, f.debug_files, f.clock, {.table_budget_bytes = 10});
  const Frame frame{id, truth_of(VICTIM_C).at("main")};
  CHECK(small.symbolise(std::span(&frame, 1))[0]->front().name == "main");
  CHECK(small.stats().table_bytes == 0);
}

TEST_CASE("the table of a dropped module is freed when the next one is read") {
  Fixture f;
  const ModuleId first = f.modules.add_file(20, "victim_c", open_victim(VICTIM_C));
  const ModuleId second = f.modules.add_file(21, "victim_c", open_victim(VICTIM_C));
  static_cast<void>(f.name(first, 0));
  f.modules.remove(first);
  static_cast<void>(f.name(second, 0));
  CHECK(f.symbolizer.stats().tables == 1);
}

/// Blocks in read_symbols() until the test releases it.
class BlockingReader final : public ForwardingReader {
 public:
  Result<ElfSymbols> read_symbols(const ModuleFiles& files) override {
    std::unique_lock lock(mutex_);
    ++reads_;
    changed_.notify_all();
    if (files.module == blocked_fd) changed_.wait(lock, [&] { return released_; });
    lock.unlock();
    return read_elf_symbols(files);
  }
  void wait_for_reads(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return reads_ >= count; });
  }
  void release() {
    std::lock_guard lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }
  int reads() {
    std::lock_guard lock(mutex_);
    return reads_;
  }
  int blocked_fd = -1;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int reads_ = 0;
  bool released_ = false;
};

TEST_CASE("a module that takes long to read doesn't delay others, and is read once for all waiting queries") {
  ManualClock clock({0}, {0});
  FakeModules modules;
  KernelSymbols kernel(clock, {.path = "/nonexistent/kallsyms"});
  BlockingReader reader;
  Fd slow_file = open_victim(VICTIM_C);
  reader.blocked_fd = slow_file.get();
  const ModuleId slow = modules.add_file(20, "slow", std::move(slow_file));
  const ModuleId quick = modules.add_file(21, "quick", open_victim(VICTIM_C));
  DirectRootFiles root_files({.proc = "/nonexistent", .host_root = "/nonexistent"});
  DebugFileFinder debug_files(reader, root_files);
  ModuleSymbolizer symbolizer(modules, kernel, reader, debug_files, clock);
  const std::uint64_t offset = truth_of(VICTIM_C).at("main");

  std::atomic<int> named = 0;
  const auto ask_slow = [&] {
    const Frame frame{slow, offset};
    if (symbolizer.symbolise(std::span(&frame, 1))[0]->front().name == "main") ++named;
  };
  {
    std::jthread first(ask_slow);
    reader.wait_for_reads(1);
    std::jthread second(ask_slow);
    const Frame frame{quick, offset};
    CHECK(symbolizer.symbolise(std::span(&frame, 1))[0]->front().name == "main");
    CHECK(named == 0);
    reader.release();
  }
  CHECK(named == 2);
  CHECK(reader.reads() == 2);
}

}  // namespace
}  // namespace flamed::symbolizer
