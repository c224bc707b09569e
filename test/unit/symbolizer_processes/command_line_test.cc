// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/process/command_line.h"

#include <string>

#include "test/catch.h"

namespace flamed::symbolizer {
namespace {

/// Arguments with a NUL after each, as in the kernel's file.
std::string raw(std::initializer_list<std::string> arguments) {
  std::string text;
  for (const std::string& argument : arguments) (text += argument) += '\0';
  return text;
}

TEST_CASE("a command line is one line that can be split into its arguments again") {
  const auto full = [](const std::string& text) { return format_command_line(text, CommandLines::kFull); };
  CHECK(full(raw({"/usr/bin/make", "-j8", "all"})) == "/usr/bin/make -j8 all");
  CHECK(full(raw({"sh", "-c", "echo it's $HOME", ""})) == "sh -c 'echo it'\\''s $HOME' ''");
  CHECK(full(raw({"a program", "b"})) == "'a program' b");
  CHECK(full("nginx: master process /usr/sbin/nginx") == "nginx: master process /usr/sbin/nginx");
  CHECK(full("sshd: user [priv]" + std::string(40, '\0')) == "sshd: user [priv]");
  CHECK(full(raw({"alone"})) == "alone");
  CHECK(full("").empty());
  CHECK(full(std::string(10, '\0')).empty());
}

TEST_CASE("a command line is safe to print and bounded") {
  CHECK(format_command_line(raw({"a", "\x1b[2J\n", "\xff"}), CommandLines::kFull) == "a '\uFFFD[2J\uFFFD' \uFFFD");
  const std::string line = format_command_line(raw({"a", std::string(5000, '\'')}), CommandLines::kFull);
  CHECK(line.size() <= kCommandLineLimitBytes);
  CHECK(line.ends_with("..."));
  const std::string cut = std::string(kCommandLineLimitBytes, 'x');
  CHECK(format_command_line(cut, CommandLines::kFull).ends_with("x..."));
}

TEST_CASE("a redacted command line has the program and the names of options, but no values") {
  const auto redacted = [](const std::string& text) { return format_command_line(text, CommandLines::kRedacted); };
  CHECK(redacted(raw({"/bin/mysql", "-psecret", "-u", "root", "db"})) == "/bin/mysql -p*** -u ***");
  CHECK(redacted(raw({"curl", "--header", "Token: s", "--user=a:b", "-s", "http://u:p@h/"})) ==
        "curl --header *** --user=*** -s ***");
  CHECK(redacted(raw({"java", "-Xmx2g", "-jar", "x.jar", "--", "-"})) == "java -X*** -j*** *** -- ***");
  CHECK(redacted(raw({"app", "KEY=value", "", "x"})) == "app ***");
  CHECK(redacted("postgres: user db 10.0.0.1(4711) idle") == "postgres: ***");
  CHECK(redacted(raw({"alone"})) == "alone");
  CHECK(format_command_line(raw({"a", "b"}), CommandLines::kOff).empty());
}

}  // namespace
}  // namespace flamed::symbolizer
