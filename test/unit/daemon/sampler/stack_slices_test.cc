// SPDX-License-Identifier: Apache-2.0
#include "daemon/sampler/stack_slices.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "test/catch.h"
#include "test/unit/daemon/sampler/slice_ring.h"

namespace flamed::daemon {
namespace {

constexpr int kCpu = 3;
constexpr std::uint64_t kSp = 0x7ffc'0000'03f8;  // 8 bytes before the end of a block

struct Rings {
  Rings() { slices.add_ring(kCpu, ring.memory()); }
  flamed_sample put(std::uint64_t first_word = 1, std::size_t words = 4) {
    std::vector<std::uint64_t> stack;
    for (std::size_t i = 0; i < words; ++i) stack.push_back(first_word + i);
    return ring.put(0x1234, kSp, 0x5678, stack);
  }
  test::SliceRing ring;
  StackSlices slices;
};

TEST_CASE("a slice has the thread's registers and the words of its stack") {
  Rings rings;
  const std::optional<StackSlices::Slice> slice = rings.slices.take(kCpu, rings.put());
  REQUIRE(slice);
  CHECK(slice->registers()[FLAMED_PC_REGISTER] == 0x1234);
  CHECK(slice->registers()[FLAMED_SP_REGISTER] == kSp);
  CHECK(slice->registers()[FLAMED_FP_REGISTER] == 0x5678);
  CHECK(slice->read(kSp) == 1U);
  CHECK(slice->read(kSp + 8) == 2U);
  CHECK(slice->read(kSp + 24) == 4U);
  // A word that lies in two blocks.
  CHECK(slice->read(kSp + 4) == std::uint64_t{2} << 32);
  // Before the slice, after it, and partly after it.
  CHECK_FALSE(slice->read((kSp & ~std::uint64_t{FLAMED_SLICE_BLOCK_BYTES - 1}) - 8));
  CHECK_FALSE(slice->read(kSp + 32));
  CHECK_FALSE(slice->read(kSp + 25));
  CHECK_FALSE(slice->read(~std::uint64_t{0}));
}

TEST_CASE("a slice that is taken leaves the ring, which is cleared") {
  Rings rings;
  const flamed_sample sample = rings.put();
  CHECK(rings.ring.in_use() == 3);
  CHECK_FALSE(rings.ring.is_clear());
  const std::optional<StackSlices::Slice> slice = rings.slices.take(kCpu, sample);
  CHECK(slice->read(kSp) == 1U);
  CHECK(rings.ring.in_use() == 0);
  CHECK(rings.ring.is_clear());
}

TEST_CASE("there is room for some slices, and again when they have ended, in any order") {
  Rings rings;
  std::vector<StackSlices::Slice> held;
  for (std::uint64_t i = 0; i < StackSlices::kMost; ++i) held.push_back(*rings.slices.take(kCpu, rings.put(10 * i)));
  CHECK_FALSE(rings.slices.take(kCpu, rings.put()));
  CHECK(rings.ring.in_use() == 0);
  CHECK(rings.ring.is_clear());
  held.erase(held.begin() + 1);
  CHECK(held[0].read(kSp) == 0U);
  CHECK(held[1].read(kSp) == 20U);
  held.push_back(*rings.slices.take(kCpu, rings.put(7)));
  CHECK(held.back().read(kSp) == 7U);
  // Nothing of the one before is left beyond its end.
  CHECK_FALSE(held.back().read(kSp + 32));
  CHECK(held[1].read(kSp) == 20U);
}

TEST_CASE("slices of samples that never came are cleared with the next one") {
  Rings rings;
  for (int i = 0; i < 5; ++i) rings.put();
  CHECK(rings.slices.take(kCpu, rings.put(7))->read(kSp) == 7U);
  CHECK(rings.ring.in_use() == 0);
  CHECK(rings.ring.is_clear());
}

TEST_CASE("a ring is used over and over") {
  Rings rings;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const std::optional<StackSlices::Slice> slice = rings.slices.take(kCpu, rings.put(i, 1 + i % 1000));
    REQUIRE(slice);
    CHECK(slice->read(kSp) == i);
    CHECK(slice->read(kSp + 8 * (i % 1000)) == i + i % 1000);
  }
  CHECK(rings.ring.in_use() == 0);
}

TEST_CASE("a sample without a slice, of another CPU or with an impossible place has none") {
  Rings rings;
  CHECK_FALSE(rings.slices.take(kCpu, flamed_sample{}));
  const flamed_sample sample = rings.put();
  CHECK_FALSE(rings.slices.take(kCpu + 1, sample));
  flamed_sample wrong = sample;
  wrong.slice_blocks = FLAMED_SLICE_BLOCKS + 2;
  CHECK_FALSE(rings.slices.take(kCpu, wrong));
  wrong = sample;
  wrong.slice_place = 100;
  CHECK_FALSE(rings.slices.take(kCpu, wrong));
  CHECK(rings.slices.take(kCpu, sample));
  // The same one again is not in the ring any more.
  CHECK_FALSE(rings.slices.take(kCpu, sample));
}

TEST_CASE("a slice of a Go program's thread has both stacks and what leads from one to the other") {
  Rings rings;
  flamed_sample sample = rings.put();
  flamed_slice_ring& ring = rings.ring.memory();
  auto& head = reinterpret_cast<flamed_slice_head&>(ring.blocks[0]);
  constexpr std::uint64_t kPointer = 0x1000, kCurrent = 0x1100, kSystem = 0x2000, kThread = 0x3000, kGoroutine = 0x4000;
  constexpr std::uint64_t kStack = 0xc000'0004'0000;
  head.parts[1] = {kStack, 24};
  ring.blocks[ring.head].words[2] = 77;
  ++ring.head;
  ++sample.slice_blocks;
  head.go.current = kCurrent;
  head.go.system = kSystem;
  head.go.thread = kThread;
  head.go.goroutine = kGoroutine;
  head.go.system_words[1] = 5;
  head.go.thread_words[FLAMED_GO_M_WORDS - 1] = 6;
  head.go.goroutine_words[FLAMED_GO_G_WORDS - 1] = 7;

  SECTION("with a thread pointer") {
    head.go.thread_pointer = kPointer;
    const std::optional<StackSlices::Slice> slice = rings.slices.take(kCpu, sample);
    REQUIRE(slice);
    CHECK(slice->thread_pointer() == kPointer);
    CHECK(slice->read(kSp + 24) == 4U);
    CHECK(slice->read(kStack + 16) == 77U);
    CHECK_FALSE(slice->read(kStack + 24));
    CHECK(slice->read(kPointer - 8) == kCurrent);
    CHECK_FALSE(slice->read(kPointer));
    CHECK(slice->read(kSystem + 8) == 5U);
    CHECK(slice->read(kThread + 8 * (FLAMED_GO_M_WORDS - 1)) == 6U);
    CHECK_FALSE(slice->read(kThread + 8 * FLAMED_GO_M_WORDS));
    CHECK(slice->read(kGoroutine + 8 * (FLAMED_GO_G_WORDS - 1)) == 7U);
    CHECK(slice->words().size() == 3 * FLAMED_SLICE_BLOCK_BYTES / 8);
    CHECK(rings.ring.is_clear());
  }
  SECTION("without one, what leads there means nothing") {
    const std::optional<StackSlices::Slice> slice = rings.slices.take(kCpu, sample);
    REQUIRE(slice);
    CHECK_FALSE(slice->thread_pointer());
    CHECK_FALSE(slice->read(kSystem + 8));
  }
  SECTION("a part that says more than there is, is cut") {
    head.parts[0].bytes = ~std::uint64_t{0};
    const std::optional<StackSlices::Slice> slice = rings.slices.take(kCpu, sample);
    REQUIRE(slice);
    CHECK(slice->read(kSp + 24) == 4U);
    CHECK_FALSE(slice->read(head.parts[0].start + 3 * FLAMED_SLICE_BLOCK_BYTES));
    CHECK_FALSE(slice->read(kStack + 16));
  }
}

}  // namespace
}  // namespace flamed::daemon
