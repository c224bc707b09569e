// SPDX-License-Identifier: Apache-2.0
#include "daemon/unwind/unwind_publisher.h"

#include <fcntl.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/handle.h"
#include "symbolizer/process/proc_text.h"
#include "symbolizer/reader/module_rows.h"
#include "test/catch.h"
#include "test/unit/daemon/unwind/unwind_publisher_fixture.h"

namespace flamed::daemon {
namespace {

using Fixture = test::UnwindPublisherFixture;
using Found = test::FakeUnwindMaps::Found;
using Outcome = UnwindPublisher::Outcome;
using test::even_rows;
using test::kApart;
using test::kCode;
using test::kSlabBytes;
using test::kWorthIt;
using test::module_id;
using test::process_of;
using test::rows_at;
using unwinder::Rule;
using unwinder::UnwindRows;

// -- What look-ups find -----------------------------------------------------------------------------------------------

TEST_CASE("look-ups find the rules of this program and of each library that it uses") {
  const Result<std::string> text = read_file("/proc/self/maps", 4U << 20);
  REQUIRE(text.ok());
  std::uint32_t files = 0;
  std::size_t most_rows = 0;
  for (const symbolizer::MapsLine& line : symbolizer::parse_executable_maps(*text)) {
    if (line.path.empty() || line.path.front() != '/') continue;
    CAPTURE(std::string(line.path));
    const Fd file(::open(std::string(line.path).c_str(), O_RDONLY | O_CLOEXEC));
    REQUIRE(file);
    const Result<symbolizer::SourcedRows> read = symbolizer::read_module_rows(file.get());
    REQUIRE(read.ok());
    const UnwindRows* const rows = &read->rows;
    if (rows->rows.empty()) continue;
    Fixture f;
    f.publisher.publish(process_of(100, {0}));
    REQUIRE(f.publisher.publish_rows(module_id(0), *rows) == Outcome::kDone);
    CHECK(f.has_rows(100, 0, *rows, 20'000));
    CHECK(f.publisher.stats().rows == rows->rows.size());
    ++files;
    most_rows = std::max(most_rows, rows->rows.size());
  }
  CHECK(files >= 3);  // itself, libc, libstdc++
  CHECK(most_rows > 5000);
}

TEST_CASE("many files have their own rules side by side") {
  Fixture f;
  std::vector<std::uint32_t> modules;
  std::vector<UnwindRows> rows;
  for (std::uint32_t i = 0; i < 100; ++i) {
    modules.push_back(i);
    rows.push_back(even_rows(10 + i * 97, 4 + i % 30, i * 0x3000, static_cast<std::int32_t>(i)));
  }
  f.publisher.publish(process_of(100, modules));
  for (std::uint32_t i = 0; i < 100; ++i) {
    REQUIRE(f.publisher.publish_rows(module_id(i), rows[i]) == Outcome::kDone);
  }
  for (std::uint32_t i = 0; i < 100; ++i) {
    CAPTURE(i);
    CHECK(f.has_rows(100, i, rows[i], 200));
  }
}

TEST_CASE("pages without rows have the rule of the last row before them") {
  Fixture f;
  // Only pages 1, 2 and 9 have rows. Page 2's first row is at its first byte, page 9's at its last.
  const UnwindRows rows = rows_at(0, {0x10800, 0x1fff0, 0x20000, 0x20010, 0x9ffff, 0xa0000});
  f.publisher.publish(process_of(100, {0}));
  REQUIRE(f.publisher.publish_rows(module_id(0), rows) == Outcome::kDone);
  CHECK(f.has_rows(100, 0, rows));
  CHECK(f.finds(100, 0, 0x50000, rows.rules[rows.rows[3].rule.value]));
  CHECK(f.finds(100, 0, 0x9fffe, rows.rules[rows.rows[3].rule.value]));
  CHECK(f.finds(100, 0, 0x9ffff, rows.rules[rows.rows[4].rule.value]));
  CHECK(f.finds(100, 0, 0x107ff, Rule{}));
}

TEST_CASE("code that begins far into its file takes pages only from there on") {
  Fixture f;
  const UnwindRows rows = even_rows(20'000, 16, 0x12345678);
  f.publisher.publish(process_of(100, {0}));
  REQUIRE(f.publisher.publish_rows(module_id(0), rows) == Outcome::kDone);
  CHECK(f.has_rows(100, 0, rows));
  CHECK(f.found(100, 0, 0x12340000 - 1) == Found::kNoRows);
  CHECK(f.found(100, 0, 0) == Found::kNoRows);
}

TEST_CASE("a page with as many rows as a search covers is right; only one with more is unsupported") {
  for (const std::uint32_t count : {std::uint32_t{FLAMED_MAX_PAGE_ROWS}, std::uint32_t{FLAMED_MAX_PAGE_ROWS} + 1}) {
    CAPTURE(count);
    const bool dense = count > FLAMED_MAX_PAGE_ROWS;
    Fixture f;
    std::vector<std::uint32_t> offsets{0x8000};
    for (std::uint32_t i = 0; i < count; ++i) offsets.push_back(0x10000 + i * 2);
    for (const std::uint32_t offset : {0x30000U, 0x30010U, 0x30020U}) offsets.push_back(offset);
    const UnwindRows rows = rows_at(0, offsets);
    f.publisher.publish(process_of(100, {0}));
    REQUIRE(f.publisher.publish_rows(module_id(0), rows) == Outcome::kDone);
    CHECK(f.publisher.stats().dense_pages == (dense ? 1U : 0U));
    Rule unsupported;
    unsupported.cfa = unwinder::CfaKind::kUnsupported;
    for (std::uint32_t offset = 0; offset < 0x30100; offset += 0x11) {
      const bool inside = dense && offset >= 0x10000 && offset < 0x20000;
      if (f.finds(100, 0, offset, inside ? unsupported : rows.find(offset))) continue;
      CAPTURE(offset);
      FAIL("a wrong rule");
    }
    // The page after the dense one begins with the rule that holds there.
    CHECK(f.finds(100, 0, 0x20000, rows.find(0x20000)));
  }
}

TEST_CASE("a module of dense pages only is published without rows, and removed again") {
  Fixture f;
  std::vector<std::uint32_t> offsets;
  for (std::uint32_t i = 0; i < 40'000; ++i) offsets.push_back(i);
  f.publisher.publish(process_of(100, {0}));
  REQUIRE(f.publisher.publish_rows(module_id(0), rows_at(0, offsets)) == Outcome::kDone);
  CHECK(f.publisher.stats().rows == 0);
  CHECK(f.publisher.stats().modules == 1);
  CHECK(f.maps.slabs() == 0);
  f.publisher.remove({100, 5000});
  f.publisher.retain({});
  CHECK(f.publisher.stats().modules == 0);
}

TEST_CASE("a mapping of a file's middle finds the rows of that middle") {
  Fixture f;
  const UnwindRows rows = even_rows(30'000);
  symbolizer::Process process = process_of(100, {});
  process.maps->insert({kCode, kCode + 0x20000, 0x31000, module_id(0)});
  process.maps->insert({kCode + 0x50000, kCode + 0x60000, 0x2000, module_id(0)});
  process.maps->insert({0x1000, 0x2000, 0x1000, kNoModule});
  f.publisher.publish(process);
  REQUIRE(f.publisher.publish_rows(module_id(0), rows) == Outcome::kDone);
  for (std::uint64_t i = 0; i < 0x10000; i += 13) {
    if (f.finds(100, 0, i, rows.find(0x31000 + i)) && f.finds(100, 0, 0x50000 + i, rows.find(0x2000 + i))) continue;
    CAPTURE(i);
    FAIL("a wrong rule");
  }
  CHECK(f.found(100, 0, 0x20000) == Found::kNoMapping);
  CHECK(f.found(100, 0, 0x60000) == Found::kNoMapping);
  CHECK(f.maps.look_up(100, 0x1800).found == Found::kNoRows);  // memory without a file
}

TEST_CASE("a file without unwind information is walked by frame pointers, not awaited") {
  Fixture f;
  f.publisher.publish(process_of(100, {0}));
  CHECK(f.found(100, 0, 0x1000) == Found::kPending);
  CHECK(f.publisher.publish_rows(module_id(0), UnwindRows{}) == Outcome::kDone);
  CHECK(f.found(100, 0, 0x1000) == Found::kNoRows);
  CHECK(f.publisher.is_ready(module_id(0)));
  CHECK_FALSE(f.publisher.should_build(module_id(0), kWorthIt));
}

// -- Processes --------------------------------------------------------------------------------------------------------

TEST_CASE("a process's entry names its process") {
  Fixture f;
  symbolizer::Process process = process_of(100, {0, 1});
  process.exec_id = 7;
  f.publisher.publish(process);
  const flamed_process& entry = f.maps.processes.at(100);
  CHECK(entry.tgid == 100);
  CHECK(entry.start_ticks == 5000);
  CHECK(entry.exec_id == 7);
  CHECK(entry.count == 2);
  CHECK(f.publisher.has(100));
  CHECK_FALSE(f.publisher.has(101));
}

TEST_CASE("every mapping is found beside [vsyscall], which lies above user space") {
  std::vector<std::uint32_t> files;
  for (std::uint32_t newest = 0; newest < 20; ++newest) {
    files.push_back(newest);
    Fixture f;
    const symbolizer::Process process = process_of(100, files);
    process.maps->insert({0xffffffffff600000, 0xffffffffff601000, 0, kNoModule});
    f.publisher.publish(process);
    const UnwindRows rows = even_rows(100);
    CAPTURE(newest);
    for (const std::uint32_t file : files) {
      REQUIRE(f.publisher.publish_rows(module_id(file), rows) == Outcome::kDone);
      CHECK(f.has_rows(100, file, rows, 10));
    }
    CHECK(f.publisher.stats().mappings == files.size());
  }
}

TEST_CASE("processes that map the same file share its rows") {
  Fixture f;
  for (std::int32_t pid = 1; pid <= 500; ++pid) f.publisher.publish(process_of(pid, {0, 1}));
  const UnwindRows rows = even_rows(10'000);
  REQUIRE(f.publisher.publish_rows(module_id(0), rows) == Outcome::kDone);
  CHECK(f.publisher.publish_rows(module_id(0), rows) == Outcome::kDone);
  CHECK(f.publisher.stats().row_bytes == 40'000);
  CHECK(f.publisher.stats().modules == 1);
  CHECK(f.publisher.stats().mappings == 1000);
  CHECK(f.has_rows(1, 0, rows, 50));
  CHECK(f.has_rows(500, 0, rows, 50));
}

TEST_CASE("the mappings of a replaced process stay unchanged until the grace period is over") {
  Fixture f;
  f.publisher.publish(process_of(100, {0, 1, 2}));
  const flamed_process before = f.maps.processes.at(100);
  const flamed_mapping first_before = f.maps.mappings()[before.first];
  f.publisher.publish(process_of(100, {3, 4, 5}));
  CHECK(f.maps.processes.at(100).first != before.first);
  CHECK(f.publisher.stats().mappings == 6);
  f.clock.advance_ns(UnwindPublisher::kGraceNs - 1);
  f.publisher.publish(process_of(101, {6, 7, 8}));
  CHECK(f.maps.processes.at(101).first != before.first);
  const flamed_mapping& now = f.maps.mappings()[before.first];
  CHECK((now.start == first_before.start && now.end == first_before.end && now.module == first_before.module));
  f.clock.advance_ns(1);
  f.publisher.publish(process_of(102, {9, 10, 11}));
  CHECK(f.maps.processes.at(102).first == before.first);
  CHECK(f.publisher.stats().mappings == 9);
}

TEST_CASE("the mappings of an ended process are free after the grace period") {
  Fixture f;
  f.publisher.publish(process_of(100, {0, 1, 2}));
  f.publisher.remove({100, 5000});
  CHECK(f.maps.processes.empty());
  CHECK_FALSE(f.publisher.has(100));
  CHECK(f.publisher.stats().mappings == 3);
  f.reclaim();
  CHECK(f.publisher.stats().mappings == 0);
  CHECK(f.publisher.stats().processes == 0);
}

TEST_CASE("the end of a pid's earlier process does not remove the current one") {
  Fixture f;
  f.publisher.publish(process_of(100, {0}, 5000));
  f.publisher.publish(process_of(100, {1}, 5001));
  f.publisher.remove({100, 5000});
  CHECK(f.maps.processes.at(100).start_ticks == 5001);
  CHECK(f.publisher.has(100));
  f.publisher.remove({100, 5001});
  CHECK(f.maps.processes.empty());
}

TEST_CASE("a process with more mappings than a block holds, or with none, is known but not walked by tables") {
  Fixture f;
  symbolizer::Process process = process_of(100, {});
  for (std::uint64_t i = 0; i < FLAMED_BLOCK_MAPPINGS; ++i) {
    process.maps->insert({kCode + i * 0x2000, kCode + i * 0x2000 + 0x1000, 0, module_id(0)});
  }
  f.publisher.publish(process);
  CHECK(f.found(100, 0, 0) == Found::kPending);
  CHECK(f.found(100, 0, (FLAMED_BLOCK_MAPPINGS - 1) * 0x2000ULL) == Found::kPending);
  CHECK(f.publisher.stats().refused_processes == 0);
  process.maps->insert({0xffffffffff600000, 0xffffffffff601000, 0, kNoModule});
  CHECK(UnwindPublisher::has_place_for(process));

  process.maps->insert({0x1000, 0x2000, 0, module_id(0)});
  CHECK_FALSE(UnwindPublisher::has_place_for(process));
  f.publisher.publish(process);
  CHECK(f.found(100, 0, 0) == Found::kNoTables);
  CHECK(f.publisher.stats().refused_processes == 1);

  process.maps.reset();
  f.publisher.publish(process);
  CHECK(f.found(100, 0, 0) == Found::kNoTables);
  CHECK(f.publisher.stats().refused_processes == 1);
  f.reclaim();
  CHECK(f.publisher.stats().mappings == 0);
}

TEST_CASE("when all mapping blocks are full, further processes get none, and the others do not change") {
  Fixture f;
  const std::vector<std::uint32_t> modules(500, 0);
  for (std::int32_t pid = 1; pid <= 2 * FLAMED_MAPPING_BLOCKS; ++pid) f.publisher.publish(process_of(pid, modules));
  f.publisher.publish(process_of(9999, modules));
  CHECK(f.maps.processes.at(9999).count == 0);
  CHECK(f.publisher.stats().refused_processes == 1);
  CHECK(f.found(2 * FLAMED_MAPPING_BLOCKS, 499, 0) == Found::kPending);
  f.publisher.remove({1, 5000});
  f.pass_grace();
  f.publisher.publish(process_of(9999, modules));
  CHECK(f.maps.processes.at(9999).count == 500);
}

TEST_CASE("a process without room in the kernel's table leaves nothing behind") {
  Fixture f;
  f.maps.most_processes = 2;
  for (std::int32_t pid = 1; pid <= 3; ++pid) f.publisher.publish(process_of(pid, {0, 1}));
  CHECK(f.publisher.stats().refused_processes == 1);
  CHECK_FALSE(f.publisher.has(3));
  f.reclaim();
  CHECK(f.publisher.stats().mappings == 4);
  f.publisher.publish(process_of(1, {0, 1, 2}));  // published ones can still be replaced
  CHECK(f.maps.processes.at(1).count == 3);
}

TEST_CASE("after 50,000 processes have come and gone, the tables are empty and memory is what it was") {
  Fixture f;
  std::uint32_t most_mappings = 0;
  for (std::int32_t i = 0; i < 50'000; ++i) {
    const std::int32_t pid = 2 + i % 300;
    const auto unit = static_cast<std::uint32_t>(i);
    const std::uint64_t start_ticks = 5000 + unit;
    // A program of its own, and two shared ones.
    f.publisher.publish(process_of(pid, {0, 1, 10 + unit}, start_ticks));
    if (i % 3 == 0) f.publisher.publish(process_of(pid, {0, 1, 10 + unit, 5}, start_ticks));
    if (i % 10 == 0) f.publisher.publish_rows(module_id(10 + unit), even_rows(100 + unit % 1000));
    f.publisher.remove({pid, start_ticks});
    f.clock.advance_ns(kNsPerMs);
    if (i % 1000 == 999) f.publisher.retain(std::vector<ModuleId>{module_id(0), module_id(1)});
    most_mappings = std::max(most_mappings, static_cast<std::uint32_t>(f.publisher.stats().mappings));
  }
  f.publisher.retain({});
  f.reclaim();
  const UnwindPublisher::Stats stats = f.publisher.stats();
  CHECK(f.maps.processes.empty());
  CHECK(f.maps.slabs() == 0);
  CHECK(stats.processes == 0);
  CHECK(stats.mappings == 0);
  CHECK(stats.modules == 0);
  CHECK(stats.rows == 0);
  CHECK(stats.row_bytes == 0);
  CHECK(stats.slab_bytes == 0);
  CHECK(stats.refused_processes == 0);
  CHECK(stats.refused_modules == 0);
  CHECK(most_mappings < 300);
  // Every table can be allocated in full again.
  std::vector<std::uint32_t> all(FLAMED_BLOCK_MAPPINGS);
  for (std::uint32_t i = 0; i < all.size(); ++i) all[i] = i;
  f.publisher.publish(process_of(100, all));
  CHECK(f.maps.processes.at(100).first == 0);
  CHECK(f.maps.processes.at(100).block == 0);
  CHECK(f.maps.mappings()[0].module == 0);
}

// -- Asking for rows --------------------------------------------------------------------------------------------------

TEST_CASE("rows are requested at most once a second, and not for published or unknown modules") {
  Fixture f;
  CHECK_FALSE(f.publisher.should_build(module_id(0), kWorthIt));
  f.publisher.publish(process_of(100, {0}));
  CHECK(f.publisher.should_build(module_id(0), kWorthIt));
  CHECK_FALSE(f.publisher.should_build(module_id(0), kWorthIt));
  f.clock.advance_ns(kNsPerSecond - 1);
  CHECK_FALSE(f.publisher.should_build(module_id(0), kWorthIt));
  f.clock.advance_ns(1);
  CHECK(f.publisher.should_build(module_id(0), kWorthIt));
  REQUIRE(f.publisher.publish_rows(module_id(0), even_rows(10)) == Outcome::kDone);
  f.clock.advance_ns(10 * kNsPerSecond);
  CHECK_FALSE(f.publisher.should_build(module_id(0), kWorthIt));
}

TEST_CASE("a small file's rows are built at its first sample, a large one's after much CPU time in it") {
  Fixture f;
  symbolizer::Process process = process_of(100, {});
  process.maps->insert({kCode, kCode + (1U << 20), 0, module_id(0)});
  process.maps->insert({kCode + kApart, kCode + kApart + (50U << 20), 0, module_id(1)});
  f.publisher.publish(process);
  CHECK(f.publisher.should_build(module_id(0), 10 * kNsPerMs));
  // It takes 105 ms to build, and is worth it after four times that.
  int samples = 1;
  while (samples < 100 && !f.publisher.should_build(module_id(1), 10 * kNsPerMs)) ++samples;
  CHECK(samples == 42);
}

TEST_CASE("a file that could not be read is read again twice, each time later") {
  Fixture f;
  f.publisher.publish(process_of(100, {0}));
  REQUIRE(f.publisher.should_build(module_id(0), kWorthIt));
  for (const int pause : {2, 4}) {
    CHECK(f.publisher.may_try_again(module_id(0)));
    CHECK(f.found(100, 0, 0x1000) == Found::kPending);
    f.clock.advance_ns(pause * kNsPerSecond - 1);
    CHECK_FALSE(f.publisher.should_build(module_id(0), kWorthIt));
    f.clock.advance_ns(1);
    CHECK(f.publisher.should_build(module_id(0), kWorthIt));
  }
  CHECK_FALSE(f.publisher.may_try_again(module_id(0)));
}

TEST_CASE("a file without room is read again ever less often") {
  Fixture f(kSlabBytes);
  f.publisher.publish(process_of(100, {0}));
  const UnwindRows rows = even_rows(70'000, 32);
  int builds = 0;
  for (int second = 0; second < 600; ++second) {
    f.sample(100, 0);
    if (f.publisher.should_build(module_id(0), kWorthIt)) {
      ++builds;
      CHECK(f.publisher.publish_rows(module_id(0), rows) == Outcome::kNoRoom);
    }
    f.clock.advance_ns(kNsPerSecond);
  }
  CHECK(builds >= 12);
  CHECK(builds <= 16);
}

TEST_CASE("rows of files and of code made at run time come from two threads, and keep their slabs") {
  Fixture f;
  const UnwindRows of_file = even_rows(FLAMED_SLAB_ROWS * 3 / 4);
  const UnwindRows of_code = even_rows(FLAMED_SLAB_ROWS / 2, 16, 0, 1);
  f.publisher.publish(process_of(100, {0}));
  int lost = 0;
  std::thread reader([&] {
    for (int round = 0; round < 300; ++round) {
      const ModuleId id = f.publisher.publish_code(of_code);
      static_cast<void>(f.publisher.forget_code(id));
    }
  });
  for (std::uint32_t round = 0; round < 300; ++round) {
    const Outcome outcome = f.publisher.publish_rows(module_id(round), of_file);
    if (outcome != Outcome::kDone) ++lost;
    f.publisher.retain({});
    f.pass_grace();
    f.publisher.drop_empty_slabs();
  }
  reader.join();
  CHECK(lost == 0);
  CHECK_FALSE(f.maps.have_met_in_slabs());
  CHECK(f.has_rows(100, 0, of_file));
}

TEST_CASE("rows are built and dropped on one thread while processes come and go on another") {
  Fixture f(4 * kSlabBytes);
  constexpr std::uint32_t kPrograms = 40;
  std::thread builder([&] {
    for (std::uint32_t round = 0; round < 400; ++round) {
      static_cast<void>(f.publisher.publish_rows(module_id(round % kPrograms), even_rows(1000 + round * 20)));
      f.publisher.drop_empty_slabs();
      static_cast<void>(f.publisher.stats());
    }
  });
  for (std::int32_t round = 0; round < 4000; ++round) {
    const auto program = static_cast<std::uint32_t>(round) % kPrograms;
    f.publisher.publish(process_of(100 + round % 7, {program, (program + 1) % kPrograms}));
    if (round % 3 == 0) f.publisher.remove({100 + round % 7, 5000});
    if (round % 50 == 0) f.publisher.retain({});
    static_cast<void>(f.publisher.should_build(module_id(program), kWorthIt));
    f.clock.advance_ns(kNsPerMs);
  }
  builder.join();
  for (std::int32_t pid = 100; pid < 107; ++pid) f.publisher.remove({pid, 5000});
  f.publisher.retain({});
  f.reclaim();
  CHECK(f.publisher.stats().row_bytes == 0);
  CHECK(f.publisher.stats().modules == 0);
  CHECK(f.publisher.stats().mappings == 0);
  CHECK(f.maps.slabs() == 0);
}

// -- Code that a process has made -------------------------------------------------------------------------------------

symbolizer::Process with_made_code(std::int32_t pid) {
  symbolizer::Process process = process_of(pid, {0});
  process.maps->insert({kCode + kApart, kCode + 2 * kApart, kCode + kApart, kNoModule});
  return process;
}

TEST_CASE("code that a process has made has the rows of its place, and the rest of its memory none") {
  Fixture f;
  const UnwindRows rows = even_rows(100, 16, 0);
  const ModuleId id = f.publisher.publish_code(rows);
  REQUIRE(id != kNoModule);
  const auto place =
      std::make_shared<const CodePlace>(CodePlace{id,
                                                  {{kCode + kApart + 0x1000, kCode + kApart + 0x3000, 0, true},
                                                   {kCode + kApart + 0x3000, kCode + kApart + 0x8000, 0, false}}});
  f.publisher.publish(with_made_code(100), {}, place);
  const auto found = [&](std::uint64_t offset) { return f.maps.look_up(100, kCode + kApart + offset); };
  CHECK(found(0x1010).found == Found::kRule);
  CHECK(found(0x1010).rule == rows.find(0x10));
  CHECK(found(0x3000).found == Found::kPending);
  CHECK(found(0x900).found == Found::kNoRows);
  CHECK(found(0x8000).found == Found::kNoRows);
  CHECK(f.publisher.find_code(*place, kCode + kApart + 0x1010).rule == rows.find(0x10));
  CHECK(f.publisher.find_code(*place, kCode + kApart + 0x3000).is == unwinder::Code::Is::kPending);
  CHECK(f.publisher.find_code(*place, kCode + kApart + 0x900).is == unwinder::Code::Is::kWithoutRows);
}

TEST_CASE("code that has not been read yet is pending, and other processes' memory has no rows") {
  Fixture f;
  f.publisher.publish(with_made_code(100), {}, std::make_shared<const CodePlace>());
  f.publisher.publish(with_made_code(101));
  CHECK(f.maps.look_up(100, kCode + kApart + 0x1000).found == Found::kPending);
  CHECK(f.maps.look_up(101, kCode + kApart + 0x1000).found == Found::kNoRows);
}

TEST_CASE("rows that will come are pending, for the program and for late walks") {
  Fixture f;
  UnwindRows rows = even_rows(10, 16, 0);
  Rule pending;
  pending.cfa = unwinder::CfaKind::kPending;
  rows.rules.push_back(pending);
  rows.rows[4].rule = unwinder::RuleId{static_cast<std::uint16_t>(rows.rules.size() - 1)};
  const auto place = std::make_shared<const CodePlace>(
      CodePlace{f.publisher.publish_code(rows), {{kCode + kApart, kCode + kApart + 0x1000, 0, true}}});
  f.publisher.publish(with_made_code(100), {}, place);
  CHECK(f.publisher.find_code(*place, kCode + kApart + 0x40).is == unwinder::Code::Is::kPending);
  CHECK(f.publisher.find_code(*place, kCode + kApart + 0x50).is == unwinder::Code::Is::kRuled);
  CHECK(f.maps.look_up(100, kCode + kApart + 0x40).found == Found::kPending);
  CHECK(f.maps.rules()[FLAMED_PENDING_RULE].cfa == FLAMED_CFA_PENDING);
}

TEST_CASE("rows of code are freed once no process has them") {
  Fixture f;
  const ModuleId id = f.publisher.publish_code(even_rows(100, 16, 0));
  const CodePlace::Area area{kCode + kApart, kCode + 2 * kApart, 0, true};
  f.publisher.publish(with_made_code(100), {}, std::make_shared<const CodePlace>(CodePlace{id, {area}}));
  CHECK_FALSE(f.publisher.forget_code(id));
  const ModuleId other = f.publisher.publish_code(even_rows(50, 16, 0));
  f.publisher.publish(with_made_code(100), {}, std::make_shared<const CodePlace>(CodePlace{other, {area}}));
  CHECK(f.publisher.forget_code(id));
  f.reclaim();
  CHECK(f.publisher.stats().rows == 50);
}

}  // namespace
}  // namespace flamed::daemon
