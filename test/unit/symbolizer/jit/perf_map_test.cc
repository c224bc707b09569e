// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/jit/perf_map.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/handle.h"
#include "symbolizer/jit/jit_ranges.h"
#include "test/catch.h"

namespace flamed::symbolizer {
namespace {

std::string at(const SymbolTable& table, std::uint64_t address) {
  const auto found = table.find(address);
  return found ? std::string(found->name) : "-";
}

Fd file_of(const std::string& text) {
  Fd file(::memfd_create("perf-map", MFD_CLOEXEC));
  REQUIRE(::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  return file;
}

TEST_CASE("a perf map names exactly the addresses in its lines' ranges") {
  const PerfMap map = parse_perf_map("1000 20 first\n1040 10 second\n").value();
  CHECK(map.entries == 2);
  CHECK(map.bad_lines == 0);
  CHECK(at(map.functions, 0xfff) == "-");
  CHECK(at(map.functions, 0x1000) == "first");
  CHECK(at(map.functions, 0x101f) == "first");
  CHECK(at(map.functions, 0x1020) == "-");
  CHECK(at(map.functions, 0x1040) == "second");
  CHECK(at(map.functions, 0x104f) == "second");
  CHECK(at(map.functions, 0x1050) == "-");
}

TEST_CASE("numbers of a perf map may have a prefix 0x, capital digits and leading zeros") {
  const PerfMap map = parse_perf_map("0x00007F5A1C000A00 0x0000000000000020 a\n0X7f5a1c000b00 1F b\n").value();
  CHECK(at(map.functions, 0x7f5a1c000a1f) == "a");
  CHECK(at(map.functions, 0x7f5a1c000b1e) == "b");
  CHECK(at(map.functions, 0x7f5a1c000b1f) == "-");
}

TEST_CASE("names of a perf map may have blanks, semicolons and other characters") {
  const PerfMap map =
      parse_perf_map("10 10 JS:*work one /srv/a b.js:3:9\n20 10 a;b <i>&\x1b[31m\xff\n30 10  lead\n").value();
  CHECK(at(map.functions, 0x10) == "JS:*work one /srv/a b.js:3:9");
  CHECK(at(map.functions, 0x20) == "a;b <i>&\x1b[31m\xff");
  CHECK(at(map.functions, 0x30) == "lead");
}

TEST_CASE("a name ends at a NUL, and at the longest length that is shown") {
  const std::string text = std::string("10 10 before\0after\n20 10 ", 25) + std::string(100'000, 'x') + "\n";
  const PerfMap map = parse_perf_map(text).value();
  CHECK(at(map.functions, 0x10) == "before");
  CHECK(at(map.functions, 0x20).size() == 4096);
}

TEST_CASE("damaged lines of a perf map are left out and counted") {
  const PerfMap map =
      parse_perf_map(
          "10 10 good\n\nzz 10 no number\n20 no size\n20 10\n20 10 \n20 0 empty\n"
          "ffffffffffffffff 2 wraps\n12345678901234567 1 too large\n-5 1 sign\n 5 5 blank first\n30 8 last")
          .value();
  CHECK(map.entries == 2);
  CHECK(map.bad_lines == 9);
  CHECK(at(map.functions, 0x10) == "good");
  CHECK(at(map.functions, 0x20) == "-");
  CHECK(at(map.functions, 0x30) == "last");
}

TEST_CASE("text that is no perf map is an error, an empty map is not") {
  CHECK(parse_perf_map("").ok());
  CHECK(parse_perf_map("\n\n").ok());
  CHECK(parse_perf_map("root:*:19000:0:99999:7:::\n").error().message() ==
        "not a perf map: no line is of the form START SIZE name");
}

TEST_CASE("where lines of a perf map overlap the last one counts, and the others keep the rest") {
  const PerfMap map = parse_perf_map("100 100 old\n140 40 new\n80 90 newer\n150 1 newest\n").value();
  CHECK(at(map.functions, 0x80) == "newer");
  CHECK(at(map.functions, 0x10f) == "newer");
  CHECK(at(map.functions, 0x110) == "old");
  CHECK(at(map.functions, 0x140) == "new");
  CHECK(at(map.functions, 0x150) == "newest");
  CHECK(at(map.functions, 0x151) == "new");
  CHECK(at(map.functions, 0x180) == "old");
  CHECK(at(map.functions, 0x1ff) == "old");
  CHECK(at(map.functions, 0x200) == "-");
}

TEST_CASE("any set of ranges gives each address the last range that holds it") {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    JitRanges ranges;
    std::vector<std::string> names(64);
    std::map<std::uint64_t, std::string> truth;
    const auto count = 1 + random() % 40;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t start = random() % 200;
      const std::uint64_t size = random() % (round % 2 == 0 ? 20 : 120);
      names[i] = "f" + std::to_string(i);
      if (!ranges.add(start, size, names[i])) continue;
      for (std::uint64_t address = start; address < start + size; ++address) truth[address] = names[i];
    }
    const SymbolTable table = std::move(ranges).build(1 << 20).value();
    for (std::uint64_t address = 0; address < 400; ++address) {
      INFO(round << " " << address);
      CHECK(at(table, address) == (truth.count(address) != 0 ? truth[address] : "-"));
    }
  }
}

TEST_CASE("the pieces that split ranges leave are limited") {
  JitRanges ranges;
  const std::string name(4000, 'x');
  ranges.add(0, 1'000'000, name);
  for (std::uint64_t i = 0; i < 1000; ++i) ranges.add(i * 1000, 1, "y");
  const bool built = std::move(ranges).build(1 << 20).ok();
  CHECK_FALSE(built);
}

TEST_CASE("a perf map is read from its start, whatever the descriptor's position") {
  const Fd file = file_of("10 10 one\n20 10 two\n");
  const SymbolTable table = read_perf_map(file.get()).value();
  CHECK(at(table, 0x10) == "one");
  CHECK(at(table, 0x2f) == "two");
}

TEST_CASE("the end of a too large perf map is read") {
  std::string text = "10 10 first\n";
  const std::string line = "20 10 " + std::string(4089, 'n') + "\n";
  while (text.size() <= kMaxPerfMapBytes) text += line;
  text += "30 10 last\n";
  const SymbolTable table = read_perf_map(file_of(text).get()).value();
  CHECK(at(table, 0x10) == "-");
  CHECK(at(table, 0x20).size() == 4089);
  CHECK(at(table, 0x30) == "last");
}

TEST_CASE("only regular files are read as perf maps") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const Fd reading(ends[0]), writing(ends[1]);
  CHECK(read_perf_map(reading.get()).error().message() == "not a regular file");
}

}  // namespace
}  // namespace flamed::symbolizer
