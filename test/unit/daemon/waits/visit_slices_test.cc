// SPDX-License-Identifier: Apache-2.0
//
// Slices of the stacks of waiting threads, from the thread that reads them to ingest.
#include "daemon/waits/visit_slices.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "test/catch.h"

namespace flamed::daemon {
namespace {

constexpr std::uint64_t kSp = 0x7ffc00000410;

flamed_wait wait_at(std::uint64_t pc) {
  flamed_wait wait{};
  wait.registers[FLAMED_SP_REGISTER] = kSp;
  wait.registers[FLAMED_PC_REGISTER] = pc;
  return wait;
}

std::vector<std::byte> stack_with(std::uint64_t word, std::size_t bytes) {
  std::vector<std::byte> stack(bytes);
  std::memcpy(stack.data() + (kSp - VisitSlices::start_of(kSp)), &word, sizeof(word));
  return stack;
}

std::optional<StackSlices::Slice> take(StackSlices& slices, const VisitSlices::Place& place) {
  flamed_sample sample{};
  sample.slice_place = place.place;
  sample.slice_blocks = place.blocks;
  return slices.take(place.ring, sample);
}

TEST_CASE("a slice comes out as it went in") {
  StackSlices slices;
  VisitSlices visits(slices);
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const auto place = visits.put(wait_at(i), stack_with(i, 1024 + i % 7000));
    REQUIRE(place);
    const auto slice = take(slices, *place);
    REQUIRE(slice);
    CHECK(slice->registers()[FLAMED_PC_REGISTER] == i);
    CHECK(slice->read(kSp) == i);
    CHECK_FALSE(slice->read(kSp + 8192));
  }
}

TEST_CASE("slices that nobody takes fill the rings, and there is room again when they are taken") {
  StackSlices slices;
  VisitSlices visits(slices);
  std::vector<VisitSlices::Place> places;
  while (const auto place = visits.put(wait_at(places.size()), stack_with(places.size(), VisitSlices::kStackBytes))) {
    places.push_back(*place);
    REQUIRE(places.size() < 1000);
  }
  CHECK(places.size() > 200);
  CHECK(visits.is_filling());
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto slice = take(slices, places[i]);
    REQUIRE(slice);
    CHECK(slice->read(kSp) == i);
  }
  CHECK_FALSE(visits.is_filling());
  CHECK(visits.put(wait_at(1), stack_with(1, 8192)));
}

}  // namespace
}  // namespace flamed::daemon
