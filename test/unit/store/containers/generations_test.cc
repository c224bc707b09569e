// SPDX-License-Identifier: Apache-2.0
#include "store/containers/generations.h"

#include <cstdint>

#include "test/catch.h"

namespace flamed::store {

TEST_CASE("while slots are few each is a generation") {
  const Generations generations(10, 30);
  for (std::uint32_t sequence = 10; sequence <= 30; ++sequence) {
    const Generations::Stamp stamp = generations.of(sequence);
    CHECK_FALSE(generations.is_before(stamp, sequence));
    CHECK(generations.is_before(stamp, sequence + 1));
  }
}

TEST_CASE("a stack that was never named is older than any slot") {
  CHECK(Generations(0, 0).is_before(Generations::kNever, 0));
}

TEST_CASE("stamps of many slots are never too old, and at most a 96th of the slots too young") {
  for (const std::uint32_t slots : {191U, 192U, 1440U, 45'000U, 3'000'000U}) {
    const std::uint32_t oldest = 7777;
    const std::uint32_t newest = oldest + slots;
    const Generations generations(oldest, newest);
    REQUIRE(generations.reaches(newest));
    for (std::uint32_t sequence = oldest; sequence <= newest; sequence += slots / 150) {
      const Generations::Stamp stamp = generations.of(sequence);
      REQUIRE(stamp != Generations::kNever);
      REQUIRE_FALSE(generations.is_before(stamp, sequence));
      REQUIRE(generations.is_before(stamp, sequence + slots / 96 + 1));
    }
  }
}

TEST_CASE("the youngest of many slots have stamps of their own") {
  const Generations generations(100, 5000);
  for (std::uint32_t sequence = 5000 - 31; sequence <= 5000; ++sequence) {
    CHECK(generations.is_before(generations.of(sequence - 1), sequence));
    CHECK_FALSE(generations.is_before(generations.of(sequence), sequence));
  }
}

TEST_CASE("a stamp that is carried over many times does not become ever younger") {
  constexpr std::uint32_t kSlot = 1000;
  std::uint32_t oldest = 10;
  std::uint32_t newest = oldest + 1440;
  Generations generations(oldest, newest);
  Generations::Stamp stamp = generations.of(kSlot);
  while (oldest < kSlot + 40 && !generations.is_before(stamp, ++oldest)) {
    const Generations next(oldest, ++newest);
    stamp = next.of(generations.last_of(stamp));
    generations = next;
  }
  CHECK(oldest > kSlot);
  CHECK(oldest <= kSlot + 1440 / 96 + 1);
}

TEST_CASE("generations say when a slot is too young for a stamp") {
  const Generations generations(5, 5);
  std::uint32_t sequence = 5;
  while (generations.reaches(sequence)) ++sequence;
  CHECK(sequence == 5 + 255);
  CHECK(Generations(5, sequence).reaches(sequence));
}

}  // namespace flamed::store
