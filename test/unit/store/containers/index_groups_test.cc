// SPDX-License-Identifier: Apache-2.0
#include "store/containers/index_groups.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "test/catch.h"

namespace flamed::store {
namespace {

std::vector<std::uint32_t> list(std::span<const std::uint32_t> indices) { return {indices.begin(), indices.end()}; }

TEST_CASE("indices are listed by group, ascending within each, and those without a group nowhere") {
  const std::vector<std::uint32_t> group_of{2, 0, IndexGroups::kNoGroup, 2, 0, 3};
  const IndexGroups groups(4, group_of.size(), [&](std::uint32_t i) { return group_of[i]; });
  CHECK(list(groups.of(0)) == std::vector<std::uint32_t>{1, 4});
  CHECK(list(groups.of(1)).empty());
  CHECK(list(groups.of(2)) == std::vector<std::uint32_t>{0, 3});
  CHECK(list(groups.of(3)) == std::vector<std::uint32_t>{5});
  CHECK(list(groups.all()) == std::vector<std::uint32_t>{1, 4, 0, 3, 5});
}

TEST_CASE("no groups and no indices give nothing") {
  CHECK(IndexGroups(0, 0, [](std::uint32_t) { return 0U; }).all().empty());
  CHECK(IndexGroups(3, 0, [](std::uint32_t) { return 0U; }).of(2).empty());
  CHECK(IndexGroups(1, 5, [](std::uint32_t) { return IndexGroups::kNoGroup; }).all().empty());
}

TEST_CASE("indices are grouped as by a stable sort") {
  std::mt19937 random(1);
  for (const std::size_t count : {1U, 10U, 1000U}) {
    const auto most = static_cast<std::uint32_t>(count / 3 + 1);
    std::vector<std::uint32_t> group_of(count);
    std::vector<std::uint32_t> sorted(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      group_of[i] = static_cast<std::uint32_t>(random()) % most;
      sorted[i] = i;
    }
    std::stable_sort(sorted.begin(), sorted.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return group_of[a] < group_of[b]; });
    CHECK(list(IndexGroups(most, count, [&](std::uint32_t i) { return group_of[i]; }).all()) == sorted);
  }
}

}  // namespace
}  // namespace flamed::store
