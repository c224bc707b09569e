// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/worker/value_codec.h"

#include <fcntl.h>

#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/handle.h"
#include "symbolizer/reader/direct_module_reader.h"
#include "test/catch.h"

namespace flamed::symbolizer {
namespace {

using Bytes = std::vector<std::byte>;

Fd own_program() { return Fd(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC)); }

ElfSymbols own_symbols() {
  DirectModuleReader reader;
  const Fd file = own_program();
  return reader.read_symbols({file.get()}).value();
}

SourcedRows own_sourced_rows() {
  DirectModuleReader reader;
  return reader.read_unwind_rows(own_program().get(), -1).value();
}

unwinder::UnwindRows own_rows() { return own_sourced_rows().rows; }

template <typename T>
Bytes encoded(const T& value) {
  WireWriter writer;
  ValueCodec::encode(writer, value);
  return writer.bytes();
}

/// Decodes with the request's context. Returns the error, or an empty text.
template <typename T>
std::string decode(std::span<const std::byte> bytes, T& value, std::size_t count = 0) {
  MemorySource source(bytes);
  WireReader reader(source, bytes.size());
  bool good = false;
  if constexpr (requires { ValueCodec::decode(reader, value, count); }) {
    good = ValueCodec::decode(reader, value, count) && reader.finished();
  } else {
    good = ValueCodec::decode(reader, value) && reader.finished();
  }
  CHECK(good == (reader.damage() == nullptr));
  return good ? "" : reader.damage();
}

/// Checks that no prefix of the bytes is a value, and neither are the bytes with one more.
template <typename T>
void check_every_cut(const T& value, std::size_t count = 0) {
  Bytes bytes = encoded(value);
  std::size_t taken_for_whole = 0;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    T cut;
    if (decode(std::span(bytes).first(size), cut, count).empty()) ++taken_for_whole;
  }
  CHECK(taken_for_whole == 0);
  bytes.push_back({});
  T longer;
  CHECK(decode(std::span<const std::byte>(bytes), longer, count) == "it is longer than its contents");
}

TEST_CASE("the source of rows arrives as it was sent, and a part of it is damage") {
  const SourcedRows sent = own_sourced_rows();
  REQUIRE(sent.source.ranges.size() > 3);
  SourcedRows arrived;
  REQUIRE(decode(encoded(sent), arrived).empty());
  CHECK(arrived.source == sent.source);
  CHECK(encoded(arrived) == encoded(sent));
  check_every_cut(SourcedRows{{}, {{{0, 64}, {4096, 100}}, 5, 7}, true});
}

TEST_CASE("rows of single functions come back as they were, and no part of them does") {
  DirectModuleReader reader;
  const std::vector<std::uint64_t> offsets{own_rows().base + own_rows().rows[10].offset, 0};
  const auto functions = reader.read_function_rows(own_program().get(), offsets).value();
  REQUIRE(functions.size() == 2);
  REQUIRE_FALSE(functions[0].rows.empty());
  REQUIRE(functions[1].rows.empty());
  std::vector<unwinder::UnwindRows> decoded;
  CHECK(decode(encoded(functions), decoded, 2).empty());
  CHECK(decoded[0].base == functions[0].base);
  CHECK(decoded[0].find(offsets[0]) == functions[0].find(offsets[0]));
  check_every_cut(functions, 2);
}

DisassemblyQuestion some_functions() { return {{{0x40, 0x50}, {0x60, 0x64}}, {0x41}}; }
Disassembly some_code() {
  return {"00ff", {{0x40, 0x10, 0x1040, {{0x40, "\x55", "push %rbp"}, {0x42, "\x06", ""}}}, {0x60, 0, 0, {}}}};
}

TEST_CASE("a disassembly comes back as it was, and no part of it does") {
  const Disassembly sent = some_code();
  const Bytes bytes = encoded(sent);
  const auto arrives = [](const Bytes& received, Disassembly& value) {
    MemorySource source(received);
    WireReader reader(source, received.size());
    return ValueCodec::decode(reader, value, some_functions()) && reader.finished();
  };
  Disassembly arrived;
  REQUIRE(arrives(bytes, arrived));
  CHECK(arrived.build_id == sent.build_id);
  CHECK(arrived.functions == sent.functions);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    Disassembly cut;
    if (arrives(Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)), cut)) FAIL(size);
  }
}

TEST_CASE("a disassembly with functions or instructions elsewhere is damage") {
  const auto is_damaged = [](const Disassembly& value) {
    const Bytes bytes = encoded(value);
    MemorySource source(bytes);
    WireReader reader(source, bytes.size());
    Disassembly arrived;
    return !ValueCodec::decode(reader, arrived, some_functions()) && reader.damage() != nullptr;
  };
  const auto changed = [](auto change) {
    Disassembly value = some_code();
    change(value.functions[0]);
    return value;
  };
  CHECK_FALSE(is_damaged(some_code()));
  CHECK(is_damaged(changed([](FunctionCode& function) { function.offset = 0x41; })));
  CHECK(is_damaged(changed([](FunctionCode& function) { function.size = 0x11; })));
  CHECK(is_damaged(changed([](FunctionCode& function) { function.instructions[0].offset = 0x3f; })));
  CHECK(is_damaged(changed([](FunctionCode& function) { function.instructions[1].offset = 0x50; })));
  CHECK(is_damaged(changed([](FunctionCode& function) { function.instructions[0].bytes = "three"; })));
  CHECK(is_damaged(changed([](FunctionCode& function) { function.instructions[0].bytes.clear(); })));
  CHECK(is_damaged(
      changed([](FunctionCode& function) { std::swap(function.instructions[0], function.instructions[1]); })));
  CHECK(is_damaged(changed([](FunctionCode& function) { function.instructions[1].bytes = std::string(16, 'x'); })));
}

ElfFacts some_facts() {
  return {.build_id = "00ff",
          .debug_link = "libfoo.debug",
          .debug_link_crc = 0x12345678,
          .alternate_link = "/usr/lib/debug/.dwz/foo",
          .alternate_build_id = "abcd",
          .has_symtab = true,
          .has_debug_info = false,
          .has_mini_debug_info = true,
          .is_go = true};
}

std::vector<SourceChain> some_chains() {
  return {{{"main", "/src/main.c", 7, false}},
          {},
          {{"main", "/src/main.c", 9, false}, {"inner", "/src/inner.h", 3, true}, {"", "", 0, true}}};
}

SymbolTable small_table() {
  SymbolTable::Builder builder;
  builder.add(0x1000, 0x100, 0x2000, SymbolBinding::kGlobal, "outer");
  builder.add(0x1040, 0x20, 0x2000, SymbolBinding::kLocal, "nested");
  builder.add(0x1800, 0x10, 0x2000, SymbolBinding::kWeak, "last");
  return std::move(builder).build().value();
}

TEST_CASE("facts arrive as they were sent, field by field") {
  ElfFacts arrived;
  CHECK(decode(encoded(some_facts()), arrived).empty());
  CHECK(arrived == some_facts());
  check_every_cut(some_facts());
}

TEST_CASE("a debug link with a directory is damage") {
  for (const char* link : {"../shadow", "/etc/shadow", "..", "."}) {
    ElfFacts facts = some_facts();
    facts.debug_link = link;
    ElfFacts arrived;
    CHECK(decode(encoded(facts), arrived) == "a debug link is not a file name");
  }
  ElfFacts facts = some_facts();
  facts.build_id = "../../etc";
  ElfFacts arrived;
  CHECK(decode(encoded(facts), arrived) == "a build-id is not in hex");
}

TEST_CASE("the symbols of a real program arrive as they were sent") {
  const ElfSymbols sent = own_symbols();
  REQUIRE(sent.size() > 100);
  ElfSymbols arrived;
  REQUIRE(decode(encoded(sent), arrived).empty());
  CHECK(arrived.size() == sent.size());
  CHECK(arrived.source() == sent.source());
  CHECK(arrived.build_id() == sent.build_id());
  CHECK(arrived.is_go() == sent.is_go());
  CHECK(encoded(arrived) == encoded(sent));
  std::size_t different = 0;
  for (std::uint64_t offset = 0; offset < (1U << 20); offset += 13) {
    const auto a = sent.find(offset);
    const auto b = arrived.find(offset);
    if (a.has_value() != b.has_value() || (a && (a->name != b->name || a->offset != b->offset))) ++different;
  }
  CHECK(different == 0);
}

/// Changes one 32-bit number of the bytes.
Bytes with(Bytes bytes, std::size_t at, std::uint32_t number) {
  REQUIRE(at + sizeof(number) <= bytes.size());
  std::memcpy(bytes.data() + at, &number, sizeof(number));
  return bytes;
}

TEST_CASE("ranges of functions arrive as they were sent, and a part of them or another order is refused") {
  const FunctionRanges sent({{0x2000, 0x2010}, {0x1000, 0x1100}, {0x1200, 0x1300}});
  FunctionRanges arrived;
  REQUIRE(decode(encoded(sent), arrived).empty());
  REQUIRE(arrived.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) CHECK(arrived[i] == sent[i]);
  check_every_cut(sent);
  // base (8), count (8), starts and sizes of 4 bytes each.
  CHECK(decode(with(encoded(sent), 16, 0x200), arrived) == "the functions are not in order");
  CHECK(decode(with(encoded(sent), 4, 0xffffffff), arrived) == "a function is out of bounds");
}

TEST_CASE("functions without names arrive with the symbols") {
  ElfSymbols::Parts parts;
  parts.segments = {{0x100, 0x1000, 0x1100}};
  parts.unnamed = FunctionRanges({{0x1200, 0x1240}});
  ElfSymbols arrived;
  REQUIRE(decode(encoded(ElfSymbols(parts)), arrived).empty());
  CHECK(arrived.find_unnamed(0x210) == 0x200);
  CHECK_FALSE(arrived.find_unnamed(0x240).has_value());
}

TEST_CASE("a symbol table with nested functions arrives as it was sent, and a part of it is refused") {
  SymbolTable arrived;
  REQUIRE(decode(encoded(small_table()), arrived).empty());
  CHECK(arrived.find(0x1050)->name == "nested");
  CHECK(arrived.find(0x1070)->name == "outer");
  CHECK(arrived.find(0x1070)->offset == 0x70);
  CHECK_FALSE(arrived.find(0x1100).has_value());
  check_every_cut(small_table());
  SymbolTable empty;
  CHECK(decode(encoded(SymbolTable()), empty).empty());
  CHECK(empty.empty());
}

TEST_CASE("a symbol table of more than 4 GiB arrives as it was sent") {
  SymbolTable::Builder builder;
  builder.add(0x1000, 0x10, ~std::uint64_t{0}, SymbolBinding::kGlobal, "low");
  builder.add(0x7f00'0000'0000, 0x10, ~std::uint64_t{0}, SymbolBinding::kGlobal, "high");
  const SymbolTable sent = std::move(builder).build().value();
  SymbolTable arrived;
  REQUIRE(decode(encoded(sent), arrived).empty());
  CHECK(arrived.find(0x7f00'0000'0008)->name == "high");
  CHECK(arrived.find(0x1008)->name == "low");
}

TEST_CASE("an inconsistent symbol table is damage") {
  // base (8), starts: count (8) and 4 bytes each, wide starts: count (8), names: count (8) and 4 bytes each.
  const Bytes good = encoded(small_table());
  std::uint64_t ranges = 0;
  std::memcpy(&ranges, good.data() + 8, sizeof(ranges));
  const std::size_t names_at = 16 + ranges * 4 + 8 + 8;
  SymbolTable table;
  CHECK(decode(with(good, 20, 0), table) == "the ranges are not in order");
  CHECK(decode(with(good, names_at, 0x7fffffff), table) == "a name is out of range");
  CHECK(decode(with(good, names_at + (ranges - 1) * 4, 1), table) == "the last range has no end");
  CHECK(decode(with(good, 8, 0x40000000), table) == "a count is too large");
  Bytes open_ended = good;
  open_ended.back() = std::byte{'x'};
  CHECK(decode(open_ended, table) == "a name has no end");
}

TEST_CASE("a name so long that copies of it are costly is damage") {
  const auto table_with = [](std::size_t length) {
    WireWriter writer;
    const std::vector<std::uint32_t> starts = {0, 16};
    const std::vector<std::uint32_t> names = {1, 0};
    std::string blob(1, '\0');
    blob.append(length, 'x');
    blob.push_back('\0');
    writer.number(std::uint64_t{0x1000});
    writer.array(std::span<const std::uint32_t>(starts));
    writer.array(std::span<const std::uint32_t>());
    writer.array(std::span<const std::uint32_t>(names));
    writer.number(std::uint64_t{0});  // resumed ranges
    writer.text(blob);
    return writer.bytes();
  };
  SymbolTable table;
  CHECK(decode(table_with(4096), table).empty());
  CHECK(decode(table_with(4097), table) == "a name is too long");
}

TEST_CASE("source chains arrive as they were sent, with shared texts sent once") {
  const std::vector<SourceChain> sent = some_chains();
  std::vector<SourceChain> arrived;
  CHECK(decode(encoded(sent), arrived, sent.size()).empty());
  CHECK(arrived == sent);
  check_every_cut(sent, sent.size());

  const std::vector<SourceChain> many(10'000, sent.front());
  CHECK(encoded(many).size() < 10'000 * (16 + 4) + 200);
  CHECK(decode(encoded(many), arrived, many.size()).empty());
  CHECK(arrived == many);
}

TEST_CASE("source chains that are not one for each address, or would fill the memory, are damage") {
  std::vector<SourceChain> arrived;
  CHECK(decode(encoded(some_chains()), arrived, 2) == "it does not have one chain for each address");

  // A few MiB on the wire, 4 GiB in memory.
  WireWriter bomb;
  const std::uint32_t text_size = 1U << 20;
  bomb.array(std::span<const std::uint32_t>(&text_size, 1));
  bomb.text(std::string(text_size, 'x'));
  const std::uint32_t frames_of_one = 4096;
  bomb.array(std::span<const std::uint32_t>(&frames_of_one, 1));
  const std::vector<std::uint32_t> frames(4096 * 4, 0);  // function 0, file 0, line 0, not inlined
  bomb.number(std::uint64_t{4096});
  for (const std::uint32_t number : frames) bomb.number(number);
  CHECK(decode(bomb.bytes(), arrived, 1) == "the chains are too large");
}

TEST_CASE("source chains beyond the limits are left out, and the rest arrives") {
  std::vector<SourceChain> sent = some_chains();
  sent[0] = SourceChain(5000, SourceFrame{"deep", "", 1, true});
  std::vector<SourceChain> arrived;
  CHECK(decode(encoded(sent), arrived, sent.size()).empty());
  CHECK(arrived[0].empty());
  CHECK(arrived[2] == sent[2]);
}

TEST_CASE("the unwind rows of a real program arrive as they were sent") {
  const unwinder::UnwindRows sent = own_rows();
  REQUIRE(sent.rows.size() > 100);
  unwinder::UnwindRows arrived;
  REQUIRE(decode(encoded(sent), arrived).empty());
  CHECK(arrived.base == sent.base);
  CHECK(arrived.rules == sent.rules);
  CHECK(std::equal(arrived.rows.begin(), arrived.rows.end(), sent.rows.begin(), sent.rows.end(),
                   [](const auto& a, const auto& b) { return a.offset == b.offset && a.rule == b.rule; }));
  CHECK(arrived.stats.functions == sent.stats.functions);
  CHECK(arrived.stats.rows_before_merging == sent.stats.rows_before_merging);
  CHECK(arrived.stats.skipped == sent.stats.skipped);
  CHECK(arrived.stats.cut_short == sent.stats.cut_short);
  check_every_cut(unwinder::UnwindRows{});
}

TEST_CASE("unwind rows out of order, without a rule, or of an unknown kind are damage") {
  using unwinder::RuleId;
  unwinder::UnwindRows good;
  good.base = 0x1000;
  good.rules.resize(3);
  good.rules[2].cfa = unwinder::CfaKind::kSpOffset;
  good.rows = {{0, RuleId{2}}, {16, RuleId{1}}, {32, RuleId{0}}};
  unwinder::UnwindRows arrived;
  CHECK(decode(encoded(good), arrived).empty());
  check_every_cut(good);

  const auto damage_of = [&](const std::function<void(unwinder::UnwindRows&)>& change) {
    unwinder::UnwindRows bad = good;
    change(bad);
    return decode(encoded(bad), arrived);
  };
  CHECK(damage_of([](auto& bad) { bad.rows[1].offset = 0; }) == "the rows are not in order");
  CHECK(damage_of([](auto& bad) { bad.rows[1].rule = RuleId{3}; }) == "a row has no rule");
  CHECK(damage_of([](auto& bad) { bad.rows.pop_back(); }) == "the last row has no end");
  CHECK(damage_of([](auto& bad) { bad.rules[1].cfa = static_cast<unwinder::CfaKind>(77); }) ==
        "a rule is of no known kind");
  CHECK(damage_of([](auto& bad) { bad.base = ~std::uint64_t{0}; }) == "a row is out of range");
}

TEST_CASE("demangled names arrive as they were sent") {
  const std::vector<DemangledName> sent = {{"f", "f(int)"}, {"g<...>", "g<int, char>()"}, {"", ""}};
  std::vector<DemangledName> arrived;
  CHECK(decode(encoded(sent), arrived, sent.size()).empty());
  CHECK(arrived == sent);
  CHECK(decode(encoded(sent), arrived, 4) == "it does not have one name for each request");
  check_every_cut(sent, sent.size());
}

TEST_CASE("names of a container arrive as they were sent, and others are refused") {
  const ContainerNames sent{"nginx", "web-7d9", "shop"};
  ContainerNames arrived;
  CHECK(decode(encoded(sent), arrived).empty());
  CHECK(arrived == sent);
  check_every_cut(sent);
  CHECK(decode(encoded(ContainerNames{"a/b", "", ""}), arrived) == "a container's name is not safe to print");
  CHECK(decode(encoded(ContainerNames{"a", "b\n", ""}), arrived) == "a container's name is not safe to print");
  CHECK_FALSE(decode(encoded(ContainerNames{std::string(kMaxContainerNameBytes + 1, 'a'), "", ""}), arrived).empty());
}

std::optional<RuntimeModule> some_python() {
  RuntimeModule module;
  runtimes::PythonLayout layout;
  layout.version = {0x030d05f0, true};
  layout.frames.thread_states = {{runtimes::ThreadStatePlace::Kind::kThreadLocal, -24, 0},
                                 {runtimes::ThreadStatePlace::Kind::kThreadKey, 0, 0x254}};
  layout.frames.innermost = {72, 8};
  layout.frames.check = {.at = 40, .words = 11, .name = 112, .file = 104, .text = 48};
  layout.frames.interpreter = 16;
  layout.frames.generation = 17000;
  layout.objects.code_type = 0x9000;
  layout.interpreter = 0x4000;
  module.layout = layout;
  module.code_bias = 0x400000;
  module.first_code = 0x401000;
  return module;
}

runtimes::PythonLayout& python_of(std::optional<RuntimeModule>& module) {
  return std::get<runtimes::PythonLayout>(module->layout);
}

TEST_CASE("a Python arrives as it was sent, and a value that is of no known kind is damage") {
  std::optional<RuntimeModule> some = some_python();
  std::optional<RuntimeModule> arrived;
  REQUIRE(decode(encoded(some), arrived).empty());
  REQUIRE(arrived);
  CHECK(encoded(arrived) == encoded(some_python()));
  CHECK(python_of(arrived).frames.thread_states == python_of(some).frames.thread_states);
  CHECK(python_of(arrived).frames.check == python_of(some).frames.check);
  CHECK(python_of(arrived).frames.interpreter == 16);
  CHECK(python_of(arrived).frames.generation == 17000);
  check_every_cut(some_python());
  REQUIRE(decode(encoded(std::optional<RuntimeModule>()), arrived).empty());
  CHECK_FALSE(arrived);

  std::optional<RuntimeModule> bad = some_python();
  python_of(bad).frames.thread_states[0].kind = static_cast<runtimes::ThreadStatePlace::Kind>(9);
  CHECK(decode(encoded(bad), arrived) == "a thread state's place is of no known kind");
  bad = some_python();
  python_of(bad).frames.boundary_kind = static_cast<runtimes::LinkedFrames::Boundary>(9);
  CHECK(decode(encoded(bad), arrived) == "a value is of no known kind");
}

TEST_CASE("a V8 arrives as it was sent") {
  runtimes::V8Layout layout;
  layout.version = {11, 3, 244};
  layout.frames.code = 24;
  layout.objects.script_type = 167;
  std::optional<RuntimeModule> sent{RuntimeModule{layout, 0x400000, 0x401000}};
  std::optional<RuntimeModule> arrived;
  REQUIRE(decode(encoded(sent), arrived).empty());
  REQUIRE(arrived);
  CHECK(arrived->kind() == runtimes::RuntimeKind::kV8);
  CHECK(encoded(arrived) == encoded(sent));
  check_every_cut(sent);
  layout.objects.code_head_kind = static_cast<runtimes::V8CodeHead>(9);
  sent->layout = layout;
  CHECK(decode(encoded(sent), arrived) == "a value is of no known kind");
}

TEST_CASE("a HotSpot arrives as it was sent") {
  HotSpotModule module;
  module.layout.version = 17;
  std::strcpy(module.layout.release.data(), "17.0.15+6");
  module.code_bias = 0x1000;
  std::optional<HotSpotModule> arrived;
  REQUIRE(decode(encoded(std::optional(module)), arrived).empty());
  REQUIRE(arrived);
  CHECK(arrived->layout.release_text() == "17.0.15+6");
  CHECK(arrived->code_bias == 0x1000);
  module.layout.release[3] = '\n';
  CHECK(decode(encoded(std::optional(module)), arrived) == "a release is not printable");
}

TEST_CASE("the code of a JVM arrives as it was sent, and what is out of order is damage") {
  unwinder::Rule rule;
  rule.cfa = unwinder::CfaKind::kSpOffset;
  runtimes::HotSpotCode sent;
  sent.heaps = {{0x10000, 0x20000, 0x40000}, {0x50000, 0x60000, 0x60000}};
  sent.rules = {unwinder::Rule{}, rule};
  sent.rows = {{0, unwinder::RuleId{1}}, {8, unwinder::RuleId{0}}, {0, unwinder::RuleId{1}}};
  sent.blobs = {{.address = 0x10000, .code_begin = 0x10100, .code_end = 0x10200, .bytes = 0x200, .row_count = 2},
                {.address = 0x50000, .code_begin = 0x50100, .code_end = 0x50200, .first_row = 2, .row_count = 1}};
  runtimes::HotSpotCode arrived;
  REQUIRE(decode(encoded(sent), arrived).empty());
  CHECK(encoded(arrived) == encoded(sent));
  check_every_cut(sent);

  const auto damage_of = [&](auto&& change) {
    runtimes::HotSpotCode bad = sent;
    change(bad);
    return decode(encoded(bad), arrived);
  };
  CHECK(damage_of([](auto& code) { std::swap(code.heaps[0], code.heaps[1]); }) == "the heaps are not in order");
  CHECK(damage_of([](auto& code) { std::swap(code.blobs[0], code.blobs[1]); }) == "code is not in order");
  CHECK(damage_of([](auto& code) { code.blobs[0].code_end = 0x20001; }) == "code is not in order");
  CHECK(damage_of([](auto& code) { code.blobs[1].row_count = 2; }) == "code has no rows");
  CHECK(damage_of([](auto& code) { code.blobs[1].is_known = 1; }) == "code has no rows");
  CHECK(damage_of([](auto& code) { code.rows[1].offset = 0; }) == "the rows of code are not in order");
  CHECK(damage_of([](auto& code) { code.rows[1].offset = 0x100; }) == "the rows of code are not in order");
  CHECK(damage_of([](auto& code) { code.rows[0].rule.value = 2; }) == "the rows of code are not in order");
  CHECK(damage_of([](auto& code) { code.rules[1].cfa = static_cast<unwinder::CfaKind>(99); }) ==
        "a rule is of no known kind");
}

TEST_CASE("functions of a runtime arrive as they were sent, and their lines are in order") {
  std::vector<RuntimeAnswer> sent(2);
  sent[0].function = {"Server.run", "/srv/app.py", 7, {{0, 7}, {4, 9}}};
  sent[0].code_start = 0x7000;
  sent[0].code_end = 0x7100;
  sent[0].owner = 0x9000;
  sent[1].why_not = "it changed";
  std::vector<RuntimeAnswer> arrived;
  REQUIRE(decode(encoded(sent), arrived, 2).empty());
  CHECK(arrived[0].function.name == "Server.run");
  CHECK(arrived[0].function.lines == sent[0].function.lines);
  CHECK(arrived[0].code_start == 0x7000);
  CHECK(arrived[0].code_end == 0x7100);
  CHECK(arrived[0].owner == 0x9000);
  CHECK(arrived[1].why_not == "it changed");
  check_every_cut(sent, 2);
  sent[0].function.lines[1].first = 0;
  CHECK(decode(encoded(sent), arrived, 2) == "the lines are not in order");
}

HotSpotNames some_names() {
  HotSpotNames names;
  names.functions = {{"java.util.HashMap.getNode", "HashMap.java"}, {"[vtable chunks]", ""}};
  names.frames = {{0, 570}, {0, 0}, {1, 0}};
  names.places = {{{0x7f0000001000, 512, 7}, HotSpotNamedPlace::Kind::kMethod, 0, 2, 0},
                  {{0x7f0000002000, 64, 0}, HotSpotNamedPlace::Kind::kRuntime, 2, 1, 0},
                  {{}, HotSpotNamedPlace::Kind::kOther, 3, 0, 0}};
  names.is_there = {1};
  names.interpreted = {{1, 12}, {HotSpotFrame::kUnreadable, 0}};
  return names;
}

TEST_CASE("names of a HotSpot's code arrive as they were sent, or as damaged") {
  const HotSpotQuestion question{{0x7f0000001010, 0x7f0000002010, 16},
                                 {{0x7f0000003000, 256, 9}},
                                 {{0x7f0000004000, 77, 3}, {0x7f0000005000, 0, 0x7f0000006000}}};
  const auto arrives = [&](const HotSpotNames& sent, HotSpotNames& arrived) {
    const Bytes bytes = encoded(sent);
    MemorySource source(bytes);
    WireReader reader(source, bytes.size());
    return ValueCodec::decode(reader, arrived, question) && reader.finished();
  };
  HotSpotNames arrived;
  REQUIRE(arrives(some_names(), arrived));
  REQUIRE(arrived.functions.size() == 2);
  CHECK(arrived.functions[0].name == "java.util.HashMap.getNode");
  CHECK(arrived.functions[0].file == "HashMap.java");
  REQUIRE(arrived.frames.size() == 3);
  CHECK(arrived.frames[0].line == 570);
  REQUIRE(arrived.places.size() == 3);
  CHECK(arrived.places[0].blob.compile_id == 7);
  CHECK(arrived.places[2].kind == HotSpotNamedPlace::Kind::kOther);
  CHECK(arrived.is_there == std::vector<std::uint8_t>{1});
  REQUIRE(arrived.interpreted.size() == 2);
  CHECK(arrived.interpreted[0].line == 12);
  CHECK(arrived.interpreted[1].function == HotSpotFrame::kUnreadable);

  const std::vector<std::function<void(HotSpotNames&)>> changes{
      [](HotSpotNames& names) { names.functions[0].name.clear(); },
      [](HotSpotNames& names) { names.frames[0].function = 2; },
      [](HotSpotNames& names) { names.places.pop_back(); },
      [](HotSpotNames& names) { names.is_there.push_back(0); },
      [](HotSpotNames& names) { names.interpreted.pop_back(); },
      [](HotSpotNames& names) { names.interpreted[0].function = 2; },
      [](HotSpotNames& names) { names.places[0].frame_count = 4; },
      [](HotSpotNames& names) { names.places[0].first_frame = 4; },
      [](HotSpotNames& names) { names.places[0].frame_count = 0; },
      [](HotSpotNames& names) { names.places[2].frame_count = 1, names.places[2].first_frame = 0; },
      [](HotSpotNames& names) { names.places[0].kind = static_cast<HotSpotNamedPlace::Kind>(9); },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    CAPTURE(i);
    HotSpotNames bad = some_names();
    changes[i](bad);
    CHECK_FALSE(arrives(bad, arrived));
  }
}

}  // namespace
}  // namespace flamed::symbolizer
