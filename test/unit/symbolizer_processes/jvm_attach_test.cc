// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/process/jvm_attach.h"

#include <unistd.h>

#include <chrono>
#include <string>

#include "base/file.h"
#include "symbolizer/process/proc_text.h"
#include "test/catch.h"
#include "test/unit/symbolizer_processes/fake_proc.h"

namespace flamed::symbolizer {
namespace {

using std::chrono::milliseconds;
using std::string_literals::operator""s;  // NOLINT(misc-unused-using-decls): clang-tidy 14 overlooks literals

/// This process, which has no JVM, as if it had one.
struct Fixture {
  Fixture() {
    const std::string stat = read_file("/proc/self/stat", 4096).value();
    owner = {::getpid(), parse_stat(stat)->start_ticks};
    put("stat", stat);
    put("status", status("0000000000000004"));
    put("maps", test::code_line(0x1000, 0x2000, 0, 5, "/opt/jdk/lib/server/libjvm.so"));
    put("cmdline", "java\0-jar\0app.jar\0"s);
    put("environ", "A=b\0"s);
    std::filesystem::create_directories(proc.path(std::to_string(owner.pid) + "/root/tmp"));
  }
  void put(const std::string& file, const std::string& text) const {
    proc.write(std::to_string(owner.pid) + "/" + file, text);
  }
  [[nodiscard]] static std::string status(const std::string& caught) {
    const std::string uid = std::to_string(::geteuid()), gid = std::to_string(::getegid());
    return "Uid:\t" + uid + "\t" + uid + "\t" + uid + "\t" + uid + "\nGid:\t" + gid + "\t" + gid + "\t" + gid + "\t" +
           gid + "\nNSpid:\t" + std::to_string(owner_pid()) + "\t17\nSigCgt:\t" + caught + "\n";
  }
  [[nodiscard]] static int owner_pid() { return ::getpid(); }
  [[nodiscard]] std::string ask() const {
    const Status asked = ask_for_perf_map(owner, proc.path().string(), milliseconds(200));
    return asked ? "asked" : asked.error().message();
  }

  test::TemporaryDirectory proc;
  ProcessId owner;
};

TEST_CASE("a JVM's answer of 0 is success, and others give the reason") {
  CHECK(parse_jvm_answer("0\n").ok());
  CHECK(parse_jvm_answer("0\nDumped code heap\n").ok());
  CHECK(parse_jvm_answer("").error().message() == "the JVM refused");
  CHECK(parse_jvm_answer("101\n").error().message() == "the JVM refused");
  CHECK(parse_jvm_answer("1\nno \x1b[31mroom\nat x.y()\n").error().message() ==
        "the JVM refused: no \xEF\xBF\xBD[31mroom");
  CHECK(parse_jvm_answer("1\njava.lang.IllegalArgumentException: Unknown diagnostic command\n").error().message() ==
        "the JVM can't write a perf map: JDK 17 or later is needed");
}

// Each of these would end this process if the signal were sent, since it has no handler for SIGQUIT.

TEST_CASE("a process without a JVM is not asked") {
  const Fixture fixture;
  fixture.put("maps", test::code_line(0x1000, 0x2000, 0, 5, "/usr/bin/program"));
  CHECK(fixture.ask() == "it has no JVM in it");
}

TEST_CASE("a JVM that does not handle SIGQUIT is not asked") {
  const Fixture fixture;
  fixture.put("status", Fixture::status("fffffffffffffffb"));
  CHECK(fixture.ask() == "the JVM does not handle SIGQUIT (is it just starting, or started with -Xrs?)");
}

TEST_CASE("a JVM with attaching disabled is not asked, wherever that was set") {
  const std::string words = "the JVM was started with -XX:+DisableAttachMechanism";
  const Fixture fixture;
  fixture.put("cmdline", "java\0-XX:+DisableAttachMechanism\0"s);
  CHECK(fixture.ask() == words);
  fixture.put("cmdline", "java\0"s);
  fixture.put("environ", "JAVA_TOOL_OPTIONS=-Xmx1g -XX:+DisableAttachMechanism\0"s);
  CHECK(fixture.ask() == words);
}

TEST_CASE("a pid's next process is not asked") {
  Fixture fixture;
  fixture.owner.start_ticks += 1;
  CHECK(fixture.ask() == "the process has ended");
}

TEST_CASE("only a socket of the JVM's own user is connected to") {
  const Fixture fixture;
  fixture.put("root/tmp/.java_pid17", "a file");
  CHECK(fixture.ask() == "/tmp/.java_pid17 is not the JVM's socket");
}

TEST_CASE("a link in place of /tmp does not lead out of the process's root") {
  const Fixture fixture;
  const std::string root = fixture.proc.path(std::to_string(fixture.owner.pid) + "/root");
  std::filesystem::remove(root + "/tmp");
  std::filesystem::create_symlink("/usr", root + "/tmp");
  CHECK(fixture.ask() == "cannot enter the JVM's /tmp: No such file or directory");
}

}  // namespace
}  // namespace flamed::symbolizer
