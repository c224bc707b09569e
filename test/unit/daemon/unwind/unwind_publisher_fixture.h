// SPDX-License-Identifier: Apache-2.0
//
// UnwindPublisherFixture: an UnwindPublisher over tables in plain memory, and rows and processes to publish.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "daemon/unwind/unwind_publisher.h"
#include "test/support/manual_clock.h"
#include "test/unit/daemon/unwind/fake_unwind_maps.h"

namespace flamed::test {

inline constexpr std::size_t kAmple = 64U << 20;
inline constexpr std::size_t kSlabBytes = FLAMED_SLAB_ROWS * sizeof(std::uint32_t);
inline constexpr std::uint64_t kPage = 1U << FLAMED_PAGE_SHIFT;
inline constexpr std::uint64_t kCode = 0x7f0000000000;
inline constexpr std::uint64_t kApart = 1ULL << 32;              ///< between mappings: more than any file here
inline constexpr std::int64_t kBeginningNs = 30 * kNsPerSecond;  ///< in which all rows are worth building
/// The CPU time after which rows for this much code are worth building.
inline constexpr auto kWorthIt = static_cast<std::int64_t>(8 * kApart);

inline ModuleId module_id(std::uint32_t number) { return ModuleId{kFirstFreeModule.value + number}; }

inline unwinder::Rule rule_of(std::int32_t cfa_offset) {
  unwinder::Rule rule;
  rule.cfa = unwinder::CfaKind::kSpOffset;
  rule.cfa_offset = cfa_offset;
  rule.ra_offset = -8;
  return rule;
}

/// Rows at `offsets` from `base` on with changing rules. Nothing is known after the last one.
inline unwinder::UnwindRows rows_at(std::uint64_t base, const std::vector<std::uint32_t>& offsets,
                                    std::int32_t salt = 0) {
  constexpr std::uint16_t kRules = 50;
  unwinder::UnwindRows rows;
  rows.base = base;
  rows.rules = {unwinder::Rule{}};
  rows.rules.push_back({});
  rows.rules.back().cfa = unwinder::CfaKind::kUnsupported;
  for (std::uint16_t i = 0; i < kRules; ++i) rows.rules.push_back(rule_of(8 * (i + 1) + 1000 * salt));
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const auto rule = static_cast<std::uint16_t>(2 + i * 7 % kRules);
    rows.rows.push_back({offsets[i], unwinder::RuleId{i + 1 == offsets.size() ? std::uint16_t{0} : rule}});
  }
  return rows;
}

/// `count` rows, `distance` bytes apart.
inline unwinder::UnwindRows even_rows(std::size_t count, std::uint32_t distance = 16, std::uint64_t base = 0x1000,
                                      std::int32_t salt = 0) {
  std::vector<std::uint32_t> offsets;
  for (std::size_t i = 0; i < count; ++i) offsets.push_back(static_cast<std::uint32_t>(i) * distance);
  return rows_at(base, offsets, salt);
}

inline std::uint64_t end_of(const unwinder::UnwindRows& rows) { return rows.base + rows.rows.back().offset; }

/// A process that has mapped all of each module, `kApart` from one another.
inline symbolizer::Process process_of(std::int32_t pid, const std::vector<std::uint32_t>& modules,
                                      std::uint64_t start_ticks = 5000) {
  symbolizer::Process process;
  process.id = {pid, start_ticks};
  process.maps = std::make_shared<symbolizer::MappingSet>();
  for (std::size_t i = 0; i < modules.size(); ++i) {
    const std::uint64_t start = kCode + i * kApart;
    process.maps->insert({start, start + kApart, 0, module_id(modules[i])});
  }
  return process;
}

struct UnwindPublisherFixture {
  explicit UnwindPublisherFixture(std::size_t budget_bytes = kAmple) : publisher(maps, budget_bytes, clock) {
    clock.advance_ns(kBeginningNs);
  }

  void pass_grace() { clock.advance_ns(daemon::UnwindPublisher::kGraceNs); }
  /// Lets the publisher free what the grace period is over for.
  void reclaim() {
    pass_grace();
    publisher.remove({-1, 0});
    publisher.retain(everything);
    publisher.drop_empty_slabs();
  }
  /// The kernel program met the process's n-th module now.
  void sample(std::int32_t pid, std::size_t n) {
    maps.module_at(static_cast<std::uint32_t>(pid), kCode + n * kApart).last_sampled =
        static_cast<std::uint32_t>(clock.monotonic().ns / kNsPerSecond);
  }
  [[nodiscard]] FakeUnwindMaps::Found found(std::int32_t pid, std::size_t n, std::uint64_t file_offset) {
    return maps.look_up(static_cast<std::uint32_t>(pid), kCode + n * kApart + file_offset).found;
  }
  [[nodiscard]] bool finds(std::int32_t pid, std::size_t n, std::uint64_t file_offset, const unwinder::Rule& expected) {
    const auto look_up = maps.look_up(static_cast<std::uint32_t>(pid), kCode + n * kApart + file_offset);
    // To a walk, missing rows and the rule for missing rows are the same.
    if (look_up.found == FakeUnwindMaps::Found::kNoRows) return expected == unwinder::Rule{};
    return look_up.found == FakeUnwindMaps::Found::kRule && look_up.rule == expected;
  }
  /// Checks that the process's n-th module has these rows, at random places and around each row.
  [[nodiscard]] bool has_rows(std::int32_t pid, std::size_t n, const unwinder::UnwindRows& rows,
                              std::size_t places = 4000) {
    std::uint64_t wrong = 0;
    const auto check = [&](std::uint64_t offset) { wrong += finds(pid, n, offset, rows.find(offset)) ? 0 : 1; };
    for (std::size_t i = 0; i < places; ++i) {
      check(random() % (end_of(rows) + 3 * kPage));
      const std::uint64_t row = rows.base + rows.rows[random() % rows.rows.size()].offset;
      check(row);
      check(row + 1);
      if (row != 0) check(row - 1);
    }
    return wrong == 0;
  }

  std::vector<ModuleId> everything = [] {
    std::vector<ModuleId> ids;
    for (std::uint32_t i = 0; i < 70'000; ++i) ids.push_back(module_id(i));
    return ids;
  }();
  std::mt19937_64 random{1};
  ManualClock clock{MonotonicTime{1000 * kNsPerSecond}, WallTime{0}};
  FakeUnwindMaps maps;
  daemon::UnwindPublisher publisher;
};

}  // namespace flamed::test
