// SPDX-License-Identifier: Apache-2.0
#include "archive/files/archive.h"

#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "archive/files/period_reader.h"
#include "test/catch.h"
#include "test/unit/symbolizer_processes/temporary_directory.h"

namespace flamed::archive {
namespace {

using test::TemporaryDirectory;

constexpr WallTime kNoon{1'767'268'800 * kNsPerSecond};
constexpr std::int64_t kHourNs = 60 * kNsPerMinute;

Archive::Options options() {
  Archive::Options options;
  options.boot_id = "boot";
  options.program = "flamed test";
  options.least_free = 1'000'000;
  return options;
}

Minute minute_at(WallTime start) {
  Minute minute;
  minute.wall_offset_ns = start.ns;
  minute.end.ns = kNsPerMinute;
  minute.period_ns = 10 * kNsPerMs;
  return minute;
}

struct Blobs {
  std::vector<std::byte> additions = std::vector<std::byte>(100, std::byte{1});
  std::vector<std::byte> pairs = std::vector<std::byte>(1000, std::byte{2});
  [[nodiscard]] PeriodFile::Blocks blocks() const { return {additions, pairs}; }
};

/// Blobs of so many random bytes.
Blobs blobs_of(std::size_t bytes) {
  Blobs blobs;
  blobs.pairs.resize(bytes);
  return blobs;
}

/// Whether the minute began a session. Empty: it was not written.
std::optional<bool> append(Archive& archive, WallTime start, const Blobs& blobs = {}) {
  const Result<bool> is_new = archive.prepare(start);
  if (!is_new) return std::nullopt;
  if (!archive.append(minute_at(start), blobs.blocks())) return std::nullopt;
  return *is_new;
}

std::vector<std::string> databases(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".db") names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::int64_t number_in(const std::string& path, std::string_view sql) {
  sqlite3* raw = nullptr;
  REQUIRE(sqlite3_open_v2(path.c_str(), &raw, SQLITE_OPEN_READWRITE, nullptr) == SQLITE_OK);
  const Connection connection(raw);
  Result<Statement> statement = Statement::prepare(raw, sql);
  REQUIRE(statement.ok());
  const Result<bool> row = statement->step();
  REQUIRE(row.ok());
  REQUIRE(*row);
  return statement->number(0);
}

void change(const std::string& path, const char* sql) {
  sqlite3* raw = nullptr;
  REQUIRE(sqlite3_open_v2(path.c_str(), &raw, SQLITE_OPEN_READWRITE, nullptr) == SQLITE_OK);
  const Connection connection(raw);
  REQUIRE(run(raw, sql).ok());
}

/// One file for each of `hours` from noon on, with a minute each.
void fill(Archive& archive, int hours, const Blobs& blobs = {}) {
  for (int hour = 0; hour < hours; ++hour) {
    REQUIRE(append(archive, {kNoon.ns + hour * kHourNs}, blobs).has_value());
  }
}

}  // namespace

TEST_CASE("a database without hosts is written on, and read, as before") {
  const TemporaryDirectory folder;
  const std::string file = folder.path("history/history-00000001.db");
  REQUIRE(append(*std::make_unique<Archive>(folder.path("history"), options()), kNoon));
  change(file, "ALTER TABLE session DROP COLUMN host");
  {
    Result<PeriodReader> reader = PeriodReader::open(file);
    REQUIRE(reader.ok());
    const auto sessions = reader->sessions();
    REQUIRE(sessions.ok());
    CHECK(sessions->front().host.empty());
    CHECK(sessions->front().program == "flamed test");
  }
  Archive::Options with_host = options();
  with_host.host = "web-1";
  Archive archive(folder.path("history"), with_host);
  REQUIRE(append(archive, {kNoon.ns + kNsPerMinute}));
  CHECK(number_in(file, "SELECT count(*) FROM session WHERE host = ''") == 1);
  CHECK(number_in(file, "SELECT count(*) FROM session WHERE host = 'web-1'") == 1);
  CHECK(number_in(file, "SELECT user_version FROM pragma_user_version") == 1);
}

TEST_CASE("a database without single samples is written on, and read, as before") {
  const TemporaryDirectory folder;
  const std::string file = folder.path("history/history-00000001.db");
  REQUIRE(append(*std::make_unique<Archive>(folder.path("history"), options()), kNoon));
  change(file, "DROP TABLE samples");
  const auto samples_of = [&](std::int64_t minute) {
    std::size_t bytes = 0;
    Result<PeriodReader> reader = PeriodReader::open(file);
    REQUIRE(reader.ok());
    const auto visit = [&](std::int64_t, std::span<const std::byte> block) -> Status {
      bytes += block.size();
      return {};
    };
    REQUIRE(reader->samples_of(minute, visit).ok());
    return bytes;
  };
  CHECK(samples_of(1) == 0);
  Archive archive(folder.path("history"), options());
  Minute minute = minute_at({kNoon.ns + kNsPerMinute});
  minute.sequence = 7;
  REQUIRE(archive.prepare(minute.wall_start()).ok());
  REQUIRE(archive.append(minute, Blobs{}.blocks()).ok());
  const std::vector<PeriodFile::LaterBlock> blocks{{7, minute.wall_start(), std::vector<std::byte>(10)},
                                                   {8, {}, std::vector<std::byte>(20)}};
  REQUIRE(archive.add_samples(blocks).ok());
  CHECK(samples_of(1) == 0);
  CHECK(samples_of(2) == 10);
  CHECK(number_in(file, "SELECT count(*) FROM samples") == 1);
  CHECK(number_in(file, "SELECT user_version FROM pragma_user_version") == 1);
}

TEST_CASE("a minute is a row with its blobs, of a session with the boot's id") {
  const TemporaryDirectory folder;
  Archive archive(folder.path("history"), options());
  Minute minute = minute_at(kNoon);
  minute.sequence = 7;
  minute.quality.whole = 5;
  minute.quality.lost[0] = 2;
  const Result<bool> is_new = archive.prepare(kNoon);
  REQUIRE(is_new.ok());
  CHECK(*is_new);
  REQUIRE(archive.append(minute, Blobs{}.blocks()).ok());
  CHECK(append(archive, {kNoon.ns + kNsPerMinute}) == false);
  const std::string file = folder.path("history/history-00000001.db");
  CHECK(number_in(file,
                  "SELECT count(*) FROM minute JOIN session ON session.id = minute.session "
                  "WHERE boot_id = 'boot' AND program = 'flamed test'") == 2);
  CHECK(number_in(file, "SELECT wall_end_ns - wall_start_ns FROM minute WHERE sequence = 7") == kNsPerMinute);
  CHECK(number_in(file, "SELECT samples * 10 + lost FROM minute WHERE sequence = 7") == 52);
  CHECK(number_in(file, "SELECT length(block) FROM pairs LIMIT 1") == 1012);
  CHECK(number_in(file, "SELECT length(block) FROM additions LIMIT 1") == 112);
  CHECK(number_in(file, "PRAGMA user_version") == kSchemaVersion);
  CHECK(archive.stats().minutes == 2);
}

TEST_CASE("only flamed and its group may read the files") {
  const TemporaryDirectory folder;
  Archive archive(folder.path("history"), options());
  const mode_t before = ::umask(0077);
  REQUIRE(append(archive, kNoon).has_value());
  ::umask(before);
  for (const auto& entry : std::filesystem::directory_iterator(folder.path("history"))) {
    struct stat status {};
    REQUIRE(::stat(entry.path().c_str(), &status) == 0);
    INFO(entry.path());
    CHECK((status.st_mode & 0777) == (entry.path().filename() == "lock" ? 0600 : 0640));
  }
  struct stat status {};
  REQUIRE(::stat(folder.path("history").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0750);
}

TEST_CASE("a restart goes on in the same file, with another session") {
  const TemporaryDirectory folder;
  for (int run = 0; run < 3; ++run) {
    Archive archive(folder.path("history"), options());
    CHECK(append(archive, {kNoon.ns + run * kNsPerMinute}) == true);
  }
  CHECK(databases(folder.path("history")) == std::vector<std::string>{"history-00000001.db"});
  CHECK(number_in(folder.path("history/history-00000001.db"), "SELECT count(DISTINCT session) FROM minute") == 3);
}

TEST_CASE("a file has the minutes of six hours after its first") {
  const TemporaryDirectory folder;
  Archive archive(folder.path("history"), options());
  CHECK(append(archive, kNoon, blobs_of(2U << 20)) == true);
  CHECK(append(archive, {kNoon.ns + 6 * kHourNs - kNsPerMinute}) == false);
  CHECK(append(archive, {kNoon.ns + 6 * kHourNs}) == true);
  CHECK(archive.stats().files == 2);
}

TEST_CASE("a file that stays small has the minutes of a day, also after a restart") {
  const TemporaryDirectory folder;
  {
    Archive archive(folder.path("history"), options());
    CHECK(append(archive, kNoon) == true);
    CHECK(append(archive, {kNoon.ns + 6 * kHourNs}) == false);
  }
  Archive archive(folder.path("history"), options());
  CHECK(append(archive, {kNoon.ns + 12 * kHourNs}) == true);
  CHECK(append(archive, {kNoon.ns + 24 * kHourNs - kNsPerMinute}) == false);
  CHECK(archive.stats().files == 1);
  CHECK(append(archive, {kNoon.ns + 24 * kHourNs}) == true);
  CHECK(archive.stats().files == 2);
}

TEST_CASE("a file that is not small is not written on after a restart, so that it gets stretches") {
  const TemporaryDirectory folder;
  Archive::Options limits = options();
  limits.quiet_bytes = limits.most_resumed_bytes = std::uint64_t{1} << 20;
  for (int run = 0; run < 3; ++run) {
    Archive archive(folder.path("history"), limits);
    REQUIRE(append(archive, {kNoon.ns + run * kNsPerMinute}, blobs_of(run == 1 ? 1'500'000 : 100)) == true);
    CHECK(archive.stats().files == (run < 2 ? 1 : 2));
    CHECK(archive.next_to_coarsen() == (run < 2 ? std::nullopt : std::optional<std::uint64_t>(1)));
  }
}

TEST_CASE("a file that is no longer small ends, if it has six hours") {
  const TemporaryDirectory folder;
  Archive archive(folder.path("history"), options());
  CHECK(append(archive, kNoon) == true);
  CHECK(append(archive, {kNoon.ns + 7 * kHourNs}, blobs_of(2U << 20)) == false);
  CHECK(append(archive, {kNoon.ns + 7 * kHourNs + kNsPerMinute}) == true);
}

TEST_CASE("a clock that is set back begins a file, and so does a jump ahead") {
  const TemporaryDirectory folder;
  Archive archive(folder.path("history"), options());
  constexpr std::int64_t kYearNs = 365 * 24 * kHourNs;
  CHECK(append(archive, kNoon) == true);
  CHECK(append(archive, {kNoon.ns + kYearNs}) == true);
  CHECK(append(archive, {kNoon.ns + kNsPerMinute}) == true);
  CHECK(archive.stats().files == 3);
  CHECK(archive.stats().files_unlinked == 0);
}

TEST_CASE("the oldest files are unlinked when there are too many bytes") {
  const TemporaryDirectory folder;
  Archive::Options limited = options();
  limited.max_bytes = 1U << 20;
  limited.period_ns = kHourNs;
  limited.quiet_bytes = 0;
  Archive archive(folder.path("history"), limited);
  for (int hour = 0; hour < 40; ++hour) {
    REQUIRE(append(archive, {kNoon.ns + hour * kHourNs}, blobs_of(60'000)).has_value());
    CHECK(archive.stats().bytes <= limited.max_bytes);
  }
  const std::vector<std::string> left = databases(folder.path("history"));
  CHECK(left.back() == "history-00000040.db");
  CHECK(left.size() >= 5);
  CHECK(left.size() < 20);
  CHECK(archive.stats().files_unlinked == 40 - left.size());
}

TEST_CASE("a file is not larger than an eighth of all bytes") {
  const TemporaryDirectory folder;
  Archive::Options limited = options();
  limited.max_bytes = 2U << 20;
  Archive archive(folder.path("history"), limited);
  for (int minute = 0; minute < 60; ++minute) {
    REQUIRE(append(archive, {kNoon.ns + minute * kNsPerMinute}, blobs_of(40'000)).has_value());
    CHECK(archive.stats().bytes <= limited.max_bytes);
  }
  CHECK(archive.stats().files_unlinked > 0);
  CHECK(archive.stats().files > 4);
}

TEST_CASE("files older than the limit are unlinked, counted from a day before the newest") {
  const TemporaryDirectory folder;
  Archive::Options limited = options();
  limited.max_age_ns = 2 * 24 * kHourNs;
  limited.period_ns = kNsPerMinute;
  limited.quiet_bytes = 0;
  // Each minute is recorded as an hour, so that a day takes 24 files.
  Archive archive(folder.path("history"), limited);
  for (int hour = 0; hour < 100; ++hour) {
    Minute minute = minute_at({kNoon.ns + hour * kHourNs});
    minute.end.ns = kHourNs;
    REQUIRE(archive.prepare(minute.wall_start()).ok());
    REQUIRE(archive.append(minute, Blobs{}.blocks()).ok());
  }
  CHECK(archive.stats().files >= 48);
  CHECK(archive.stats().files <= 74);
}

TEST_CASE("a clock that is a year ahead for some hours deletes nothing") {
  const TemporaryDirectory folder;
  Archive archive(folder.path("history"), options());
  fill(archive, 20);
  constexpr std::int64_t kYearNs = 365 * 24 * kHourNs;
  for (int hour = 20; hour < 23; ++hour) {
    REQUIRE(append(archive, {kNoon.ns + kYearNs + hour * kHourNs}).has_value());
  }
  REQUIRE(append(archive, {kNoon.ns + 23 * kHourNs}).has_value());
  CHECK(archive.stats().files_unlinked == 0);
  CHECK(archive.stats().oldest == kNoon);
}

TEST_CASE("a second daemon writes nothing, until the first has ended") {
  const TemporaryDirectory folder;
  std::optional<Archive> first;
  first.emplace(folder.path("history"), options());
  REQUIRE(append(*first, kNoon).has_value());
  Archive second(folder.path("history"), options());
  const Result<bool> refused = second.prepare(kNoon);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message() == "another flamed writes to " + folder.path("history"));
  first.reset();
  CHECK(append(second, {kNoon.ns + kNsPerMinute}) == true);
}

TEST_CASE("a damaged file is left as it is, and another one begins") {
  const TemporaryDirectory folder;
  const std::string file = folder.path("history/history-00000001.db");
  {
    Archive archive(folder.path("history"), options());
    fill(archive, 3, blobs_of(20'000));
  }
  std::string bytes;
  SECTION("its first page is damaged") {
    std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).write("no database at all", 18);
  }
  SECTION("a page of its tables is damaged") {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(2048);
    stream.write(std::string(4 * 1024, '\xff').data(), 4 * 1024);
  }
  SECTION("it is cut") { std::filesystem::resize_file(file, 5000); }
  bytes = [&] {
    std::ifstream stream(file, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  }();
  Archive archive(folder.path("history"), options());
  CHECK(append(archive, {kNoon.ns + 3 * kHourNs}) == true);
  CHECK(databases(folder.path("history")).size() == 2);
  REQUIRE(archive.stats().unusable.size() == 1);
  CHECK(archive.stats().unusable[0].find("history-00000001.db") != std::string::npos);
  std::ifstream stream(file, std::ios::binary);
  CHECK(std::string(std::istreambuf_iterator<char>(stream), {}) == bytes);
}

TEST_CASE("a file of another version is left as it is, and another one begins") {
  const TemporaryDirectory folder;
  const std::string file = folder.path("history/history-00000001.db");
  {
    Archive archive(folder.path("history"), options());
    fill(archive, 1);
  }
  change(file, "PRAGMA user_version = 2");
  Archive archive(folder.path("history"), options());
  CHECK(append(archive, {kNoon.ns + kNsPerMinute}) == true);
  REQUIRE(archive.stats().unusable.size() == 1);
  CHECK(archive.stats().unusable[0].find("version 2; this flamed has version 1") != std::string::npos);
  CHECK(number_in(file, "SELECT count(*) FROM minute") == 1);
}

TEST_CASE("another program's database is not written to") {
  const TemporaryDirectory folder;
  std::filesystem::create_directory(folder.path("history"));
  const std::string file = folder.path("history/history-00000001.db");
  std::ofstream(file).flush();
  change(file, "CREATE TABLE own (value)");
  Archive archive(folder.path("history"), options());
  CHECK(append(archive, kNoon) == true);
  CHECK(number_in(file, "SELECT count(*) FROM sqlite_schema") == 1);
  CHECK(archive.stats().files == 2);
}

TEST_CASE("while another program reads, minutes are written, and the log stays bounded") {
  const TemporaryDirectory folder;
  Archive archive(folder.path("history"), options());
  REQUIRE(append(archive, kNoon).has_value());
  sqlite3* raw = nullptr;
  REQUIRE(sqlite3_open_v2(folder.path("history/history-00000001.db").c_str(), &raw, SQLITE_OPEN_READONLY, nullptr) ==
          SQLITE_OK);
  const Connection reader(raw);
  REQUIRE(run(raw, "BEGIN; SELECT count(*) FROM minute").ok());
  for (int minute = 1; minute < 120; ++minute) {
    REQUIRE(append(archive, {kNoon.ns + minute * kNsPerMinute}, blobs_of(100'000)).has_value());
  }
  CHECK(archive.stats().files == 2);
  CHECK(std::filesystem::file_size(folder.path("history/history-00000001.db-wal")) < 10U << 20);
}

TEST_CASE("without a place to write, the reason is told, and writing begins when there is one") {
  const TemporaryDirectory folder;
  Archive archive(folder.path("missing/history"), options());
  const Result<bool> refused = archive.prepare(kNoon);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message() == "cannot create " + folder.path("missing/history") + ": No such file or directory");
  std::filesystem::create_directory(folder.path("missing"));
  CHECK(append(archive, kNoon) == true);
}

TEST_CASE("when somebody removes files, or all of the folder, writing begins anew") {
  const TemporaryDirectory folder;
  Archive archive(folder.path("history"), options());
  REQUIRE(append(archive, kNoon).has_value());
  for (const char* suffix : {"", "-wal", "-shm"}) {
    std::filesystem::remove(folder.path("history/history-00000001.db") + suffix);
  }
  CHECK(append(archive, {kNoon.ns + kNsPerMinute}) == true);
  CHECK(append(archive, {kNoon.ns + 2 * kNsPerMinute}) == false);
  CHECK(number_in(folder.path("history/history-00000001.db"), "SELECT count(*) FROM minute") == 2);
  std::filesystem::remove_all(folder.path("history"));
  CHECK(append(archive, {kNoon.ns + 3 * kNsPerMinute}) == true);
  CHECK(number_in(folder.path("history/history-00000001.db"), "SELECT count(*) FROM minute") == 1);
}

TEST_CASE("nothing is written when the file system is nearly full") {
  const TemporaryDirectory folder;
  Archive::Options careful = options();
  careful.least_free = 1;  // all of it
  Archive archive(folder.path("history"), careful);
  const Result<bool> refused = archive.prepare(kNoon);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code() == ENOSPC);
}

TEST_CASE("a full disk costs the minute, and the next one that fits begins a session") {
  const TemporaryDirectory folder;
  if (::unshare(CLONE_NEWNS) != 0) {
    WARN("SKIP: only root can mount a small file system");
    return;
  }
  REQUIRE(::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0);
  REQUIRE(::mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=1m") == 0);
  {
    Archive archive(folder.path("history"), options());
    REQUIRE(append(archive, kNoon) == true);
    std::ofstream(folder.path("filler")) << std::string(700'000, 'x');
    Result<bool> is_new = archive.prepare({kNoon.ns + kNsPerMinute});
    REQUIRE(is_new.ok());
    const Status refused = archive.append(minute_at({kNoon.ns + kNsPerMinute}), blobs_of(400'000).blocks());
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code() == ENOSPC);
    std::filesystem::remove(folder.path("filler"));
    CHECK(append(archive, {kNoon.ns + 2 * kNsPerMinute}) == true);
    CHECK(archive.stats().files == 1);
    CHECK(number_in(folder.path("history/history-00000001.db"), "SELECT count(*) FROM pairs") == 2);
  }
  ::umount(folder.path().c_str());
}

TEST_CASE("a writer that is killed leaves every minute that it has reported, whole") {
  std::mt19937 random(1);
  const TemporaryDirectory folder;
  std::int64_t reported = 0;
  for (int round = 0; round < 30; ++round) {
    int ends[2] = {};
    REQUIRE(::pipe(ends) == 0);
    const Fd from_child(ends[0]);
    Fd to_parent(ends[1]);
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      Archive archive(folder.path("history"), options());
      for (int minute = 0;; ++minute) {
        const WallTime start{kNoon.ns + (round * 10 + minute % 10) * kNsPerMinute};
        if (!append(archive, start, blobs_of(1 + static_cast<std::size_t>(minute) * 997 % 30'000))) ::_exit(1);
        if (::write(to_parent.get(), "m", 1) != 1) ::_exit(1);
      }
    }
    to_parent.reset();
    ::usleep(static_cast<useconds_t>(random() % 60'000));
    REQUIRE(::kill(child, SIGKILL) == 0);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFSIGNALED(status));
    char byte = 0;
    while (::read(from_child.get(), &byte, 1) == 1) ++reported;
  }
  std::int64_t found = 0;
  for (const std::string& name : databases(folder.path("history"))) {
    const std::string file = folder.path("history/" + name);
    found += number_in(file,
                       "SELECT count(*) FROM minute JOIN pairs ON pairs.minute = minute.id "
                       "JOIN additions ON additions.minute = minute.id");
    CHECK(number_in(file, "SELECT count(*) FROM minute") == number_in(file, "SELECT count(*) FROM pairs"));
    CHECK(number_in(file, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check != 'ok'") == 0);
  }
  CHECK(reported > 0);
  CHECK(found >= reported);
  // At most the one whose report was not sent yet.
  CHECK(found <= reported + 30);
}

}  // namespace flamed::archive
