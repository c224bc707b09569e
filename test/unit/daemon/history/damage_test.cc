// SPDX-License-Identifier: Apache-2.0
//
// Answers from a history that was damaged in any way: what is wrong is missing, and what is there is right.
#include <sqlite3.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "archive/codec/stretch.h"
#include "archive/codec/sum.h"
#include "archive/files/sqlite.h"
#include "archive/reading/check.h"
#include "archive/reading/past.h"
#include "daemon/history/history_namer.h"
#include "store/query/query.h"
#include "store/query/usage.h"
#include "test/catch.h"
#include "test/unit/daemon/history/history_answers.h"
#include "test/unit/daemon/history/history_fixture.h"
#include "test/unit/symbolizer_processes/temporary_directory.h"

namespace flamed::daemon {
namespace {

using flamed::test::TemporaryDirectory;
using store::Selection;
using store::WallWindow;
using store::test::code;
using store::test::kNoon;
using store::test::TestNamer;
using store::test::TestStore;
using test::add;
using test::end;
using test::kAlice;
using test::kShell;
using test::sample;
using test::TestHistory;

constexpr std::size_t kPageBytes = 2048;
constexpr int kMinutesOfRun = 4;

std::string bytes_of(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}
void put_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

void change(const std::string& file, const std::string& sql) {
  sqlite3* raw = nullptr;
  REQUIRE(sqlite3_open_v2(file.c_str(), &raw, SQLITE_OPEN_READWRITE, nullptr) == SQLITE_OK);
  const archive::Connection connection(raw);
  const Status changed = archive::run(raw, sql.c_str());
  INFO((changed ? std::string() : changed.error().message()));
  REQUIRE(changed.ok());
}

/// What a minute is answered.
struct Answer {
  std::uint64_t samples = 0;
  std::multiset<std::string> stacks;
  bool is_warned = false;
};

/// Two runs of some minutes each, in one database.
class TwoRuns {
 public:
  TwoRuns() {
    {
      TestHistory first(test_, folder_.path("history"));
      for (int minute = 0; minute < kMinutesOfRun; ++minute) {
        for (std::uint64_t i = 0; i < 200; ++i) {
          add(test_, kShell, 100, kAlice,
              {code(0x10), code(0x10'000 + i * 0x1230 * (static_cast<std::uint64_t>(minute) + 1))});
        }
        sample(test_, 1);
      }
      for (const WallTime start : minutes()) truth_.push_back(answer(test_.store.snapshot(), start, names_));
      end(test_, first);
    }
    // Other stacks, with the same numbers in another dictionary.
    later_.clock.advance_ns(test_.clock.wall().ns - later_.clock.wall().ns);
    later_.store.begin();
    {
      TestHistory second(later_, folder_.path("history"));
      for (std::uint64_t minute = 0; minute < kMinutesOfRun; ++minute) {
        add(later_, kShell, 100, kAlice, {code(0x5000), code(0x6000 + 16 * minute)});
        add(later_, kShell, 101, kAlice, {code(0x7000)});
        later_.pass_minutes(1);
      }
      for (const WallTime start : minutes()) {
        if (start.ns >= kNoon.ns + kMinutesOfRun * kNsPerMinute) {
          truth_.push_back(answer(later_.store.snapshot(), start, names_));
        }
      }
      end(later_, second);
    }
    whole_ = bytes_of(file());
  }

  [[nodiscard]] std::string file() const { return folder_.path("history/history-00000001.db"); }
  [[nodiscard]] const std::string& whole() const { return whole_; }
  [[nodiscard]] std::string history() const { return folder_.path("history"); }

  /// Checks the answer about each minute, as a later daemon gives it: it is right, or there is none. Returns how many
  /// minutes are answered whole.
  int check_answers() const {
    archive::Past past(history(), {.boot_id = "this boot"});
    TestNamer recent_namer;
    HistoryNamer namer(recent_namer, &past);
    TestStore now;
    now.clock.advance_ns(60 * kNsPerMinute);
    now.store.begin();
    now.pass_minutes(1);
    int whole = 0;
    const std::vector<WallTime> starts = all_minutes();
    for (std::size_t i = 0; i < starts.size(); ++i) {
      const WallWindow window{starts[i], {starts[i].ns + kNsPerMinute}};
      const Answer found = answer(past.with(now.store.snapshot(), {&window, 1}), starts[i], namer);
      CAPTURE(i, found.samples);
      if (found.samples == 0) continue;
      REQUIRE(found.samples == truth_[i].samples);
      bool is_named = true;
      for (const std::string& stack : found.stacks) {
        const bool is_known = stack.find("[unknown]") == std::string::npos;
        is_named = is_named && is_known;
        INFO(stack);
        if (is_known) REQUIRE(truth_[i].stacks.contains(stack));
      }
      if (is_named) ++whole;
    }
    check_sums(past, now);
    return whole;
  }
  static constexpr int kMinutes = 2 * kMinutesOfRun;

 private:
  static std::vector<WallTime> all_minutes() {
    std::vector<WallTime> starts;
    for (int minute = 0; minute < kMinutes; ++minute) starts.push_back({kNoon.ns + minute * kNsPerMinute});
    return starts;
  }
  [[nodiscard]] std::vector<WallTime> minutes() const {
    std::vector<WallTime> starts = all_minutes();
    if (truth_.empty()) starts.resize(kMinutesOfRun);
    return starts;
  }
  /// Of a long window, which is read from sums: all of it, or without some minutes.
  void check_sums(archive::Past& past, const TestStore& now) const {
    const WallWindow window{{kNoon.ns - 6 * 60 * kNsPerMinute}, {kNoon.ns + kMinutes * kNsPerMinute}};
    const store::Detail by_process{.only_processes = true, .step_ns = archive::kStretchNs};
    const store::Snapshot snapshot = past.with(now.store.snapshot(), {&window, 1}, by_process);
    store::QueryBudget budget;
    const std::uint64_t found = store::process_usage(snapshot, Selection{window}, budget)->total_samples;
    std::set<std::uint64_t> possible{0};
    for (const Answer& minute : truth_) {
      const std::set<std::uint64_t> others = possible;
      for (const std::uint64_t samples : others) possible.insert(samples + minute.samples);
    }
    CAPTURE(found);
    REQUIRE(possible.contains(found));
  }
  static Answer answer(const store::Snapshot& snapshot, WallTime start, store::FrameNamer& namer) {
    const store::Profile profile = store::build_profile(snapshot, Selection{{start, {start.ns + kNsPerMinute}}}, namer);
    Answer answer{profile.nodes.front().total_samples, {}, !profile.warnings.empty()};
    for (const std::string& line : store::test::folded(profile)) answer.stacks.insert(line);
    return answer;
  }

  const TemporaryDirectory folder_;
  TestStore test_{test::kCountsAlone}, later_{test::kCountsAlone};
  TestNamer names_;
  std::vector<Answer> truth_;
  std::string whole_;
};

/// A daemon on the damaged folder writes, and what it writes is answered.
void check_writing_goes_on(const TwoRuns& runs) {
  TestStore test(test::kCountsAlone);
  test.clock.advance_ns(30 * kNsPerMinute);
  test.store.begin();
  TestHistory on_disk(test, runs.history());
  test.add({code(0x10)});
  test.pass_minutes(2);
  on_disk.history.write();
  CHECK_FALSE(on_disk.history.state().problem);
  CHECK(on_disk.history.state().archive.minutes > 0);
}

}  // namespace

TEST_CASE("with any page of a database damaged, a minute's answer is right, or missing, and writing goes on") {
  const TwoRuns runs;
  REQUIRE(runs.check_answers() == TwoRuns::kMinutes);
  const std::string& whole = runs.whole();
  const std::size_t pages = whole.size() / kPageBytes;
  REQUIRE(pages >= 10);
  std::mt19937 random(1);
  const auto damage = GENERATE(0, 1, 2, 3);
  int lost = 0;
  for (std::size_t page = 0; page < pages; ++page) {
    CAPTURE(damage, page);
    std::string bytes = whole;
    const auto put = [&](const std::string& as) { bytes.replace(page * kPageBytes, kPageBytes, as); };
    if (damage == 0) put(std::string(kPageBytes, '\0'));
    if (damage == 1) put(whole.substr((page + 1) % pages * kPageBytes, kPageBytes));
    if (damage == 2) {
      std::string noise(kPageBytes, '\0');
      for (char& c : noise) c = static_cast<char>(random());
      put(noise);
    }
    if (damage == 3) bytes[page * kPageBytes + random() % kPageBytes] ^= static_cast<char>(1 + random() % 255);
    put_bytes(runs.file(), bytes);
    lost += TwoRuns::kMinutes - runs.check_answers();
    check_writing_goes_on(runs);
    for (const char* other : {"/history-00000002.db", "/history-00000002.db-wal", "/history-00000002.db-shm"}) {
      std::filesystem::remove(runs.history() + other);
    }
  }
  if (damage != 3) CHECK(lost > 0);
}

TEST_CASE("with any byte of a database flipped, a minute's answer is right, or missing") {
  const TwoRuns runs;
  for (std::size_t at = 0; at < runs.whole().size(); at += 101) {
    CAPTURE(at);
    std::string bytes = runs.whole();
    bytes[at] ^= static_cast<char>(1U << at % 8);
    put_bytes(runs.file(), bytes);
    static_cast<void>(runs.check_answers());
  }
}

TEST_CASE("of a database that was cut anywhere, a minute's answer is right, or missing, and writing goes on") {
  const TwoRuns runs;
  for (std::size_t size = 0; size < runs.whole().size(); size += 512) {
    CAPTURE(size);
    put_bytes(runs.file(), runs.whole().substr(0, size));
    CHECK(runs.check_answers() < TwoRuns::kMinutes);
    if (size % (4 * kPageBytes) == 0) check_writing_goes_on(runs);
    for (const char* other : {"/history-00000002.db", "/history-00000002.db-wal", "/history-00000002.db-shm"}) {
      std::filesystem::remove(runs.history() + other);
    }
  }
}

TEST_CASE("with blocks of minutes in each other's place, a minute's answer is right, or missing") {
  const TwoRuns runs;
  const std::string table = GENERATE(std::string("additions"), std::string("pairs"), std::string("names"));
  // Each run ends with a minute more, which has nothing.
  const auto is_in = [](int id) { return id != kMinutesOfRun + 1 && id != 2 * kMinutesOfRun + 2; };
  for (int a = 1; a <= TwoRuns::kMinutes + 1; ++a) {
    for (int b = a + 1; b <= TwoRuns::kMinutes + 1; ++b) {
      if (!is_in(a) || !is_in(b)) continue;
      CAPTURE(table, a, b);
      put_bytes(runs.file(), runs.whole());
      const auto move = [&](int from, int to) {
        std::string sql = "UPDATE ";
        sql += table;
        sql += " SET minute = " + std::to_string(to);
        sql += " WHERE minute = " + std::to_string(from);
        change(runs.file(), sql);
      };
      move(a, -1);
      move(b, a);
      move(-1, b);
      CHECK(runs.check_answers() < TwoRuns::kMinutes);
    }
  }
}

TEST_CASE("without its log, or with a damaged one, a database answers right what it has") {
  const TemporaryDirectory folder;
  TestStore test(test::kCountsAlone);
  auto on_disk = std::make_unique<TestHistory>(test, folder.path("history"));
  sample(test, 5);
  on_disk->history.write();
  const std::string copy = folder.path("copy");
  std::filesystem::create_directory(copy);
  const std::string name = "/history-00000001.db";
  const std::string database = bytes_of(folder.path("history") + name);
  const std::string log = bytes_of(folder.path("history") + name + "-wal");
  REQUIRE(log.size() > 3 * kPageBytes);
  const auto minutes_with = [&](const std::string& with) {
    for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(copy + name + suffix);
    put_bytes(copy + name, database);
    if (!with.empty()) put_bytes(copy + name + "-wal", with);
    const Result<archive::Checked> checked = archive::check_history(copy);
    REQUIRE(checked.ok());
    for (const std::string& problem : checked->problems) {
      INFO(problem);
      // A database that was never copied from its log has nothing in it.
      CHECK(problem.find("an empty database") != std::string::npos);
    }
    return checked->minutes;
  };
  const std::uint64_t all = minutes_with(log);
  CHECK(all >= 4);
  CHECK(minutes_with("") == 0);
  std::uint64_t least = all;
  for (std::size_t at = 0; at < log.size(); at += 97) {
    CAPTURE(at);
    std::string damaged = log;
    damaged[at] ^= static_cast<char>(1U << at % 8);
    const std::uint64_t left = minutes_with(damaged);
    CHECK(left <= all);
    least = std::min(least, left);
  }
  CHECK(least < all);
}

}  // namespace flamed::daemon
