// SPDX-License-Identifier: Apache-2.0
//
// What is left of the history when the power goes at any moment, whatever the disk has made of what was not synced.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "archive/files/archive.h"
#include "archive/files/period_names.h"
#include "archive/files/period_reader.h"
#include "test/catch.h"
#include "test/unit/archive/recorded_disk.h"
#include "test/unit/symbolizer_processes/temporary_directory.h"

namespace flamed::archive {
namespace {

using flamed::test::TemporaryDirectory;
using test::RecordedDisk;
using Unsynced = RecordedDisk::Unsynced;

constexpr WallTime kNoon{1'767'268'800 * kNsPerSecond};

Archive::Options options() {
  Archive::Options options;
  options.boot_id = "boot";
  options.program = "flamed test";
  options.least_free = 1'000'000;
  return options;
}

Minute minute_at(std::uint32_t number) {
  Minute minute;
  minute.wall_offset_ns = kNoon.ns + number * kNsPerMinute;
  minute.end.ns = kNsPerMinute;
  minute.period_ns = 10 * kNsPerMs;
  minute.sequence = number + 1;
  return minute;
}

/// Bytes that no other minute has.
std::vector<std::byte> block_of(std::uint32_t number, std::size_t size) {
  std::mt19937 random(number * 100'000U + static_cast<std::uint32_t>(size));
  std::vector<std::byte> block(size);
  for (std::byte& byte : block) byte = static_cast<std::byte>(random());
  return block;
}

struct Blobs {
  explicit Blobs(std::uint32_t number)
      : additions(block_of(number, 300)), pairs(block_of(number, 500 + number * 700 % 5000)) {}
  std::vector<std::byte> additions, pairs;
};

/// Whether it is on the disk.
bool append(Archive& archive, std::uint32_t number, Ending ending = Ending::kOver) {
  const Minute minute = minute_at(number);
  const Blobs blobs(number);
  return archive.prepare(minute.wall_start()).ok() &&
         archive.append(minute, {blobs.additions, blobs.pairs}, ending).ok();
}

/// The numbers of the minutes in the folder. All of them are as they were written.
std::vector<std::uint32_t> minutes_in(const std::string& folder) {
  std::vector<std::uint32_t> found;
  const auto found_files = list_periods(folder);
  REQUIRE(found_files.ok());
  for (const Period& period : found_files->periods) {
    Result<PeriodReader> reader = PeriodReader::open(period_path(folder, period));
    if (!reader && reader.error().message().find("an empty database") != std::string::npos) continue;
    INFO((reader ? std::string() : reader.error().message()));
    REQUIRE(reader.ok());
    REQUIRE(reader->check().ok());
    const auto rows = reader->minutes(0);
    REQUIRE(rows.ok());
    for (const PeriodReader::MinuteRow& row : *rows) {
      const Blobs expected(row.sequence - 1);
      bool is_same = false;
      const auto compare_with = [&](const std::vector<std::byte>& bytes) {
        return [&](std::int64_t, std::span<const std::byte> block) -> Status {
          is_same = std::equal(block.begin(), block.end(), bytes.begin(), bytes.end());
          return {};
        };
      };
      REQUIRE(reader->pairs_of(row.id, compare_with(expected.pairs)).ok());
      REQUIRE(is_same);
      is_same = false;
      REQUIRE(reader->for_each_additions(row.session, row.id - 1, row.id, compare_with(expected.additions)).ok());
      REQUIRE(is_same);
      found.push_back(row.sequence - 1);
    }
  }
  return found;
}

}  // namespace

TEST_CASE("a power cut at any moment costs no minute that was reported, and the next one can be written") {
  constexpr std::uint32_t kMinutes = 6;
  std::vector<RecordedDisk::Step> steps;
  std::vector<std::size_t> reported;  // the step after which each minute was on the disk
  {
    const TemporaryDirectory folder;
    RecordedDisk disk;
    // Two runs, so that a database is also closed, its log copied into it, and written again.
    for (std::uint32_t run = 0; run < 2; ++run) {
      Archive archive(folder.path("history"), options());
      for (std::uint32_t i = 0; i < kMinutes / 2; ++i) {
        const std::uint32_t number = run * kMinutes / 2 + i;
        REQUIRE(append(archive, number, i == 1 ? Ending::kSoFar : Ending::kOver));
        reported.push_back(disk.steps().size());
        if (i == 1) REQUIRE(append(archive, number));
      }
    }
    steps = disk.steps();
  }
  REQUIRE(steps.size() > 100);

  std::mt19937 random(1);
  for (std::size_t count = 0; count <= steps.size(); ++count) {
    for (const Unsynced unsynced : {Unsynced::kDone, Unsynced::kLost, Unsynced::kAnyOfIt, Unsynced::kAnyOfIt}) {
      CAPTURE(count, static_cast<int>(unsynced));
      const TemporaryDirectory folder;
      const std::string history = folder.path("history");
      std::filesystem::create_directory(history);
      RecordedDisk::cut_power(steps, count, unsynced, random, history);
      const auto expected = static_cast<std::uint32_t>(
          std::count_if(reported.begin(), reported.end(), [&](std::size_t step) { return step <= count; }));
      Archive archive(history, options());
      REQUIRE(append(archive, kMinutes));
      CHECK(archive.stats().unusable.empty());
      std::vector<std::uint32_t> found = minutes_in(history);
      // With the one that was being written, perhaps, and the one from after the power cut.
      REQUIRE(found.size() >= expected + 1);
      REQUIRE(found.size() <= expected + 2);
      for (std::uint32_t i = 0; i + 1 < found.size(); ++i) REQUIRE(found[i] == i);
      REQUIRE(found.back() == kMinutes);
    }
  }
}

}  // namespace flamed::archive
