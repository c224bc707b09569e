// SPDX-License-Identifier: Apache-2.0
#include "runtimes/paged_memory.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "test/catch.h"

namespace flamed::runtimes {
namespace {

constexpr std::uint64_t kStart = 64 * PagedMemory::kPieceBytes;

/// Words that are their own numbers, from kStart on.
class Words final : public RemoteMemory {
 public:
  explicit Words(std::size_t count) : words_(count) { std::iota(words_.begin(), words_.end(), 0); }

  bool read(std::uint64_t address, std::span<std::byte> to) override {
    ++reads;
    const std::span<const std::byte> all = std::as_bytes(std::span(words_));
    if (address < kStart || address - kStart > all.size() || to.size() > all.size() - (address - kStart)) return false;
    std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(address - kStart), to.size(), to.begin());
    return true;
  }

  void put(std::size_t place, std::uint64_t value) { words_.at(place) = value; }

  int reads = 0;

 private:
  std::vector<std::uint64_t> words_;
};

std::uint64_t address_of(std::size_t word) { return kStart + word * sizeof(std::uint64_t); }

constexpr std::size_t kWordsInPiece = PagedMemory::kPieceBytes / sizeof(std::uint64_t);

TEST_CASE("paged memory has each piece read once, and says what it was then") {
  Words words(2 * kWordsInPiece);
  PagedMemory memory(words);
  for (std::size_t word = 0; word < 2 * kWordsInPiece; ++word) {
    REQUIRE(read_number<std::uint64_t>(memory, address_of(word)) == word);
  }
  CHECK(words.reads == 2);
  words.put(3, 1000);
  CHECK(read_number<std::uint64_t>(memory, address_of(3)) == 3);
  CHECK(words.reads == 2);
}

TEST_CASE("a value across the ends of pieces comes from both of them") {
  Words words(2 * kWordsInPiece);
  PagedMemory memory(words);
  std::array<std::uint64_t, 4> values{};
  REQUIRE(memory.read(address_of(kWordsInPiece - 2), std::as_writable_bytes(std::span(values))));
  CHECK(values == std::array<std::uint64_t, 4>{kWordsInPiece - 2, kWordsInPiece - 1, kWordsInPiece, kWordsInPiece + 1});
  CHECK(words.reads == 2);
}

TEST_CASE("what ends within a piece is read up to there, and not beyond") {
  Words words(kWordsInPiece + 2);
  PagedMemory memory(words);
  CHECK(read_number<std::uint64_t>(memory, address_of(kWordsInPiece + 1)) == kWordsInPiece + 1);
  CHECK(read_number<std::uint64_t>(memory, address_of(0)) == 0);
  CHECK_FALSE(read_number<std::uint64_t>(memory, address_of(kWordsInPiece + 2)));
  CHECK_FALSE(read_number<std::uint64_t>(memory, kStart - sizeof(std::uint64_t)));
  CHECK_FALSE(read_number<std::uint64_t>(memory, UINT64_MAX - 3));
  std::array<std::uint64_t, 4> values{};
  CHECK_FALSE(memory.read(address_of(kWordsInPiece - 1), std::as_writable_bytes(std::span(values))));
}

TEST_CASE("a long value is read at once, as it is") {
  Words words(8 * kWordsInPiece);
  PagedMemory memory(words);
  REQUIRE(read_number<std::uint64_t>(memory, address_of(1)) == 1);
  words.put(1, 1000);
  std::vector<std::uint64_t> values(4 * kWordsInPiece);
  REQUIRE(memory.read(address_of(0), std::as_writable_bytes(std::span(values))));
  CHECK(words.reads == 2);
  CHECK(values[1] == 1000);
  CHECK(values.back() == values.size() - 1);
}

}  // namespace
}  // namespace flamed::runtimes
