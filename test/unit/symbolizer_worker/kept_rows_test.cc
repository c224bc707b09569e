// SPDX-License-Identifier: Apache-2.0
//
// Rows that were kept in a file: used only if the file is whole and the module still has what they follow from.
#include "symbolizer/worker/kept_rows.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/handle.h"
#include "symbolizer/reader/direct_module_reader.h"
#include "symbolizer/worker/worker_module_reader.h"
#include "test/catch.h"

namespace flamed::symbolizer {
namespace {

using Bytes = std::vector<std::byte>;

Fd file_with(std::span<const std::byte> bytes) {
  Fd file(::memfd_create("test", MFD_CLOEXEC));
  REQUIRE(::write(file.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  REQUIRE(::lseek(file.get(), 0, SEEK_SET) == 0);
  return file;
}

/// A copy of this program that a test may change, and its rows as a file.
struct Fixture {
  Fixture() : module(copy_of_program()), rows(DirectModuleReader().read_unwind_rows(module.get(), -1).value()) {
    kept = kept_rows_of(rows).bytes();
  }
  static Fd copy_of_program() {
    const std::string program = read_file("/proc/self/exe", std::size_t{1} << 30).value();
    return file_with(std::as_bytes(std::span(program)));
  }
  /// Empty if they are used.
  [[nodiscard]] std::string why_not(std::span<const std::byte> bytes) const {
    const Fd file = file_with(bytes);
    const Result<SourcedRows> read = read_kept_rows(module.get(), file.get());
    return read ? "" : read.error().message();
  }
  void change_module(std::uint64_t offset) const {
    char byte = 0;
    REQUIRE(::pread(module.get(), &byte, 1, static_cast<off_t>(offset)) == 1);
    byte ^= 1;
    REQUIRE(::pwrite(module.get(), &byte, 1, static_cast<off_t>(offset)) == 1);
  }

  Fd module;
  SourcedRows rows;
  Bytes kept;
};

TEST_CASE("kept rows are those that were built") {
  const Fixture f;
  const Fd file = file_with(f.kept);
  const SourcedRows read = read_kept_rows(f.module.get(), file.get()).value();
  CHECK(read.was_kept);
  CHECK(read.source == f.rows.source);
  CHECK(kept_rows_of(read).size() == f.kept.size());
  REQUIRE(read.rows.rows.size() == f.rows.rows.rows.size());
  for (const unwinder::Row& row : f.rows.rows.rows) {
    const std::uint64_t place = f.rows.rows.base + row.offset;
    if (read.rows.find(place) != f.rows.rows.find(place)) FAIL("another rule at " << place);
  }
}

TEST_CASE("the worker uses kept rows, and builds them if there is anything wrong") {
  WorkerModuleReader::Options options;
  options.program.path = FAULTY_WORKER;
  WorkerModuleReader reader(options);
  const Fixture f;
  CHECK(reader.read_unwind_rows(f.module.get(), file_with(f.kept).get())->was_kept);
  Bytes damaged = f.kept;
  damaged[damaged.size() / 2] ^= std::byte{1};
  const SourcedRows built = reader.read_unwind_rows(f.module.get(), file_with(damaged).get()).value();
  CHECK_FALSE(built.was_kept);
  CHECK(built.rows.rows.size() == f.rows.rows.rows.size());
}

TEST_CASE("any change of the kept file is noticed, and so is every end that comes too early") {
  const Fixture f;
  REQUIRE(f.why_not(f.kept).empty());
  std::size_t unnoticed = 0;
  // All of the beginning and the end, and a part of the millions of bytes between.
  for (std::size_t at = 0; at < f.kept.size(); at += at < 300 || at + 300 > f.kept.size() ? 1 : f.kept.size() / 100) {
    Bytes changed = f.kept;
    changed[at] ^= std::byte{4};
    if (f.why_not(changed).empty()) ++unnoticed;
    if (f.why_not(std::span(f.kept).first(at)).empty()) ++unnoticed;
  }
  CHECK(unnoticed == 0);
  Bytes longer = f.kept;
  longer.push_back({});
  CHECK_FALSE(f.why_not(longer).empty());
  CHECK(f.why_not({}) == "not a file of rows");
  CHECK(f.why_not(std::as_bytes(std::span("\177ELF of another kind, and long enough to be read"))) ==
        "not a file of rows");
}

TEST_CASE("rows of another version of flamed are not used") {
  const Fixture f;
  Bytes other = f.kept;
  // Behind the first text, its size in 8 bytes.
  other[8 + 11] ^= std::byte{2};
  CHECK(f.why_not(other) == "of another version of flamed");
}

TEST_CASE("a module that has changed anywhere in what its rows follow from gets new ones") {
  const Fixture f;
  for (const FileRange& range : f.rows.source.ranges) {
    INFO("range at " << range.offset);
    f.change_module(range.offset + range.size - 1);
    CHECK(f.why_not(f.kept) == "the module's file has changed");
    f.change_module(range.offset + range.size - 1);
    CHECK(f.why_not(f.kept).empty());
  }
  REQUIRE(::ftruncate(f.module.get(), 4096) == 0);
  CHECK(f.why_not(f.kept) == "the file is shorter than it was");
}

TEST_CASE("the rows of one module are not used for another") {
  const Fixture f;
  const Fd other(::open("/bin/sh", O_RDONLY | O_CLOEXEC));
  CHECK_FALSE(read_kept_rows(other.get(), file_with(f.kept).get()).ok());
}

TEST_CASE("rows that don't say what they follow from are not used") {
  const Fixture f;
  SourcedRows rows = f.rows;
  rows.source.ranges.clear();
  CHECK(f.why_not(kept_rows_of(rows).bytes()) == "it does not say what it follows from");
  rows.source.ranges = {{0, std::uint64_t{1} << 63}};
  CHECK(f.why_not(kept_rows_of(rows).bytes()) == "the file is shorter than it was");
}

}  // namespace
}  // namespace flamed::symbolizer
