// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>

#include "test/catch.h"
#include "test/unit/bpf/user_memory.h"

namespace flamed::test {
namespace {

/// How often the program has read the thread's memory.
int& reads() {
  static int count = 0;
  return count;
}

long counted_read(void* to, std::size_t size, std::uint64_t address) {
  ++reads();
  return read_current_memory(to, size, address);
}

}  // namespace
}  // namespace flamed::test

#define bpf_probe_read_user(to, size, from) flamed::test::counted_read(to, size, reinterpret_cast<std::uint64_t>(from))
#include "bpf/walk/stack_window.h"

namespace flamed {
namespace {

using test::reads;
using test::UserMemory;

constexpr std::uint64_t kStack = 0x7ffc00001000;
constexpr std::size_t kStackWords = 1024;
constexpr std::uint64_t kStackEnd = kStack + kStackWords * 8;

UserMemory numbered_memory() {
  UserMemory memory(kStack, kStackWords);
  for (std::size_t i = 0; i < kStackWords; ++i) memory.put(kStack + i * 8, 0x1111 * (i + 1));
  return memory;
}

std::optional<std::uint64_t> word_by(const stack_window& window, std::uint64_t address) {
  __u64 word = 0;
  if (window_read(&window, &word, address) != 0) return std::nullopt;
  return word;
}

TEST_CASE("a word is what memory holds, whatever the window held before") {
  const UserMemory memory = numbered_memory();
  const UserMemory::Scope scope(memory);
  std::mt19937_64 random(3);
  const auto any_address = [&] {
    switch (random() % 8) {
      case 0:
        return random();
      case 1:
        return random() % 2048;  // around 0, where an empty window begins
      case 2:
        return kStackEnd - 1100 + random() % 1200;
      case 3:
        return kStack - 16 + random() % 32;
      default:
        return kStack + random() % kStackWords * 8;
    }
  };
  stack_window window{};
  for (int round = 0; round < 100'000; ++round) {
    if (round % 8 == 0) window_empty(&window);
    const std::uint64_t lower = any_address();
    const std::uint64_t other = random() % 4 == 0 ? any_address() : lower + 8 * (random() % 200);
    window_show(&window, lower, other);
    for (const std::uint64_t address : {lower, other, any_address()}) {
      const std::optional<std::uint64_t> read = word_by(window, address);
      if (read == memory.word(address)) continue;
      CAPTURE(round, lower, other, address, window.start);
      FAIL("the two differ");
    }
  }
}

TEST_CASE("one copy serves all words of a kibibyte above the first") {
  const UserMemory memory = numbered_memory();
  const UserMemory::Scope scope(memory);
  stack_window window{};
  window_empty(&window);
  reads() = 0;
  for (std::uint64_t address = kStack; address + 8 < kStack + 1024; address += 16) {
    window_show(&window, address, address + 8);
    CHECK(word_by(window, address) == memory.word(address));
    CHECK(word_by(window, address + 8) == memory.word(address + 8));
  }
  CHECK(reads() == 1);
  window_show(&window, kStack + 1016, kStack + 1024);
  CHECK(word_by(window, kStack + 1024) == memory.word(kStack + 1024));
  CHECK(reads() == 2);
}

TEST_CASE("where the stack ends within a copy, words are read one by one, without another copy") {
  const UserMemory memory = numbered_memory();
  const UserMemory::Scope scope(memory);
  stack_window window{};
  window_empty(&window);
  reads() = 0;
  for (std::uint64_t address = kStackEnd - 512; address < kStackEnd; address += 16) {
    window_show(&window, address, address + 8);
    CHECK(word_by(window, address) == memory.word(address));
    CHECK(word_by(window, address + 8) == memory.word(address + 8));
  }
  CHECK(reads() == 1 + 64);
  CHECK_FALSE(word_by(window, kStackEnd));
}

}  // namespace
}  // namespace flamed
