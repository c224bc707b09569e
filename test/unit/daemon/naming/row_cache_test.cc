// SPDX-License-Identifier: Apache-2.0
#include "daemon/naming/row_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "symbolizer/worker/kept_rows.h"
#include "test/catch.h"
#include "test/support/manual_clock.h"
#include "test/unit/symbolizer_processes/temporary_directory.h"

namespace flamed::daemon {
namespace {

using symbolizer::FileIdentity;
using symbolizer::SourcedRows;

FileIdentity file(std::uint64_t inode, std::uint32_t major = 8) { return {major, 1, inode, {1000, 5, 6}}; }

/// Rows that differ in their key, and take about `bytes` of a file.
SourcedRows rows_of(std::uint64_t key, std::size_t bytes = 1000) {
  SourcedRows rows;
  rows.source = {{{0, 64}}, key, 99};
  rows.rows.rules = {unwinder::Rule{}};
  rows.rows.rows.resize(bytes / sizeof(unwinder::Row));
  return rows;
}

struct Fixture {
  Fixture() { options.boot_id = directory.write("boot_id", "0a1b-2c3d\n"); }
  std::unique_ptr<RowCache> open() { return RowCache::open(folder(), clock, options).value(); }
  [[nodiscard]] std::string folder() const { return directory.path("rows"); }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder())) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  /// Does it hold these rows?
  static bool has(RowCache& cache, const FileIdentity& identity, const SourcedRows& rows) {
    const Fd found = cache.find(identity);
    if (!found) return false;
    const std::string text = read_fd(found.get(), 1U << 20).value();
    const std::vector<std::byte> expected = symbolizer::kept_rows_of(rows).bytes();
    return std::ranges::equal(std::as_bytes(std::span(text)), expected);
  }

  test::TemporaryDirectory directory;
  ManualClock clock{MonotonicTime{kNsPerSecond}, WallTime{1000 * kNsPerSecond}};
  RowCache::Options options;
};

TEST_CASE("rows are found by the identity of their file, after a new start as well") {
  Fixture f;
  {
    const auto cache = f.open();
    CHECK_FALSE(cache->find(file(1)));
    cache->keep(file(1), rows_of(1));
    cache->keep(file(2), rows_of(2));
    CHECK(Fixture::has(*cache, file(1), rows_of(1)));
  }
  const auto cache = f.open();
  CHECK(Fixture::has(*cache, file(1), rows_of(1)));
  CHECK(Fixture::has(*cache, file(2), rows_of(2)));
  CHECK(cache->stats().files == 2);
  CHECK(cache->stats().bytes == 2 * symbolizer::kept_rows_of(rows_of(1)).size());

  std::vector<FileIdentity> others(6, file(1));
  others[0].device_major = 9;
  others[1].device_minor = 2;
  others[2].inode = 3;
  others[3].version.size = 1001;
  others[4].version.modified_ns = 4;
  others[5].version.changed_ns = 7;
  for (const FileIdentity& other : others) CHECK_FALSE(cache->find(other));
}

TEST_CASE("new rows take the place of the old ones") {
  Fixture f;
  const auto cache = f.open();
  cache->keep(file(1), rows_of(1, 4000));
  cache->keep(file(1), rows_of(2));
  CHECK(Fixture::has(*cache, file(1), rows_of(2)));
  CHECK(cache->stats().bytes == symbolizer::kept_rows_of(rows_of(2)).size());
  CHECK(f.names().size() == 1);
  SourcedRows unknown = rows_of(3);
  unknown.source.ranges.clear();
  cache->keep(file(1), unknown);
  CHECK_FALSE(cache->find(file(1)));
  CHECK(f.names().empty());
}

TEST_CASE("what was not used for the longest time makes room, over a new start") {
  Fixture f;
  f.options.max_bytes = 3 * symbolizer::kept_rows_of(rows_of(1)).size();
  {
    const auto cache = f.open();
    for (std::uint64_t i = 1; i <= 3; ++i) {
      f.clock.advance_ns(kNsPerSecond);
      cache->keep(file(i), rows_of(i));
    }
    f.clock.advance_ns(kNsPerSecond);
    REQUIRE(cache->find(file(1)));
    f.clock.advance_ns(kNsPerSecond);
    cache->keep(file(4), rows_of(4));
    CHECK_FALSE(cache->find(file(2)));
    CHECK(cache->find(file(3)));
  }
  f.options.max_bytes /= 3;
  const auto cache = f.open();
  CHECK(cache->stats().files == 1);
  CHECK(f.names().size() == 1);
}

TEST_CASE("rows of half the room or more are not kept, and no more than so many bytes an hour") {
  Fixture f;
  const std::uint64_t bytes = symbolizer::kept_rows_of(rows_of(1)).size();
  f.options.max_bytes = 10 * bytes;
  f.options.max_bytes_an_hour = 3 * bytes;
  const auto cache = f.open();
  cache->keep(file(1), rows_of(1, 6 * bytes));
  CHECK(cache->stats().files == 0);
  for (std::uint64_t i = 1; i <= 5; ++i) cache->keep(file(i), rows_of(i));
  CHECK(cache->stats().files == 3);
  f.clock.advance_ns(60 * kNsPerMinute);
  cache->keep(file(4), rows_of(4));
  CHECK(cache->stats().files == 4);
}

TEST_CASE("a mount's number counts for one boot only, a disk's for all") {
  Fixture f;
  {
    const auto cache = f.open();
    cache->keep(file(1, 0), rows_of(1));
    cache->keep(file(2, 8), rows_of(2));
    CHECK(cache->find(file(1, 0)));
  }
  CHECK(f.open()->find(file(1, 0)));
  f.directory.write("boot_id", "ffff-0000\n");
  const auto cache = f.open();
  CHECK_FALSE(cache->find(file(1, 0)));
  CHECK(cache->find(file(2, 8)));
  CHECK(f.names().size() == 1);
}

TEST_CASE("files that are not its own are left alone, and unfinished ones are removed") {
  Fixture f;
  {
    const auto cache = f.open();
    cache->keep(file(1), rows_of(1));
  }
  const std::string own = f.names().front();
  f.directory.write("rows/README", "not rows");
  f.directory.write("rows/" + own + ".new", "cut");
  f.directory.write("rows/notes.new", "somebody's");
  const auto cache = f.open();
  CHECK(f.names() == std::vector<std::string>{own, "README", "notes.new"});  // digits stand before letters
  CHECK(cache->stats().files == 1);
}

TEST_CASE("what another process does to the folder costs only the rows") {
  Fixture f;
  const auto cache = f.open();
  cache->keep(file(1), rows_of(1));
  cache->keep(file(2), rows_of(2));
  cache->keep(file(3), rows_of(3));
  const std::vector<std::string> names = f.names();
  REQUIRE(names.size() == 3);
  // Removed, a pipe that nobody writes to, a link to elsewhere.
  std::filesystem::remove(f.folder() + "/" + names[0]);
  std::filesystem::remove(f.folder() + "/" + names[1]);
  REQUIRE(::mkfifo((f.folder() + "/" + names[1]).c_str(), 0600) == 0);
  std::filesystem::remove(f.folder() + "/" + names[2]);
  std::filesystem::create_symlink("/etc/passwd", f.folder() + "/" + names[2]);
  for (std::uint64_t i = 1; i <= 3; ++i) CHECK_FALSE(cache->find(file(i)));
  CHECK(cache->stats().files == 0);
  CHECK(cache->stats().bytes == 0);
  cache->keep(file(2), rows_of(2));
  CHECK(Fixture::has(*cache, file(2), rows_of(2)));
  std::filesystem::remove_all(f.folder());
  cache->keep(file(1), rows_of(1));
  CHECK_FALSE(cache->find(file(1)));
}

TEST_CASE("a folder that others may write to, or that is none, is refused with the reason") {
  Fixture f;
  const auto why = [&](const std::string& folder) {
    const auto cache = RowCache::open(folder, f.clock, f.options);
    return cache ? "" : cache.error().message();
  };
  REQUIRE(::mkdir(f.folder().c_str(), 0700) == 0);
  REQUIRE(::chmod(f.folder().c_str(), 0770) == 0);
  CHECK(why(f.folder()) == f.folder() + " can be written to by others; remove it");
  REQUIRE(::chmod(f.folder().c_str(), 0700) == 0);
  CHECK(why(f.folder()).empty());
  std::filesystem::create_symlink(f.folder(), f.directory.path("link"));
  CHECK(why(f.directory.path("link")).starts_with("cannot open " + f.directory.path("link")));
  CHECK(why(f.directory.path("none/rows")).starts_with("cannot create "));
  CHECK(why(f.directory.write("text", "")).starts_with("cannot open "));
}

}  // namespace
}  // namespace flamed::daemon
