// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/process/executable_lines.h"

#include <cerrno>
#include <cstdint>
#include <string>

#include "symbolizer/process/proc_text.h"
#include "test/catch.h"
#include "test/unit/symbolizer_processes/fake_proc.h"

namespace flamed::symbolizer {
namespace {

const std::string kCode = test::code_line(0x400000, 0x410000, 0x1000, 7, "/bin/sh");
const std::string kData = "410000-420000 rw-p 00011000 08:01 7                     /bin/sh x\n";

TEST_CASE("only a process's executable mappings are read, in their order") {
  const test::TemporaryDirectory directory;
  const std::string vsyscall = "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0    [vsyscall]\n";
  CHECK(read_executable_lines(directory.write("maps", kData + kCode + kData + vsyscall)).value() == kCode + vsyscall);
  CHECK(read_executable_lines(directory.write("maps", "")).value().empty());
  CHECK(read_executable_lines(directory.write("maps", "no blank\n\n x\n--xp\n")).value().empty());
  CHECK(parse_executable_maps(read_executable_lines("/proc/self/maps").value()).size() > 2);
}

TEST_CASE("a last line without a newline is read, too") {
  const test::TemporaryDirectory directory;
  const std::string cut = kCode.substr(0, kCode.size() - 1);
  CHECK(read_executable_lines(directory.write("maps", kData + cut)).value() == cut);
}

TEST_CASE("lines are split correctly wherever a read ends") {
  const test::TemporaryDirectory directory;
  std::string all;
  std::string wanted;
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    const std::string line =
        test::code_line(0x1000ULL * (i + 1), 0x1000ULL * (i + 2), 0, 5, "/lib/" + std::to_string(i));
    all += kData + line;
    wanted += line;
  }
  CHECK(read_executable_lines(directory.write("maps", all)).value() == wanted);
}

TEST_CASE("only executable mappings count towards the limit") {
  const test::TemporaryDirectory directory;
  const auto times = [](const std::string& line, std::size_t bytes) {
    std::string text;
    while (text.size() <= bytes) text += line;
    return text;
  };
  CHECK(read_executable_lines(directory.write("maps", times(kData, 17U << 20) + kCode)).value() == kCode);
  const Result<std::string> refused = read_executable_lines(directory.write("maps", times(kCode, 17U << 20)));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code() == EFBIG);
  CHECK(refused.error().message().find("more than 16 MiB of executable mappings") != std::string::npos);
}

TEST_CASE("an unreadable file is an error that names it") {
  const Result<std::string> none = read_executable_lines("/nowhere/maps");
  REQUIRE_FALSE(none);
  CHECK(none.error().message().find("/nowhere/maps") != std::string::npos);
}

}  // namespace
}  // namespace flamed::symbolizer
