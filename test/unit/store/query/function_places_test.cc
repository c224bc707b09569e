// SPDX-License-Identifier: Apache-2.0
#include "store/query/function_places.h"

#include <numeric>

#include "test/catch.h"
#include "test/unit/store/store_fixture.h"

namespace flamed::store::test {
namespace {

/// Names like a TestNamer, with the line 100 + offset in "f.c".
class LineNamer final : public FrameNamer {
 public:
  std::vector<std::shared_ptr<const InlineChain>> name(std::span<const Frame> frames) override {
    auto chains = TestNamer().name(frames);
    for (std::size_t i = 0; i < frames.size(); ++i) {
      InlineChain chain = *chains[i];
      chain.back().file = "f.c";
      chain.back().line = 100 + static_cast<std::uint32_t>(frames[i].offset);
      chains[i] = std::make_shared<const InlineChain>(std::move(chain));
    }
    return chains;
  }
};

FunctionPlaces places_of(const TestStore& t, const FunctionName& function, const ProfileOptions& options = {}) {
  LineNamer namer;
  QueryBudget budget;
  return function_places(t.store.snapshot(), {t.everything()}, options, function, namer, budget).value();
}

template <typename Place>
std::uint64_t self_of(const std::vector<Place>& places) {
  return std::accumulate(places.begin(), places.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const Place& place) { return sum + place.self_samples; });
}

}  // namespace

TEST_CASE("samples of a function are told apart by address and by line, and their sums are its own") {
  TestStore t;
  t.add({code(0x30), code(0x11)});
  t.add({code(0x30), code(0x11)});
  t.add({code(0x30), code(0x15)});
  t.add({code(0x31), code(0x1f), code(0x40)});
  t.pass_minutes(2);
  t.add({code(0x11)});
  const FunctionPlaces places = places_of(t, {"f1", "lib"});
  CHECK(places.samples == 5);
  CHECK(places.function.self_samples == 4);
  CHECK(places.function.total_samples == 5);
  REQUIRE(places.addresses.size() == 3);
  CHECK(places.addresses[0].address == code(0x11));
  CHECK(places.addresses[0].self_samples == 3);
  CHECK(places.addresses[1].self_samples == 1);
  CHECK(places.addresses[2].self_samples == 0);
  CHECK(places.addresses[2].total_samples == 1);
  REQUIRE(places.lines.size() == 3);
  CHECK(places.lines[0].file == "f.c");
  CHECK(places.lines[0].line == 100 + 0x11);
  CHECK(places.lines[0].self_samples == 3);
  CHECK(self_of(places.addresses) == places.function.self_samples);
  CHECK(self_of(places.lines) == places.function.self_samples);
}

TEST_CASE("a place that is in a stack several times has the sample once") {
  TestStore t;
  t.add({code(0x12), code(0x12), code(0x13), code(0x12), code(0x18)});
  const FunctionPlaces places = places_of(t, {"f1"});
  CHECK(places.function.self_samples == 1);
  CHECK(places.function.total_samples == 1);
  REQUIRE(places.addresses.size() == 3);
  for (const AddressPlace& place : places.addresses) CHECK(place.total_samples == 1);
  for (const LinePlace& place : places.lines) CHECK(place.total_samples == 1);
}

TEST_CASE("a function that was inlined has its own line, and the function around it") {
  TestStore t;
  t.add({Frame{ModuleId{17}, 0x25}});
  const FunctionPlaces inner = places_of(t, {"f2"});
  REQUIRE(inner.addresses.size() == 1);
  CHECK(inner.addresses[0].around == "outer");
  CHECK(inner.addresses[0].line == 100 + 0x25);
  CHECK(inner.addresses[0].self_samples == 1);
  const FunctionPlaces outer = places_of(t, {"outer"});
  REQUIRE(outer.addresses.size() == 1);
  CHECK(outer.addresses[0].around.empty());
  CHECK(outer.addresses[0].self_samples == 0);
  CHECK(outer.function.total_samples == 1);
  ProfileOptions without_inlines;
  without_inlines.inlines = false;
  CHECK(places_of(t, {"outer"}, without_inlines).function.self_samples == 1);
}

TEST_CASE("on request the answer has the source files, with the processes that ran their code, the busiest first") {
  TestStore t;
  constexpr ProcessId kOther{101, 5};
  t.add({code(0x11)});
  for (int i = 0; i < 3; ++i) {
    const std::vector<Frame> stack{code(0x30), code(0x12), code(0x13)};
    t.store.add({t.clock.monotonic(), kOther, 101, "other", stack, {}});
  }
  CHECK(places_of(t, {"f1"}).files.empty());
  const FunctionPlaces places = places_of(t, {"f1", {}, true});
  REQUIRE(places.files.size() == 1);
  const FilePlace& file = places.files.front();
  CHECK(file.module == places.lines.front().module);
  CHECK(file.file == "f.c");
  REQUIRE(file.uses.size() == 2);
  CHECK(file.uses[0].process == kOther);
  CHECK(file.uses[1].process == kProcess);
  CHECK(file.uses[0].code == code(0x11).module);
  CHECK(places_of(t, {"none", {}, true}).files.empty());
}

TEST_CASE("a function of another module or name has no places, and the answer says so") {
  TestStore t;
  t.add({code(0x11)});
  for (const FunctionName& name : {FunctionName{"f1", "other"}, FunctionName{"f", {}}}) {
    const FunctionPlaces places = places_of(t, name);
    CHECK(places.addresses.empty());
    CHECK(places.lines.empty());
    CHECK_FALSE(places.frame);
    REQUIRE_FALSE(places.warnings.empty());
    CHECK(places.warnings.back().find("has this function") != std::string::npos);
  }
}

TEST_CASE("for one user the addresses of kernel functions are one place") {
  TestStore t;
  const Frame first{kKernelModule, 0x10};
  const Frame second{kKernelModule, 0x14};
  for (const Frame& frame : {first, second}) {
    StackSample sample{t.clock.monotonic(), kProcess, 100, "worker", std::span(&frame, 1), {}};
    sample.owner = 1000;
    t.store.add(sample);
  }
  LineNamer namer;
  QueryBudget budget;
  const auto places = function_places(seen_by(t.store.snapshot(), 1000), {t.everything()}, {}, {"f1"}, namer, budget);
  REQUIRE(places);
  REQUIRE(places->addresses.size() == 1);
  CHECK(places->addresses[0].address.offset == 0);
  CHECK(places->addresses[0].self_samples == 2);
}

}  // namespace flamed::store::test
