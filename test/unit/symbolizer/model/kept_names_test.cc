// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/model/kept_names.h"

#include <string>

#include "test/catch.h"

namespace flamed::symbolizer {
namespace {

SymbolChainPtr chain(const std::string& name, std::uint32_t line = 0) {
  Symbol symbol{name, "tool", SymbolKind::kNative, {}};
  symbol.line = line;
  return share({symbol});
}

TEST_CASE("exactly the kept addresses are found by their offset") {
  const KeptNames names({{30, chain("c")}, {10, chain("a")}, {20, chain("b")}});
  REQUIRE(names.find(10) != nullptr);
  CHECK(names.find(10)->front().name == "a");
  CHECK(names.find(30)->front().name == "c");
  CHECK(names.find(9) == nullptr);
  CHECK(names.find(31) == nullptr);
  CHECK(KeptNames().find(0) == nullptr);
}

TEST_CASE("equal chains are kept once") {
  const std::string long_name(1000, 'x');
  std::vector<KeptNames::Named> many;
  for (std::uint64_t i = 0; i < 100; ++i) many.push_back({i, chain(long_name, static_cast<std::uint32_t>(i / 50))});
  const KeptNames names(std::move(many));
  CHECK(names.find(0) == names.find(49));
  CHECK(names.find(0) != names.find(50));
  CHECK(names.find(50)->front().line == 1);
  CHECK(names.bytes() > 2'000);
  CHECK(names.bytes() < 10'000);
}

TEST_CASE("a function without a name keeps its start") {
  const auto unnamed = [](std::uint64_t start) {
    Symbol symbol{"[tool+0x10]", "tool", SymbolKind::kUnnamed, "no symbols"};
    symbol.offset = start;
    return share({symbol});
  };
  const KeptNames names({{0x18, unnamed(0x10)}, {0x28, unnamed(0x20)}});
  CHECK(names.find(0x18)->front().offset == 0x10);
  CHECK(names.find(0x28)->front().offset == 0x20);
}

}  // namespace
}  // namespace flamed::symbolizer
