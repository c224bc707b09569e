// SPDX-License-Identifier: Apache-2.0
#include "store/ring/histogram.h"

#include <map>
#include <tuple>
#include <utility>

#include "test/catch.h"

namespace flamed::store {
namespace {

std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> unpack(const Histogram& histogram) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> rows;
  histogram.for_each_thread([&](std::uint32_t thread, std::span<const std::uint8_t> bytes) {
    Histogram::for_each_stack(bytes, [&](StackRef ref, std::uint64_t count) { rows[{thread, ref.key()}] += count; });
  });
  return rows;
}

}  // namespace

TEST_CASE("a histogram unpacks to its entries, in any order and up to the largest values") {
  std::uint32_t largest = StackRef{StackId{0x7fffffff}, true}.key();
  std::vector<HistogramEntry> rows{{7, largest, 0xffffffff}, {0, 0, 1}, {7, 2, 63}, {7, 3, 64}, {7, 4, 1}, {3, 200, 2},
                                   {0x7ffffffe, 1, 1}};
  Histogram histogram(rows);
  CHECK(histogram.entry_count() == rows.size());
  auto unpacked = unpack(histogram);
  REQUIRE(unpacked.size() == rows.size());
  for (const HistogramEntry& row : rows) CHECK(unpacked[{row.thread, row.stack_key}] == row.count);
}

TEST_CASE("an empty histogram has no threads and no bytes") {
  Histogram histogram{std::vector<HistogramEntry>{}};
  CHECK(unpack(histogram).empty());
  CHECK(histogram.byte_count() == 0);
}

TEST_CASE("an entry of a busy minute takes at most four bytes") {
  // 4000 stacks that 100 threads had once or twice, with ids across a tree of 300000 nodes.
  std::vector<HistogramEntry> rows;
  std::uint64_t random = 1;
  for (std::uint32_t i = 0; i < 4000; ++i) {
    random = random * 6364136223846793005ULL + 1442695040888963407ULL;
    auto stack = static_cast<std::uint32_t>((random >> 33) % 300000);
    rows.push_back({(i % 100) * 3, StackRef{StackId{stack}, false}.key(), i % 10 == 0 ? 2U : 1U});
  }
  std::map<std::pair<std::uint32_t, std::uint32_t>, HistogramEntry> distinct;
  for (const HistogramEntry& row : rows) distinct[{row.thread, row.stack_key}] = row;
  rows.clear();
  for (const auto& [key, row] : distinct) rows.push_back(row);
  Histogram histogram(rows);
  CHECK(histogram.byte_count() <= 4 * rows.size());
}

}  // namespace flamed::store
