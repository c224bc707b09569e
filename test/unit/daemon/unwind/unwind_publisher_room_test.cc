// SPDX-License-Identifier: Apache-2.0
//
// Which modules have rows in the tables, and which make room for others.
#include "daemon/unwind/unwind_publisher.h"

#include <cstdint>
#include <random>
#include <vector>

#include "test/catch.h"
#include "test/unit/daemon/unwind/unwind_publisher_fixture.h"

namespace flamed::daemon {
namespace {

using Fixture = test::UnwindPublisherFixture;
using Found = test::FakeUnwindMaps::Found;
using Outcome = UnwindPublisher::Outcome;
using test::even_rows;
using test::kCode;
using test::kSlabBytes;
using test::module_id;
using test::process_of;
using test::rows_at;
using unwinder::UnwindRows;

// -- Processes ahead of their samples ---------------------------------------------------------------------------------

TEST_CASE("processes that may never be sampled get a quarter of the tables") {
  Fixture f;
  std::int32_t processes = 0;
  while (f.publisher.has_room_to_spare()) f.publisher.publish(process_of(1000 + processes++, {0}));
  CHECK(processes == FLAMED_MAX_PROCESSES / 4);
  for (std::int32_t i = 0; i < processes; ++i) f.publisher.remove({1000 + i, 5000});
  f.reclaim();
  CHECK(f.publisher.has_room_to_spare());

  std::uint32_t modules = 0;
  while (f.publisher.has_room_to_spare()) {
    f.publisher.publish(process_of(
        1000 + static_cast<std::int32_t>(modules / 8),
        {modules, modules + 1, modules + 2, modules + 3, modules + 4, modules + 5, modules + 6, modules + 7}));
    modules += 8;
  }
  CHECK(modules == FLAMED_MAX_MODULES / 4);
  f.publisher.publish(process_of(1, {modules}));
  CHECK(f.found(1, 0, 0x1000) == Found::kPending);
}

// -- Modules that come and go -----------------------------------------------------------------------------------------

TEST_CASE("modules that nothing names are dropped; the vdso and those in use or named stay") {
  Fixture f;
  f.publisher.publish(process_of(100, {0, 1, 2}));
  f.publisher.publish(process_of(101, {3}));
  REQUIRE(f.publisher.publish_rows(kVdsoModule, even_rows(10)) == Outcome::kDone);
  for (std::uint32_t i = 0; i < 4; ++i) {
    REQUIRE(f.publisher.publish_rows(module_id(i), even_rows(1000)) == Outcome::kDone);
  }
  f.publisher.remove({100, 5000});
  f.publisher.retain(std::vector<ModuleId>{module_id(1)});
  CHECK_FALSE(f.publisher.is_ready(module_id(0)));
  CHECK(f.publisher.is_ready(module_id(1)));
  CHECK_FALSE(f.publisher.is_ready(module_id(2)));
  CHECK(f.publisher.is_ready(module_id(3)));
  CHECK(f.publisher.is_ready(kVdsoModule));
  CHECK(f.publisher.stats().rows == 2010);
}

TEST_CASE("a module's number and rows are reused only after the grace period") {
  Fixture f;
  f.publisher.publish(process_of(100, {0}));
  const std::uint32_t index = f.maps.look_up(100, kCode).module;
  REQUIRE(f.publisher.publish_rows(module_id(0), even_rows(1000)) == Outcome::kDone);
  const flamed_unwind_module before = f.maps.modules()[index];
  f.publisher.remove({100, 5000});
  f.publisher.retain({});
  f.publisher.publish(process_of(101, {1}));
  CHECK(f.maps.look_up(101, kCode).module != index);
  REQUIRE(f.publisher.publish_rows(module_id(1), even_rows(1000)) == Outcome::kDone);
  CHECK(f.maps.module_at(101, kCode).first_page != before.first_page);
  CHECK(f.publisher.stats().row_bytes == 8000);
  f.pass_grace();
  f.publisher.publish(process_of(102, {2}));
  CHECK(f.maps.look_up(102, kCode).module == index);
  CHECK(f.found(102, 0, 0x1100) == Found::kPending);
  CHECK(f.publisher.stats().row_bytes == 4000);
}

TEST_CASE("a full module table drops modules that are not mapped, longest unsampled first") {
  Fixture f;
  f.publisher.publish(process_of(1, {0}));
  f.publisher.publish(process_of(2, {1}));
  f.sample(2, 0);  // a compiler: not running now, but it ran a moment ago
  f.publisher.remove({2, 5000});
  for (std::uint32_t i = 0; i < 3 * FLAMED_MAX_MODULES; ++i) {
    f.publisher.publish(process_of(100, {10 + i}, i));
    f.publisher.remove({100, i});
    f.clock.advance_ns(kNsPerMs);
  }
  CHECK(f.publisher.stats().refused_modules == 0);
  CHECK(f.found(1, 0, 0) == Found::kPending);
  f.publisher.publish(process_of(2, {1}));
  CHECK(f.maps.module_at(2, kCode).last_sampled != 0);
}

TEST_CASE("code without a place in a module table full of modules in use is walked by frame pointers") {
  Fixture f;
  std::vector<std::uint32_t> modules(1000);
  std::uint32_t next = 0;
  for (std::int32_t pid = 1; pid <= 17; ++pid) {
    for (std::uint32_t& module : modules) module = next++;
    f.publisher.publish(process_of(pid, modules));
  }
  CHECK(f.found(1, 0, 0) == Found::kPending);
  CHECK(f.found(16, 0, 0) == Found::kPending);
  CHECK(f.found(17, 999, 0) == Found::kNoRows);
  CHECK(f.publisher.stats().refused_modules == 17'000 - FLAMED_MAX_MODULES);
  CHECK(f.publisher.publish_rows(module_id(16'999), even_rows(10)) == Outcome::kNoRoom);
}

TEST_CASE("slabs exist as long as they hold rows") {
  Fixture f;
  f.publisher.publish(process_of(100, {0, 1}));
  CHECK(f.maps.slabs() == 0);
  REQUIRE(f.publisher.publish_rows(module_id(0), even_rows(150'000, 32)) == Outcome::kDone);
  CHECK(f.maps.slabs() == 3);
  CHECK(f.publisher.stats().slab_bytes == 3 * kSlabBytes);
  REQUIRE(f.publisher.publish_rows(module_id(1), even_rows(10)) == Outcome::kDone);
  f.publisher.publish(process_of(100, {1}));
  f.publisher.retain({});
  CHECK(f.maps.slabs() == 3);
  f.reclaim();
  CHECK(f.maps.slabs() == 1);
  CHECK(f.publisher.stats().slab_bytes == kSlabBytes);
}

TEST_CASE("a module for which the kernel has no memory is refused and leaves nothing behind") {
  Fixture f;
  f.maps.most_slabs = 2;
  f.publisher.publish(process_of(100, {0, 1}));
  CHECK(f.publisher.publish_rows(module_id(0), even_rows(150'000, 32)) == Outcome::kNoRoom);
  CHECK(f.found(100, 0, 0x1100) == Found::kPending);
  f.publisher.drop_empty_slabs();
  CHECK(f.maps.slabs() == 0);
  CHECK(f.publisher.stats().row_bytes == 0);
  const UnwindRows small = even_rows(1000);
  CHECK(f.publisher.publish_rows(module_id(1), small) == Outcome::kDone);
  CHECK(f.has_rows(100, 1, small));
}

TEST_CASE("a file with too large a gap in its code is refused") {
  Fixture f;
  f.publisher.publish(process_of(100, {0}));
  CHECK(f.publisher.publish_rows(module_id(0), rows_at(0, {0, 0x10, 0xf0000000, 0xf0000010})) == Outcome::kNoRoom);
  CHECK(f.publisher.stats().refused_modules == 1);
  CHECK_FALSE(f.publisher.is_ready(module_id(0)));
}

// -- The budget -------------------------------------------------------------------------------------------------------

/// Eight modules of three quarters of a slab each, and room for two.
struct TightFixture : Fixture {
  static constexpr std::uint32_t kModules = 8;
  TightFixture() : Fixture(2 * kSlabBytes) {
    publisher.publish(process_of(100, {0, 1, 2, 3, 4, 5, 6, 7}));
    for (std::uint32_t i = 0; i < kModules; ++i) rows.push_back(even_rows(48'000, 24, 0, static_cast<std::int32_t>(i)));
  }
  /// Samples the module, and has its rows built as the daemon would.
  Outcome use(std::uint32_t module) {
    sample(100, module);
    Outcome outcome = publisher.publish_rows(module_id(module), rows[module]);
    while (outcome == Outcome::kWait) {
      pass_grace();
      outcome = publisher.publish_rows(module_id(module), rows[module]);
    }
    return outcome;
  }
  [[nodiscard]] std::vector<std::uint32_t> standing() const {
    std::vector<std::uint32_t> modules;
    for (std::uint32_t i = 0; i < kModules; ++i) {
      if (publisher.is_ready(module_id(i))) modules.push_back(i);
    }
    return modules;
  }
  std::vector<UnwindRows> rows;
};

TEST_CASE("in a full budget only the module sampled longest ago makes room, after the grace period") {
  TightFixture f;
  REQUIRE(f.use(0) == Outcome::kDone);
  REQUIRE(f.use(1) == Outcome::kDone);
  f.clock.advance_ns(10 * kNsPerSecond);
  f.sample(100, 0);
  f.clock.advance_ns(10 * kNsPerSecond);

  f.sample(100, 2);
  CHECK(f.publisher.publish_rows(module_id(2), f.rows[2]) == Outcome::kWait);
  CHECK(f.standing() == std::vector<std::uint32_t>{0});
  CHECK(f.found(100, 1, 0x1000) == Found::kPending);
  CHECK(f.has_rows(100, 0, f.rows[0], 100));
  // A retry that is too early evicts nothing.
  f.clock.advance_ns(UnwindPublisher::kGraceNs - 1);
  CHECK(f.publisher.publish_rows(module_id(2), f.rows[2]) == Outcome::kWait);
  CHECK(f.standing() == std::vector<std::uint32_t>{0});
  CHECK(f.publisher.stats().evictions == 1);
  f.clock.advance_ns(1);
  CHECK(f.publisher.publish_rows(module_id(2), f.rows[2]) == Outcome::kDone);
  CHECK(f.standing() == std::vector<std::uint32_t>{0, 2});
  CHECK(f.publisher.stats().evictions == 1);
  CHECK(f.has_rows(100, 0, f.rows[0]));
  CHECK(f.has_rows(100, 2, f.rows[2]));
  CHECK(f.publisher.stats().row_bytes <= f.publisher.stats().budget_bytes);
}

TEST_CASE("a file that many processes have run makes room only after all others") {
  TightFixture f;
  REQUIRE(f.use(0) == Outcome::kDone);
  REQUIRE(f.use(1) == Outcome::kDone);
  for (std::int32_t pid = 200; pid < 264; ++pid) {
    f.publisher.publish(process_of(pid, {0}));
    f.publisher.remove({pid, 5000});
  }
  f.clock.advance_ns(10 * kNsPerSecond);
  f.sample(100, 1);
  f.clock.advance_ns(10 * kNsPerSecond);
  // Sampled longer ago than the other one, but it is everybody's.
  CHECK(f.use(2) == Outcome::kDone);
  CHECK(f.standing() == std::vector<std::uint32_t>{0, 2});
  // The remaining other one is in use.
  CHECK(f.use(3) == Outcome::kDone);
  CHECK(f.standing() == std::vector<std::uint32_t>{2, 3});
}

TEST_CASE("modules in use stay, and a module without room is refused") {
  TightFixture f;
  REQUIRE(f.use(0) == Outcome::kDone);
  REQUIRE(f.use(1) == Outcome::kDone);
  f.clock.advance_ns(4 * kNsPerSecond);
  CHECK(f.use(2) == Outcome::kNoRoom);
  CHECK(f.standing() == std::vector<std::uint32_t>{0, 1});
  CHECK(f.publisher.stats().evictions == 0);
  CHECK(f.publisher.stats().refused_modules == 1);
  f.clock.advance_ns(2 * kNsPerSecond);
  f.sample(100, 0);
  CHECK(f.use(2) == Outcome::kDone);
  CHECK(f.standing() == std::vector<std::uint32_t>{0, 2});
}

TEST_CASE("no module makes room for one without samples") {
  TightFixture f;
  REQUIRE(f.use(0) == Outcome::kDone);
  REQUIRE(f.use(1) == Outcome::kDone);
  f.clock.advance_ns(kNsPerMinute);
  CHECK(f.publisher.publish_rows(module_id(2), f.rows[2]) == Outcome::kNoRoom);
  CHECK(f.standing() == std::vector<std::uint32_t>{0, 1});
  // Rows that were built in advance and never used are dropped first.
  TightFixture g;
  REQUIRE(g.publisher.publish_rows(module_id(0), g.rows[0]) == Outcome::kDone);
  REQUIRE(g.use(1) == Outcome::kDone);
  CHECK(g.use(2) == Outcome::kDone);
  CHECK(g.standing() == std::vector<std::uint32_t>{1, 2});
}

TEST_CASE("no module makes room for one that would not fit into empty tables") {
  TightFixture f;
  REQUIRE(f.use(0) == Outcome::kDone);
  REQUIRE(f.use(1) == Outcome::kDone);
  f.clock.advance_ns(kNsPerMinute);
  f.sample(100, 2);
  // The first exceeds the budget; the second does not, but its pages do not fill the two slabs without gaps.
  CHECK(f.publisher.publish_rows(module_id(2), even_rows(140'000, 24)) == Outcome::kNoRoom);
  CHECK(f.publisher.publish_rows(module_id(2), even_rows(130'500, 25)) == Outcome::kNoRoom);
  CHECK(f.standing() == std::vector<std::uint32_t>{0, 1});
}

TEST_CASE("with a budget of an eighth of the need, every module gets correct rows in turn") {
  TightFixture f;
  std::mt19937 random(9);
  for (int round = 0; round < 200; ++round) {
    f.clock.advance_ns(7 * kNsPerSecond);
    const auto module = static_cast<std::uint32_t>(random() % TightFixture::kModules);
    CAPTURE(round, module);
    REQUIRE(f.use(module) == Outcome::kDone);
    CHECK(f.standing().size() <= 2);
    CHECK(f.maps.slabs() <= 2);
    for (const std::uint32_t standing : f.standing()) CHECK(f.has_rows(100, standing, f.rows[standing], 20));
    CHECK(f.publisher.stats().row_bytes <= f.publisher.stats().budget_bytes);
    CHECK(f.publisher.stats().rows == 48'000 * f.standing().size());
  }
  CHECK(f.publisher.stats().evictions > 50);
  f.publisher.remove({100, 5000});
  f.publisher.retain({});
  f.reclaim();
  CHECK(f.publisher.stats().row_bytes == 0);
  CHECK(f.maps.slabs() == 0);
}

TEST_CASE("the vdso never makes room, since its rows would not be built again") {
  TightFixture f;
  REQUIRE(f.publisher.publish_rows(kVdsoModule, even_rows(20'000, 3)) == Outcome::kDone);
  for (std::uint32_t round = 0; round < 16; ++round) {
    f.clock.advance_ns(7 * kNsPerSecond);
    REQUIRE(f.use(round % TightFixture::kModules) == Outcome::kDone);
  }
  CHECK(f.publisher.is_ready(kVdsoModule));
}

TEST_CASE("an evicted module is reported as missing again") {
  TightFixture f;
  REQUIRE(f.use(0) == Outcome::kDone);
  REQUIRE(f.use(1) == Outcome::kDone);
  f.maps.module_at(100, kCode).noticed = 1;
  f.clock.advance_ns(kNsPerMinute);
  f.sample(100, 1);
  REQUIRE(f.use(2) == Outcome::kDone);
  CHECK(f.found(100, 0, 0x1000) == Found::kPending);
  CHECK(f.maps.module_at(100, kCode).noticed == 0);
}

}  // namespace
}  // namespace flamed::daemon
