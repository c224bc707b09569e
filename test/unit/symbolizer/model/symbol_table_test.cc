// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/model/symbol_table.h"

#include <map>
#include <random>
#include <string>
#include <vector>

#include "test/catch.h"

namespace flamed::symbolizer {
namespace {

constexpr std::uint64_t kNoLimit = UINT64_MAX;

struct Sym {
  std::uint64_t address;
  std::uint64_t size;
  const char* name;
  SymbolBinding binding = SymbolBinding::kGlobal;
  std::uint64_t limit = kNoLimit;
};

SymbolTable table_of(std::initializer_list<Sym> symbols) {
  SymbolTable::Builder builder;
  for (const Sym& s : symbols) builder.add(s.address, s.size, s.limit, s.binding, s.name);
  return std::move(builder).build().value();
}

/// "name+offset", or "-".
std::string at(const SymbolTable& table, std::uint64_t address) {
  const auto found = table.find(address);
  return found ? std::string(found->name) + "+" + std::to_string(found->offset) : "-";
}

TEST_CASE("an empty table finds nothing") {
  CHECK(at(SymbolTable(), 0) == "-");
  CHECK(at(table_of({}), 5) == "-");
}

TEST_CASE("a function covers exactly its bytes") {
  const SymbolTable table = table_of({{100, 10, "f"}, {120, 5, "g"}});
  CHECK(at(table, 99) == "-");
  CHECK(at(table, 100) == "f+0");
  CHECK(at(table, 109) == "f+9");
  CHECK(at(table, 110) == "-");
  CHECK(at(table, 119) == "-");
  CHECK(at(table, 120) == "g+0");
  CHECK(at(table, 125) == "-");
  CHECK(at(table, UINT64_MAX) == "-");
  CHECK(table.size() == 2);
}

TEST_CASE("a symbol without size reaches to the next symbol") {
  const SymbolTable table = table_of({{100, 0, "label"}, {120, 5, "g"}});
  CHECK(at(table, 119) == "label+19");
  CHECK(at(table, 120) == "g+0");
}

TEST_CASE("a symbol without size doesn't leave its section") {
  const SymbolTable table = table_of({{100, 0, "label", SymbolBinding::kGlobal, 110}, {120, 5, "g"}});
  CHECK(at(table, 109) == "label+9");
  CHECK(at(table, 110) == "-");
}

TEST_CASE("a label inside a function doesn't split it") {
  const SymbolTable table = table_of({{100, 50, "f"}, {120, 0, "label"}});
  CHECK(at(table, 130) == "f+30");
  CHECK(table.size() == 1);
}

TEST_CASE("a function whose claimed size leaves its section is cut") {
  const SymbolTable table = table_of({{100, UINT64_MAX, "f", SymbolBinding::kGlobal, 200}});
  CHECK(at(table, 199) == "f+99");
  CHECK(at(table, 200) == "-");
}

TEST_CASE("a symbol outside its section is ignored") {
  CHECK(table_of({{200, 1, "f", SymbolBinding::kGlobal, 200}}).empty());
}

TEST_CASE("the innermost of nested functions is found, and the outer one resumes with its own offset") {
  const SymbolTable table = table_of({{100, 100, "outer"}, {120, 40, "middle"}, {130, 10, "inner"}});
  CHECK(at(table, 119) == "outer+19");
  CHECK(at(table, 120) == "middle+0");
  CHECK(at(table, 135) == "inner+5");
  CHECK(at(table, 140) == "middle+20");
  CHECK(at(table, 160) == "outer+60");
  CHECK(at(table, 199) == "outer+99");
  CHECK(at(table, 200) == "-");
}

TEST_CASE("the last-starting of overlapping functions is found") {
  const SymbolTable table = table_of({{100, 20, "a"}, {110, 30, "b"}});
  CHECK(at(table, 109) == "a+9");
  CHECK(at(table, 110) == "b+0");
  CHECK(at(table, 139) == "b+29");
  CHECK(at(table, 140) == "-");
}

TEST_CASE("among aliases global wins over weak over local") {
  using B = SymbolBinding;
  CHECK(at(table_of({{1, 9, "aa", B::kLocal}, {1, 9, "bbb", B::kWeak}, {1, 9, "cccc", B::kGlobal}}), 1) == "cccc+0");
  CHECK(at(table_of({{1, 9, "aa", B::kLocal}, {1, 9, "bbb", B::kWeak}}), 1) == "bbb+0");
}

TEST_CASE("among equally visible aliases the one without leading underscores wins, then the shortest, then the first") {
  CHECK(at(table_of({{1, 9, "_f"}, {1, 9, "longer"}}), 1) == "longer+0");
  CHECK(at(table_of({{1, 9, "longer"}, {1, 9, "short"}}), 1) == "short+0");
  CHECK(at(table_of({{1, 9, "b"}, {1, 9, "a"}}), 1) == "a+0");
  CHECK(at(table_of({{1, 9, "a"}, {1, 9, "b"}}), 1) == "a+0");
}

TEST_CASE("an alias with a size wins over one without") {
  const SymbolTable table = table_of({{1, 0, "a"}, {1, 9, "sized", SymbolBinding::kLocal}});
  CHECK(at(table, 1) == "sized+0");
  CHECK(at(table, 10) == "-");
}

TEST_CASE("modules of more than 4 GiB keep exact addresses") {
  const std::uint64_t far = std::uint64_t{1} << 40;
  const SymbolTable table = table_of({{16, 8, "near"}, {far, 8, "far"}});
  CHECK(at(table, 20) == "near+4");
  CHECK(at(table, far + 7) == "far+7");
  CHECK(at(table, far - 1) == "-");
}

TEST_CASE("an address 4 GiB past a small table is not found in it") {
  const SymbolTable table = table_of({{100, 10, "f"}});
  CHECK(at(table, 100 + (std::uint64_t{1} << 32)) == "-");
}

TEST_CASE("functions at both ends of the address space are found") {
  const SymbolTable table = table_of({{0, 1, "first"}, {UINT64_MAX - 1, 100, "last"}});
  CHECK(at(table, 0) == "first+0");
  CHECK(at(table, UINT64_MAX - 1) == "last+0");
}

TEST_CASE("names that add up to more than the limit are an error and take no memory") {
  SymbolTable::Builder builder(100);
  const std::string name(60, 'x');
  builder.add(1, 1, kNoLimit, SymbolBinding::kGlobal, name);
  builder.add(2, 1, kNoLimit, SymbolBinding::kGlobal, name + "y");
  const Result<SymbolTable> table = std::move(builder).build();
  REQUIRE_FALSE(table.ok());
  CHECK(table.error().message().find("100 bytes") != std::string::npos);
}

TEST_CASE("a table costs little more than 8 bytes for a function besides its name") {
  SymbolTable::Builder builder;
  std::vector<std::string> names;
  names.reserve(10'000);
  for (int i = 0; i < 10'000; ++i) names.push_back("function_" + std::to_string(10'000 + i));
  for (std::size_t i = 0; i < names.size(); ++i) {
    builder.add(i * 16, 16, kNoLimit, SymbolBinding::kGlobal, names[i]);
  }
  const SymbolTable table = std::move(builder).build().value();
  CHECK(table.bytes() < 10'000 * (8 + 15) + 1000);
}

TEST_CASE("a table agrees with a linear search of all symbols") {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    struct Raw {
      std::uint64_t start;
      std::uint64_t size;
      std::string name;
    };
    std::map<std::uint64_t, Raw> symbols;  // no aliases: those have their own rules
    for (int i = 0; i < 12; ++i) {
      const std::uint64_t start = random() % 64;
      symbols[start] = {start, 1 + random() % 32, "f" + std::to_string(start)};
    }
    SymbolTable::Builder builder;
    for (const auto& [start, s] : symbols) builder.add(start, s.size, kNoLimit, SymbolBinding::kGlobal, s.name);
    const SymbolTable table = std::move(builder).build().value();
    for (std::uint64_t address = 0; address < 100; ++address) {
      std::string expected = "-";
      for (const auto& [start, s] : symbols) {
        if (address >= start && address - start < s.size) expected = s.name + "+" + std::to_string(address - start);
      }
      REQUIRE(at(table, address) == expected);
    }
  }
}

}  // namespace
}  // namespace flamed::symbolizer
