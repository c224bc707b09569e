// SPDX-License-Identifier: Apache-2.0
#include "runtimes/python/line_table.h"

#include <string>
#include <vector>

#include "test/catch.h"

namespace flamed::runtimes {
namespace {

std::vector<LineRun> read(PythonLines kind, const std::vector<int>& bytes, std::uint32_t first_line = 10) {
  std::vector<std::byte> table;
  for (const int byte : bytes) table.push_back(static_cast<std::byte>(byte));
  return read_line_table(kind, table, first_line);
}

using Runs = std::vector<LineRun>;

TEST_CASE("the line numbers of 3.9 change after so many bytes of code") {
  CHECK(read(PythonLines::kLineNumbers, {}) == Runs{{0, 10}});
  CHECK(read(PythonLines::kLineNumbers, {0, 1, 6, 1, 50, 2, 4, 256 - 3}) == Runs{{0, 11}, {3, 12}, {28, 14}, {30, 11}});
  // A large step takes several entries.
  CHECK(read(PythonLines::kLineNumbers, {6, 127, 0, 127, 255, 0, 45, 1}) == Runs{{0, 10}, {3, 264}, {153, 265}});
  // Half an entry is none.
  CHECK(read(PythonLines::kLineNumbers, {6, 1, 6}) == Runs{{0, 10}, {3, 11}});
}

TEST_CASE("the ranges of 3.10 have lines or none") {
  CHECK(read(PythonLines::kRanges, {6, 1, 4, 128, 2, 1}) == Runs{{0, 11}, {3, 0}, {5, 12}, {6, 0}});
  // An empty range changes the line of the next one.
  CHECK(read(PythonLines::kRanges, {0, 127, 6, 1}) == Runs{{0, 138}, {3, 0}});
}

TEST_CASE("the locations of 3.11 have lines in four forms") {
  const int one_line_same = 0x80 | 10 << 3 | 0;
  const int one_line_two = 0x80 | 12 << 3 | 1;
  const int short_form = 0x80 | 3 << 3 | 7;
  const int no_columns = 0x80 | 13 << 3 | 0;
  const int long_form = 0x80 | 14 << 3 | 0;
  const int none = 0x80 | 15 << 3 | 2;
  CHECK(read(PythonLines::kLocations, {one_line_same, 4, 5, one_line_two, 4, 5, short_form, 0x11, none, no_columns,
                                       0x03, long_form, 0x46, 0x02, 1, 2, 3}) ==
        Runs{{0, 10}, {1, 12}, {11, 0}, {14, 11}, {15, 78}, {16, 0}});
}

TEST_CASE("bytes between entries are skipped, and a cut number is what is there of it") {
  const int no_columns = 0x80 | 13 << 3 | 0;
  CHECK(read(PythonLines::kLocations, {1, 2, 3, no_columns, 0x02}) == Runs{{0, 11}, {1, 0}});
  CHECK(read(PythonLines::kLocations, {no_columns, 0x42}) == Runs{{0, 11}, {1, 0}});
}

TEST_CASE("lines outside of all files are none") {
  CHECK(read(PythonLines::kLineNumbers, {2, 128, 2, 1}, 10) == Runs{{0, 10}, {1, 0}});
  CHECK(read(PythonLines::kLocations, {}, UINT32_MAX) == Runs{{0, 0}});
  const int no_columns = 0x80 | 13 << 3 | 0;
  std::vector<int> huge;
  for (int i = 0; i < 20; ++i)
    huge.insert(huge.end(), {no_columns, 0x7e, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x0f});
  CHECK(read(PythonLines::kLocations, huge) == Runs{{0, 0}});
}

TEST_CASE("a table has a largest size, and what follows has no line") {
  std::vector<int> bytes;
  for (std::size_t i = 0; i < 2 * kMostLineRuns; ++i) bytes.insert(bytes.end(), {2, 1});
  const Runs runs = read(PythonLines::kLineNumbers, bytes);
  REQUIRE(runs.size() == kMostLineRuns);
  CHECK(runs.back() == LineRun{kMostLineRuns - 1, 0});
  CHECK(runs[kMostLineRuns - 2] == LineRun{kMostLineRuns - 2, 10 + kMostLineRuns - 2});
  CHECK(line_at(runs, INT64_MAX) == 0);
}

TEST_CASE("an instruction has the line of its run") {
  const Runs runs{{0, 5}, {3, 6}, {9, 0}};
  CHECK(line_at(runs, -1) == 5);
  CHECK(line_at(runs, 0) == 5);
  CHECK(line_at(runs, 2) == 5);
  CHECK(line_at(runs, 3) == 6);
  CHECK(line_at(runs, 8) == 6);
  CHECK(line_at(runs, 9) == 0);
  CHECK(line_at({}, 1) == 0);
}

}  // namespace
}  // namespace flamed::runtimes
