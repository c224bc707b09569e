// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/names/runtime_functions.h"

#include <array>
#include <string>

#include "test/catch.h"

namespace flamed::symbolizer {
namespace {

TEST_CASE("a function is named with its file and line, and is the same for all processes") {
  RuntimeFunctions functions;
  const auto number = functions.enter(SymbolKind::kPython, "Server.run", "/srv/app/main.py", 1000);
  REQUIRE(number);
  CHECK(functions.enter(SymbolKind::kPython, "Server.run", "/srv/app/main.py", 1001) == number);
  CHECK(functions.enter(SymbolKind::kPython, "Server.run", "/srv/app/other.py", 1000) != number);
  const SymbolChainPtr chain = functions.name(RuntimeFunctions::frame_of(*number, 12));
  REQUIRE(chain->size() == 1);
  CHECK(chain->front().name == "Server.run");
  CHECK(chain->front().module == "main.py");
  CHECK(chain->front().file == "/srv/app/main.py");
  CHECK(chain->front().line == 12);
  CHECK(chain->front().kind == SymbolKind::kPython);
  CHECK(functions.stats().functions == 2);
}

TEST_CASE("a function without a name has the reason") {
  RuntimeFunctions functions;
  const auto number = functions.enter_unnamed(SymbolKind::kPython, "it had ended", 0);
  REQUIRE(number);
  const SymbolChainPtr chain = functions.name(RuntimeFunctions::frame_of(*number, 0));
  CHECK(chain->front().name == "[python]");
  CHECK(chain->front().reason == "it had ended");
  CHECK_FALSE(functions.name(RuntimeFunctions::frame_of(RuntimeFunctions::kNoRoom, 0))->front().reason.empty());
  CHECK_FALSE(functions.name({kRuntimeModule, ~std::uint64_t{0}})->front().reason.empty());
}

TEST_CASE("names are made safe to print") {
  RuntimeFunctions functions;
  const auto number = functions.enter(SymbolKind::kPython, "f\x1b[31m", "a\nb.py", 0);
  REQUIRE(number);
  const NamedFrame name = functions.name(RuntimeFunctions::frame_of(*number, 1))->front();
  CHECK(name.name.find('\x1b') == std::string::npos);
  CHECK(name.file.find('\n') == std::string::npos);
}

TEST_CASE("one user can't take the room of others") {
  RuntimeFunctions functions(64 << 10);
  int greedy = 0;
  while (functions.enter(SymbolKind::kPython, "f" + std::to_string(greedy), "/a.py", 1)) ++greedy;
  CHECK(greedy > 50);
  CHECK(functions.enter(SymbolKind::kPython, "main", "/b.py", 2));
  CHECK(functions.stats().bytes <= (64U << 10));
  CHECK(functions.stats().refused == 1);
}

TEST_CASE("functions that no frame has any more are forgotten, and their numbers are not used again") {
  RuntimeFunctions functions;
  const auto kept = functions.enter(SymbolKind::kPython, "kept", "/a.py", 1);
  const auto gone = functions.enter(SymbolKind::kPython, "gone", "/a.py", 1);
  REQUIRE((kept && gone));
  const std::array<Frame, 1> frames{RuntimeFunctions::frame_of(*kept, 3)};
  functions.retain(frames);
  CHECK(functions.stats().functions == 1);
  CHECK(functions.name(RuntimeFunctions::frame_of(*kept, 3))->front().name == "kept");
  CHECK(functions.name(RuntimeFunctions::frame_of(*gone, 3))->front().name == "[runtime]");
  const auto again = functions.enter(SymbolKind::kPython, "gone", "/a.py", 1);
  CHECK(again != gone);
}

}  // namespace
}  // namespace flamed::symbolizer
