// SPDX-License-Identifier: Apache-2.0
//
// Which processes a CPU's known sites belong to: each process keeps its own until enough others have been sampled.
#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include "bpf/walk/site_owners.h"
#include "test/catch.h"

namespace flamed {
namespace {

TEST_CASE("sixteen processes that take turns keep their sites, whatever their pids") {
  std::mt19937 random(1);
  for (int round = 0; round < 100; ++round) {
    site_owners owners{};
    std::set<std::uint32_t> tgids;
    while (tgids.size() < FLAMED_SITE_PROCESSES) tgids.insert(1 + static_cast<std::uint32_t>(random()));
    std::uint64_t now = 0;
    std::vector<std::uint32_t> first;
    for (const std::uint32_t tgid : tgids) first.push_back(own_sites(&owners, tgid, ++now));
    CHECK(std::set<std::uint32_t>(first.begin(), first.end()).size() == FLAMED_SITE_PROCESSES);
    std::vector<std::uint32_t> again;
    for (const std::uint32_t tgid : tgids) again.push_back(own_sites(&owners, tgid, ++now));
    CHECK(again == first);
  }
}

TEST_CASE("a new process takes the sites of the one that was sampled longest ago") {
  site_owners owners{};
  std::mt19937 random(2);
  std::vector<std::uint32_t> by_age;  // the oldest first
  for (std::uint64_t now = 1; now < 20'000; ++now) {
    const std::uint32_t tgid = 1 + static_cast<std::uint32_t>(random() % 20);
    const bool is_known = std::find(by_age.begin(), by_age.end(), tgid) != by_age.end();
    const site_owners before = owners;
    const std::uint32_t number = own_sites(&owners, tgid, now);
    const auto was = static_cast<std::uint32_t>(before.words[number]);
    if (is_known) {
      if (was != tgid) FAIL("its own ones were not found at " << now);
      by_age.erase(std::find(by_age.begin(), by_age.end(), tgid));
    } else if (by_age.size() == FLAMED_SITE_PROCESSES) {
      if (was != by_age.front()) FAIL("another one had to give way at " << now);
      by_age.erase(by_age.begin());
    } else if (was != 0) {
      FAIL("some were free at " << now);
    }
    by_age.push_back(tgid);
  }
  CHECK(by_age.size() == FLAMED_SITE_PROCESSES);
}

TEST_CASE("processes keep their sites also when the clock wraps to 0") {
  site_owners owners{};
  std::uint64_t now = 0x7fffffff - 20;
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t tgid = 1; tgid <= FLAMED_SITE_PROCESSES; ++tgid) {
    numbers.push_back(own_sites(&owners, tgid, ++now));
  }
  for (int round = 0; round < 5; ++round) {
    for (std::uint32_t tgid = 1; tgid <= FLAMED_SITE_PROCESSES; ++tgid) {
      CHECK(own_sites(&owners, tgid, ++now) == numbers[tgid - 1]);
    }
  }
}

}  // namespace
}  // namespace flamed
