// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/process/proc_text.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "test/catch.h"

namespace flamed::symbolizer {
namespace {

TEST_CASE("a line of a mapped file has its addresses, offset, file and path") {
  const auto line = parse_maps_line("7f2c7a000000-7f2c7a021000 r-xp 00028000 fe:01 1234567    /usr/lib/libc.so.6");
  REQUIRE(line);
  CHECK(line->start == 0x7f2c7a000000);
  CHECK(line->end == 0x7f2c7a021000);
  CHECK(line->file_offset == 0x28000);
  CHECK(line->executable);
  CHECK(line->file == FileKey{0xfe, 1, 1'234'567});
  CHECK(line->path == "/usr/lib/libc.so.6");
}

TEST_CASE("device numbers may be longer than two digits") {
  const auto line = parse_maps_line("1000-2000 r-xp 00000000 103:10005 9 /a");
  REQUIRE(line);
  CHECK(line->file == FileKey{0x103, 0x10005, 9});
}

TEST_CASE("the mark of a deleted file is not part of its path") {
  CHECK(parse_maps_line("1000-2000 r-xp 00000000 00:01 5  /memfd:jit (deleted)")->path == "/memfd:jit");
  CHECK(parse_maps_line("1000-2000 r-xp 00000000 00:01 5  /a (deleted) (deleted)")->path == "/a (deleted)");
  CHECK(without_deleted_mark("/bin/true (deleted)") == "/bin/true");
  CHECK(without_deleted_mark("/bin/true") == "/bin/true");
}

TEST_CASE("blanks and escapes in a path stay as they are") {
  CHECK(parse_maps_line("1000-2000 r-xp 00000000 08:01 5       /opt/my program/bin  x")->path ==
        "/opt/my program/bin  x");
  CHECK(parse_maps_line("1000-2000 r-xp 00000000 08:01 5 /a\\012b")->path == "/a\\012b");
}

TEST_CASE("memory without a file has the kernel's name for it or none") {
  const auto vdso = parse_maps_line("7ffe5b1f9000-7ffe5b1fb000 r-xp 00000000 00:00 0                 [vdso]");
  REQUIRE(vdso);
  CHECK_FALSE(vdso->file.is_file());
  CHECK(vdso->path == "[vdso]");
  for (const std::string_view text : {"1000-2000 rwxp 00000000 00:00 0", "1000-2000 rwxp 00000000 00:00 0 ",
                                      "1000-2000 rwxp 00000000 00:00 0        "}) {
    CAPTURE(text);
    const auto anonymous = parse_maps_line(text);
    REQUIRE(anonymous);
    CHECK(anonymous->executable);
    CHECK_FALSE(anonymous->file.is_file());
    CHECK(anonymous->path.empty());
  }
}

TEST_CASE("the highest page, the vsyscall's, is an ordinary mapping") {
  const auto line =
      parse_maps_line("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]");
  REQUIRE(line);
  CHECK(line->start == 0xffffffffff600000);
  CHECK(line->executable);
}

TEST_CASE("a line that the kernel does not write is refused") {
  for (const std::string_view text : {
           "",
           "1000",
           "1000-",
           "1000-2000",
           "1000-2000 ",
           "1000-2000 r-x",
           "1000-2000 r-xp",
           "1000-2000 r-xp ",
           "1000-2000 r-xp 0",
           "1000-2000 r-xp 0 08:01",
           "1000-2000 r-xp 0 08:01 ",
           "1000-2000 r-xp 0 08 5 /a",
           "1000-2000 r-xp 0 08:01 x /a",
           "1000-2000 r-xp 0 08:01 5x",
           "1000-2000 r-xp 0 08:01 5/a",
           "1000-2000 r-xp -1 08:01 5 /a",
           "1000 2000 r-xp 0 08:01 5 /a",
           "2000-1000 r-xp 0 08:01 5 /a",
           "1000-1000 r-xp 0 08:01 5 /a",
           "-1000-2000 r-xp 0 08:01 5 /a",
           "g000-2000 r-xp 0 08:01 5 /a",
           "1ffffffffffffffff-2000 r-xp 0 08:01 5 /a",
           "1000-1ffffffffffffffff r-xp 0 08:01 5 /a",
           "1000-2000 r-xp 1ffffffffffffffff 08:01 5 /a",
           "1000-2000 r-xp 0 100000000:01 5 /a",
           "1000-2000 r-xp 0 08:01 18446744073709551616 /a",
           "Rss:                 4 kB",
       }) {
    CAPTURE(text);
    CHECK_FALSE(parse_maps_line(text));
  }
}

TEST_CASE("every prefix of a valid line is read or refused within its bytes") {
  const std::string whole = "7f2c7a000000-7f2c7a021000 r-xp 00028000 fe:01 1234567    /usr/lib/libc.so.6";
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::string cut = whole.substr(0, size);  // a string of its own, so that the sanitizer catches reads past it
    const auto line = parse_maps_line(cut);
    // The shortest prefix that is still a mapping ends with the first digit of the inode.
    CHECK(line.has_value() == (size > whole.find("1234567")));
  }
}

TEST_CASE("only the executable mappings of a text are kept, in order, without malformed lines") {
  const std::vector<MapsLine> lines = parse_executable_maps(
      "1000-2000 r--p 00000000 08:01 5 /a\n"
      "2000-3000 r-xp 00001000 08:01 5 /a\n"
      "not a line\n"
      "\n"
      "5000-6000 rw-p 00000000 00:00 0\n"
      "6000-7000 rwxs 00000000 00:00 0\n"
      "8000-9000 --xp 00000000 00:00 0 [vsyscall]");
  REQUIRE(lines.size() == 3);
  CHECK(lines[0].path == "/a");
  CHECK(lines[1].start == 0x6000);
  CHECK(lines[2].path == "[vsyscall]");
  CHECK(parse_executable_maps("").empty());
}

TEST_CASE("stat has comm, state, parent, CPU time and start time") {
  const auto stat = parse_stat("42 (bash) S 41 42 42 34816 50 4194304 1 2 3 4 5 6 7 8 20 0 1 0 123456 1000 200 1\n");
  REQUIRE(stat);
  CHECK(stat->comm == "bash");
  CHECK(stat->state == 'S');
  CHECK(stat->parent_pid == 41);
  CHECK(stat->cpu_ticks == 5 + 6);
  CHECK(stat->start_ticks == 123'456);
}

TEST_CASE("a comm may have blanks, parentheses and newlines, or be empty") {
  const std::string rest = " R 1 1 1 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 77 1000 200\n";
  for (const std::string comm : {"a b", "(sd-pam)", "a) R 9 (b", ":-) (", "x\ny", "", "))))"}) {
    CAPTURE(comm);
    const std::string text = std::string("42 (").append(comm).append(")").append(rest);
    const auto stat = parse_stat(text);
    REQUIRE(stat);
    CHECK(stat->comm == comm);
    CHECK(stat->parent_pid == 1);
    CHECK(stat->start_ticks == 77);
  }
}

TEST_CASE("a stat that is cut off or garbled is refused") {
  const std::string whole = "42 (bash) S 41 42 42 34816 50 4194304 1 2 3 4 5 6 7 8 20 0 1 0 123456 ";
  REQUIRE(parse_stat(whole));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::string cut = whole.substr(0, size);
    CAPTURE(cut);
    CHECK_FALSE(parse_stat(cut));
  }
  CHECK_FALSE(parse_stat("42 )bash( S 41 42 42 34816 50 4194304 1 2 3 4 5 6 7 8 20 0 1 0 123456 1"));
  CHECK_FALSE(parse_stat("42 (bash) S x 42 42 34816 50 4194304 1 2 3 4 5 6 7 8 20 0 1 0 123456 1"));
  CHECK_FALSE(parse_stat("42 (bash) S 41 42 42 34816 50 4194304 1 2 3 4 5 6 7 8 20 0 1 0 -5 1"));
  CHECK_FALSE(parse_stat("42 (bash) S 41 42 42 34816 50 4194304 1 2 3 4 5 6 7 8 20 0 1 0 99999999999999999999 1"));
}

}  // namespace
}  // namespace flamed::symbolizer
