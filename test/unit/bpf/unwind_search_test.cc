// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include "test/catch.h"

#include "bpf/walk/unwind_search.h"

namespace flamed {
namespace {

/// 1 to `max`: all small ones, and the powers of two with their neighbours.
std::vector<std::uint32_t> sizes_up_to(std::uint32_t max) {
  std::set<std::uint32_t> sizes{max};
  for (std::uint32_t size = 1; size <= std::min(max, 70U); ++size) sizes.insert(size);
  for (std::uint32_t power = 64; power <= max; power *= 2) {
    for (const std::uint32_t size : {power - 1, power, power + 1}) {
      if (size <= max) sizes.insert(size);
    }
  }
  return {sizes.begin(), sizes.end()};
}

constexpr std::uint32_t kPlaces = 1U << FLAMED_PAGE_SHIFT;

/// `count` rows with different places, the first at `lowest`; the lower half of each is its number.
std::vector<std::uint32_t> random_rows(std::mt19937& random, std::uint32_t count, std::uint32_t lowest) {
  std::set<std::uint32_t> places{lowest};
  std::uniform_int_distribution<std::uint32_t> any(lowest, kPlaces - 1);
  while (places.size() < count) places.insert(any(random));
  std::vector<std::uint32_t> rows;
  for (const std::uint32_t place : places) {
    rows.push_back((place << 16) | static_cast<std::uint32_t>(rows.size() * 2654435761U & 0xffff));
  }
  return rows;
}

std::uint32_t naive_row(const std::vector<std::uint32_t>& rows, std::uint32_t place) {
  std::uint32_t found = rows.front();
  for (const std::uint32_t row : rows) {
    if (row >> 16 <= place) found = row;
  }
  return found;
}

TEST_CASE("a page's row is found as by a linear search, for every number of rows and anywhere in a slab") {
  std::mt19937 random(1);
  // The search must not see what is around the page's rows: earlier rows look too small, later ones too large.
  for (const std::uint32_t count : sizes_up_to(FLAMED_MAX_PAGE_ROWS)) {
    const std::uint32_t lowest = count % 3 == 0 ? 0 : static_cast<std::uint32_t>(random() % 5000);
    const std::vector<std::uint32_t> rows = random_rows(random, count, lowest);
    for (const std::uint32_t first : {0U, 1U + static_cast<std::uint32_t>(random()) % 1000, FLAMED_SLAB_ROWS - count}) {
      CAPTURE(count, first);
      std::vector<std::uint32_t> slab(FLAMED_SLAB_ROWS, 0);
      std::fill(slab.begin() + first, slab.end(), 0xdeadU);
      std::copy(rows.begin(), rows.end(), slab.begin() + first);
      std::vector<std::uint32_t> places{lowest, kPlaces - 1};
      for (int i = 0; i < 40; ++i) places.push_back(lowest + static_cast<std::uint32_t>(random()) % (kPlaces - lowest));
      for (int i = 0; i < 20; ++i) {
        const std::uint32_t at = rows[random() % rows.size()] >> 16;
        for (const std::uint32_t place : {at, at - 1, at + 1}) {
          if (place >= lowest && place < kPlaces) places.push_back(place);
        }
      }
      bool all_equal = true;
      for (const std::uint32_t place : places) {
        all_equal = all_equal && find_row(slab.data(), first, count, place) == naive_row(rows, place);
      }
      CHECK(all_equal);
    }
  }
}

TEST_CASE("a row search stays within the slab whatever the page says") {
  std::mt19937 random(2);
  std::vector<std::uint32_t> slab(FLAMED_SLAB_ROWS);
  for (std::uint32_t& row : slab) row = static_cast<std::uint32_t>(random());
  // The sanitizers catch a read outside. The test checks that each answer is one of the slab's rows.
  std::vector<std::uint32_t> sorted = slab;
  std::sort(sorted.begin(), sorted.end());
  bool all_found = true;
  for (int i = 0; i < 20'000; ++i) {
    const std::uint32_t row = find_row(slab.data(), static_cast<std::uint32_t>(random()),
                                       static_cast<std::uint32_t>(random()), static_cast<std::uint32_t>(random()));
    all_found = all_found && std::binary_search(sorted.begin(), sorted.end(), row);
  }
  CHECK(all_found);
}

std::vector<flamed_mapping> random_mappings(std::mt19937_64& random, std::uint32_t count) {
  std::vector<flamed_mapping> mappings;
  std::uint64_t at = random() % (1ULL << 30);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t start = at + (random() % 4 == 0 ? 0 : (random() % (1ULL << 30)));
    const std::uint64_t end = start + 1 + random() % (1ULL << 28);
    mappings.push_back({start, end, random() % (1ULL << 30), i, 0});
    at = end;
  }
  return mappings;
}

TEST_CASE("a mapping is found as by a linear search, for every number of mappings and anywhere in a block") {
  std::mt19937_64 random(3);
  for (const std::uint32_t count : sizes_up_to(FLAMED_BLOCK_MAPPINGS)) {
    const std::vector<flamed_mapping> mappings = random_mappings(random, count);
    for (const std::uint32_t first : {0U, FLAMED_BLOCK_MAPPINGS - count, (FLAMED_BLOCK_MAPPINGS - count) / 2}) {
      CAPTURE(count, first);
      // Mappings of other processes are before and after.
      std::vector<flamed_mapping> block(FLAMED_BLOCK_MAPPINGS, flamed_mapping{0, ~0ULL, 0, 99'999, 0});
      std::copy(mappings.begin(), mappings.end(), block.begin() + first);
      bool all_equal = true;
      for (int i = 0; i < 100; ++i) {
        const flamed_mapping& near = mappings[random() % mappings.size()];
        std::uint64_t address = mappings.front().start + random() % (mappings.back().end - mappings.front().start + 1);
        if (i % 4 == 1) address = near.start;
        if (i % 4 == 2) address = near.end;
        if (i % 4 == 3) address = near.end - 1;
        std::uint32_t expected = 0;
        for (std::uint32_t at = 0; at < count; ++at) {
          if (mappings[at].start <= address) expected = at;
        }
        all_equal = all_equal && find_mapping(block.data(), first, count, address) == first + expected;
      }
      CHECK(all_equal);
    }
  }
}

TEST_CASE("an address below the first mapping finds the first one, which does not cover it") {
  std::vector<flamed_mapping> block(FLAMED_BLOCK_MAPPINGS);
  block[5] = {0x1000, 0x2000, 0, 1, 0};
  block[6] = {0x3000, 0x4000, 0, 2, 0};
  CHECK(find_mapping(block.data(), 5, 2, 0) == 5);
  CHECK(find_mapping(block.data(), 5, 2, 0xfff) == 5);
  CHECK(find_mapping(block.data(), 5, 2, (1ULL << 63) - 1) == 6);
}

TEST_CASE("a mapping search stays within the block whatever the process's entry says") {
  std::mt19937 random(4);
  const std::vector<flamed_mapping> block(FLAMED_BLOCK_MAPPINGS, flamed_mapping{});
  bool all_within = true;
  for (int i = 0; i < 20'000; ++i) {
    all_within = all_within && find_mapping(block.data(), static_cast<std::uint32_t>(random()),
                                            static_cast<std::uint32_t>(random()), random()) < FLAMED_BLOCK_MAPPINGS;
  }
  CHECK(all_within);
}

}  // namespace
}  // namespace flamed
