// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/process/mapping_set.h"

#include <array>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "test/catch.h"

namespace flamed::symbolizer {
namespace {

Mapping mapping(std::uint64_t start, std::uint64_t end, std::uint64_t file_offset, std::uint32_t module) {
  return {start, end, file_offset, ModuleId{module}};
}

TEST_CASE("an empty set has nothing mapped") {
  const MappingSet set;
  CHECK(set.find(0) == nullptr);
  CHECK(set.find(~0ULL) == nullptr);
}

TEST_CASE("a mapping holds its first address and not its end") {
  MappingSet set;
  set.insert(mapping(0x1000, 0x2000, 0x500, 16));
  CHECK(set.find(0xfff) == nullptr);
  REQUIRE(set.find(0x1000) != nullptr);
  CHECK(set.find(0x1000)->frame_at(0x1000) == Frame{ModuleId{16}, 0x500});
  CHECK(set.find(0x1fff)->frame_at(0x1fff) == Frame{ModuleId{16}, 0x14ff});
  CHECK(set.find(0x2000) == nullptr);
}

TEST_CASE("an empty mapping changes nothing") {
  MappingSet set;
  set.insert(mapping(0x1000, 0x2000, 0, 16));
  set.insert(mapping(0x1800, 0x1800, 0, 17));
  set.insert(mapping(0x1900, 0x1800, 0, 17));
  CHECK(set.mappings() == std::vector<Mapping>{mapping(0x1000, 0x2000, 0, 16)});
}

TEST_CASE("a new mapping in the middle of an old one leaves both ends with their offsets") {
  MappingSet set;
  set.insert(mapping(0x1000, 0x9000, 0x10000, 16));
  set.insert(mapping(0x3000, 0x5000, 0, 17));
  CHECK(set.mappings() == std::vector<Mapping>{mapping(0x1000, 0x3000, 0x10000, 16), mapping(0x3000, 0x5000, 0, 17),
                                               mapping(0x5000, 0x9000, 0x14000, 16)});
}

TEST_CASE("a new mapping replaces all that it covers, and cuts its neighbours") {
  MappingSet set;
  set.insert(mapping(0x1000, 0x2000, 0, 16));
  set.insert(mapping(0x2000, 0x3000, 0, 17));
  set.insert(mapping(0x4000, 0x5000, 0, 18));
  set.insert(mapping(0x5000, 0x7000, 0, 19));
  set.insert(mapping(0x1800, 0x6000, 0x100, 20));
  CHECK(set.mappings() == std::vector<Mapping>{mapping(0x1000, 0x1800, 0, 16), mapping(0x1800, 0x6000, 0x100, 20),
                                               mapping(0x6000, 0x7000, 0x1000, 19)});
}

TEST_CASE("a cut mapping of memory without a file keeps its offsets, which are addresses") {
  MappingSet set;
  set.insert(mapping(0x1000, 0x9000, 0x1000, 0));
  set.insert(mapping(0x2000, 0x3000, 0, 17));
  CHECK(set.find(0x8123)->frame_at(0x8123).offset == 0x8123);
}

TEST_CASE("the top of the address space can be mapped") {
  MappingSet set;
  set.insert(mapping(~0ULL - 0xfff, ~0ULL, 0, 16));
  CHECK(set.find(~0ULL - 1) != nullptr);
}

TEST_CASE("whatever is inserted in whatever order, each address belongs to the last mapping of it") {
  constexpr std::uint64_t kSpace = 96;
  std::mt19937 random(20260101);  // NOLINT: the same numbers in every run, so that a failure can be repeated
  const auto below = [&](std::uint64_t limit) {
    return std::uniform_int_distribution<std::uint64_t>(0, limit)(random);
  };
  for (int round = 0; round < 300; ++round) {
    MappingSet set;
    std::array<std::optional<Frame>, kSpace> model{};
    for (std::uint32_t step = 0; step < 40; ++step) {
      const std::uint64_t start = below(kSpace - 1);
      const std::uint64_t end = start + below(std::min<std::uint64_t>(kSpace - start, 24));
      const Mapping inserted = mapping(start, end, below(1000), 16 + step);
      set.insert(inserted);
      for (std::uint64_t at = start; at < end; ++at) model[at] = inserted.frame_at(at);

      const std::vector<Mapping>& mappings = set.mappings();
      for (std::size_t i = 0; i < mappings.size(); ++i) {
        REQUIRE(mappings[i].start < mappings[i].end);
        if (i > 0) REQUIRE(mappings[i - 1].end <= mappings[i].start);
      }
      for (std::uint64_t at = 0; at < kSpace; ++at) {
        const Mapping* found = set.find(at);
        REQUIRE((found != nullptr) == model[at].has_value());
        if (found != nullptr) REQUIRE(found->frame_at(at) == *model[at]);
      }
    }
  }
}

TEST_CASE("a place whose file changes is contested from then on, its neighbours and a remap of the same file are not") {
  MappingSet set;
  set.insert(mapping(0x1000, 0x2000, 0x1000, 16));
  set.insert(mapping(0x2000, 0x3000, 0, 17));
  set.insert(mapping(0x1000, 0x1800, 0x1000, 16));
  CHECK_FALSE(set.find(0x1000)->contested);
  set.insert(mapping(0x1000, 0x1400, 0, 18));
  CHECK(set.find(0x1000)->contested);
  CHECK_FALSE(set.find(0x1400)->contested);
  CHECK_FALSE(set.find(0x2000)->contested);
  set.insert(mapping(0x1000, 0x1400, 0, 18));
  CHECK(set.find(0x1000)->contested);
}

TEST_CASE("a set contests places that differ from an earlier set, and those contested there") {
  MappingSet before;
  before.insert(mapping(0x1000, 0x2000, 0, 16));
  before.insert(mapping(0x3000, 0x4000, 0, 17));
  before.insert(mapping(0x5000, 0x6000, 0, 18));
  before.insert(mapping(0x5000, 0x6000, 0, 19));
  MappingSet now;
  now.insert(mapping(0x1000, 0x3000, 0, 16));
  now.insert(mapping(0x3800, 0x4000, 0, 20));
  now.insert(mapping(0x5000, 0x6000, 0, 19));
  now.insert(mapping(0x7000, 0x8000, 0, 21));
  now.contest(before);
  CHECK_FALSE(now.find(0x1000)->contested);
  CHECK(now.find(0x3800)->contested);
  CHECK(now.find(0x5000)->contested);
  // The program changes its mappings, and the earlier set had nothing there.
  CHECK(now.find(0x7000)->contested);
}

TEST_CASE("a place stays contested while nothing is mapped there, and a program without such places has none") {
  MappingSet steady;
  steady.insert(mapping(0x1000, 0x2000, 0, 16));
  MappingSet before = steady;
  before.insert(mapping(0x3000, 0x4000, 0, 17));
  before.insert(mapping(0x3000, 0x4000, 0, 18));
  MappingSet gap = steady;
  gap.contest(before);
  CHECK_FALSE(gap.find(0x1000)->contested);
  MappingSet after = steady;
  after.insert(mapping(0x3000, 0x4000, 0, 17));
  after.contest(gap);
  CHECK(after.find(0x3000)->contested);
  CHECK_FALSE(after.find(0x1000)->contested);

  MappingSet loaded = steady;
  loaded.insert(mapping(0x3000, 0x4000, 0, 17));
  loaded.contest(steady);
  CHECK_FALSE(loaded.find(0x3000)->contested);
}

TEST_CASE("a module's mappings can be moved to another module") {
  MappingSet set;
  set.insert(mapping(0x1000, 0x2000, 0, 16));
  set.insert(mapping(0x3000, 0x4000, 0x2000, 17));
  set.insert(mapping(0x5000, 0x6000, 0x4000, 16));
  set.replace_module(ModuleId{16}, ModuleId{20});
  CHECK(set.find(0x1000)->module == ModuleId{20});
  CHECK(set.find(0x3000)->module == ModuleId{17});
  CHECK(set.find(0x5000)->frame_at(0x5001) == Frame{ModuleId{20}, 0x4001});
}

}  // namespace
}  // namespace flamed::symbolizer
