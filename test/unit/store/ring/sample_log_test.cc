// SPDX-License-Identifier: Apache-2.0
#include "store/ring/sample_log.h"

#include <numeric>
#include <random>
#include <tuple>

#include "test/catch.h"

namespace flamed::store::test {
namespace {

using Row = std::tuple<std::int64_t, std::uint32_t, std::uint16_t>;

template <typename Log>
std::vector<Row> rows(const Log& log, std::int64_t from, std::int64_t to) {
  std::vector<Row> found;
  log.for_each({from}, {to},
               [&](const LoggedSample& sample) { found.emplace_back(sample.time.ns, sample.entry, sample.cpu); });
  return found;
}

/// The entries that for_each_entry() visits.
template <typename Log>
std::vector<std::uint32_t> entries(const Log& log, std::int64_t from, std::int64_t to) {
  std::vector<std::uint32_t> found;
  log.for_each_entry({from}, {to}, [&](std::uint32_t entry) { found.push_back(entry); });
  return found;
}

std::vector<std::uint32_t> entries_of(const std::vector<Row>& rows) {
  std::vector<std::uint32_t> found;
  for (const Row& row : rows) found.push_back(std::get<1>(row));
  return found;
}

constexpr std::int64_t kForever = std::int64_t{1} << 60;

}  // namespace

TEST_CASE("a log that is moved in time has the same samples, so much earlier") {
  std::vector<LoggedSample> samples;
  for (std::uint32_t i = 0; i < 2000; ++i) samples.push_back({{1'000'000 + i * 1000LL}, i % 7, 1});
  const SampleLog log(samples);
  const SampleLog moved = log.earlier_by(900'000);
  CHECK(moved.first().ns == 100'000);
  CHECK(entries(moved, 100'000, 600'000) == entries(log, 1'000'000, 1'500'000));
  CHECK(rows(moved, 0, kForever).size() == samples.size());
}

TEST_CASE("a sealed log returns its samples in the order of time, for any window") {
  std::mt19937_64 random(7);
  for (std::uint64_t cpus : {1U, 2U, 64U, 8192U}) {
    for (std::size_t count : {0U, 1U, 2U, 3000U, 10'000U}) {
      Budget budget(64U << 20);
      OpenSampleLog open(budget);
      std::vector<Row> all;
      std::int64_t time = -5'000'000'000;
      for (std::size_t i = 0; i < count; ++i) {
        time += static_cast<std::int64_t>(random() % 3 == 0 ? 0 : random() % 2'000'000);
        // One in ten comes up to a second late.
        const std::int64_t at = random() % 10 == 0 ? time - static_cast<std::int64_t>(random() % 1'000'000'000) : time;
        const auto entry = static_cast<std::uint32_t>(random() % 5000);
        const auto cpu = static_cast<std::uint16_t>(random() % cpus);
        open.append({{at}, entry, cpu});
        all.emplace_back(at, entry, cpu);
      }
      std::vector<std::uint32_t> identity(5000);
      std::iota(identity.begin(), identity.end(), 0U);
      const std::shared_ptr<const SampleLog> sealed = open.seal(identity);
      const OpenSampleLog::View view = open.view();
      CHECK(rows(view, -kForever, kForever) == all);
      std::stable_sort(all.begin(), all.end(),
                       [](const Row& a, const Row& b) { return std::get<0>(a) < std::get<0>(b); });
      REQUIRE(sealed);
      CHECK(sealed->count() == count);
      CHECK(rows(*sealed, -kForever, kForever) == all);
      for (int i = 0; i < 20 && count != 0; ++i) {
        std::int64_t from = std::get<0>(all[random() % count]);
        std::int64_t to = std::get<0>(all[random() % count]) + static_cast<std::int64_t>(random() % 2);
        std::vector<Row> inside;
        for (const Row& row : all) {
          if (std::get<0>(row) >= from && std::get<0>(row) < to) inside.push_back(row);
        }
        CHECK(rows(*sealed, from, to) == inside);
        CHECK(entries(*sealed, from, to) == entries_of(inside));
        CHECK(rows(view, from, to).size() == inside.size());
        CHECK(entries(view, from, to) == entries_of(rows(view, from, to)));
      }
    }
  }
}

TEST_CASE("a sealed log holds samples that are hours apart, and the largest entries and CPU numbers") {
  const std::vector<Row> all{
      {0, 0, 0}, {1, 0xffff'ffffU, 0xffff}, {86'400'000'000'000, 7, 3}, {86'400'000'000'000, 0, 1}};
  std::vector<LoggedSample> samples;
  for (const auto& [time, entry, cpu] : all) samples.push_back({{time}, entry, cpu});
  CHECK(rows(SampleLog(samples), -kForever, kForever) == all);
}

TEST_CASE("a sealed log of a host with 8 CPUs takes five bytes a sample") {
  Budget budget(64U << 20);
  OpenSampleLog open(budget);
  std::mt19937_64 random(1);
  std::exponential_distribution<double> gap(8 * 99.0);
  double seconds = 0;
  constexpr std::uint32_t kCount = 8 * 99 * 60;
  for (std::uint32_t i = 0; i < kCount; ++i) {
    seconds += gap(random);
    open.append({{static_cast<std::int64_t>(seconds * 1e9)}, i % 40'000, static_cast<std::uint16_t>(random() % 8)});
  }
  std::vector<std::uint32_t> shuffled(40'000);
  std::iota(shuffled.begin(), shuffled.end(), 0U);
  std::shuffle(shuffled.begin(), shuffled.end(), random);
  CHECK(open.seal(shuffled)->bytes() * 10 < kCount * 56);
}

TEST_CASE("a log without room ends and frees its memory") {
  Budget budget(40'000);
  OpenSampleLog log(budget);
  for (std::uint32_t i = 0; i < 2 * OpenSampleLog::kPerChunk; ++i) log.append({{i}, i, 0});
  CHECK(log.view().whole());
  CHECK(budget.used_bytes() == log.bytes());
  CHECK(log.needs_room());
  const OpenSampleLog::View before = log.view();
  log.append({{9999}, 0, 0});
  CHECK_FALSE(log.view().whole());
  CHECK(log.view().count() == 0);
  CHECK(log.seal({}) == nullptr);
  CHECK(budget.used_bytes() == 0);
  CHECK(rows(before, 0, kForever).size() == 2 * OpenSampleLog::kPerChunk);
}

TEST_CASE("a view of an open log does not change when the log goes on") {
  Budget budget(1U << 20);
  OpenSampleLog log(budget);
  log.append({{1}, 1, 1});
  const OpenSampleLog::View before = log.view();
  log.append({{2}, 2, 2});
  CHECK(rows(before, 0, kForever) == std::vector<Row>{{1, 1, 1}});
  CHECK(before.last().ns == 1);
}

}  // namespace flamed::store::test
