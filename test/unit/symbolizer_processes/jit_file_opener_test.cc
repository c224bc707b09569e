// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/opener/jit_file_opener.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>

#include "base/file.h"
#include "test/catch.h"
#include "test/unit/symbolizer_processes/fake_proc.h"

namespace flamed::symbolizer {
namespace {

constexpr ProcessId kOwner{4242, 777};

std::string status_text(std::uint32_t uid, const std::string& pids) {
  const std::string ids = "\t" + std::to_string(uid) + "\t" + std::to_string(uid) + "\t" + std::to_string(uid) + "\t" +
                          std::to_string(uid) + "\n";
  return "Name:\tprogram\nUid:" + ids + "Gid:" + ids + "NSpid:\t" + pids + "\nSigCgt:\t0000000000000000\n";
}

/// A process of this user, with a folder of the test as its root, and pid 17 in its pid namespace.
struct Fixture {
  Fixture() {
    process.pid = kOwner.pid;
    process.start_ticks = kOwner.start_ticks;
    process.executable = "/usr/bin/program";
    put(process);
    std::filesystem::create_directories(root() + "/tmp");
  }
  /// The current process, still pid 17 in its own namespace.
  void put(const test::FakeProcess& now) const {
    proc.put(now);
    put_status(::getuid());
  }
  void put_status(std::uint32_t uid, const std::string& pids = "4242\t17") const {
    proc.directory().write("4242/status", status_text(uid, pids));
  }
  [[nodiscard]] std::string root() const { return proc.path() + "/4242/root"; }
  std::string write(const std::string& name, const std::string& text) const {
    return proc.directory().write("4242/root" + name, text);
  }
  [[nodiscard]] JitFiles open(const JitFiles* known = nullptr) const {
    return with_known(find_jit_files(kOwner, proc.path()), known);
  }

  test::FakeProc proc;
  test::FakeProcess process;
};

std::string text_of(const JitFiles& files) {
  INFO(files.why_none);
  REQUIRE(files.files.size() == 1);
  REQUIRE(::lseek(files.files[0]->file.get(), 0, SEEK_SET) == 0);
  return read_fd(files.files[0]->file.get(), 1 << 20).value();
}

TEST_CASE("a perf map is found in the process's root, by the pid in its own namespace") {
  const Fixture fixture;
  fixture.write("/tmp/perf-4242.map", "of another process");
  fixture.write("/tmp/perf-17.map", "its own");
  const JitFiles found = fixture.open();
  CHECK(text_of(found) == "its own");
  CHECK(found.files[0]->format == JitFormat::kPerfMap);
  CHECK(found.files[0]->path == "/tmp/perf-17.map");
  CHECK(found.why_none.empty());
}

TEST_CASE("a perf map is found in the folder that the process's environment names") {
  const Fixture fixture;
  const std::string where = GENERATE("TMPDIR", "DOTNET_PerfMapJitDumpPath", "argument");
  CAPTURE(where);
  fixture.write("/var/maps/perf-17.map", "elsewhere");
  using std::string_literals::operator""s;
  if (where == "argument")
    fixture.proc.directory().write("4242/cmdline", "node\0--perf-basic-prof-path=/var/maps\0app.js\0"s);
  else
    fixture.proc.directory().write("4242/environ", "A=b\0"s + where + "=/var/maps\0Z=\0"s);
  CHECK(text_of(fixture.open()) == "elsewhere");
}

TEST_CASE("folders that are not absolute or do not end are ignored") {
  const Fixture fixture;
  using std::string_literals::operator""s;
  fixture.proc.directory().write("4242/environ", "TMPDIR=\0TMPDIR=var\0TMPDIR=/"s + std::string(10'000, 'x'));
  CHECK(fixture.open().why_none.find("no /tmp/perf-17.map") != std::string::npos);
}

TEST_CASE("a file that is not regular is not used as a perf map, and does not block") {
  const Fixture fixture;
  const std::string map = fixture.root() + "/tmp/perf-17.map";
  const std::string kind = GENERATE("a symbolic link", "a FIFO", "a folder", "a socket");
  if (kind == "a symbolic link") std::filesystem::create_symlink(fixture.write("/tmp/other", "secret"), map);
  if (kind == "a FIFO") REQUIRE(::mkfifo(map.c_str(), 0600) == 0);
  if (kind == "a folder") REQUIRE(::mkdir(map.c_str(), 0700) == 0);
  if (kind == "a socket") REQUIRE(::mknod(map.c_str(), S_IFSOCK | 0600, 0) == 0);
  const JitFiles found = fixture.open();
  CHECK(found.files.empty());
  CHECK(found.why_none == "/tmp/perf-17.map is " + kind + ", not a file: not used");
}

TEST_CASE("a device is not used as a perf map") {
  const Fixture fixture;
  if (::mknod((fixture.root() + "/tmp/perf-17.map").c_str(), S_IFCHR | 0600, makedev(1, 3)) != 0) return;  // not root
  CHECK(fixture.open().why_none == "/tmp/perf-17.map is a device, not a file: not used");
}

TEST_CASE("another user's file is not used as a perf map") {
  const Fixture fixture;
  fixture.write("/tmp/perf-17.map", "x");
  const std::uint32_t us = ::getuid();
  fixture.put_status(us + 1);
  if (us == 0) {
    // Root may write maps for others.
    REQUIRE(::chmod((fixture.root() + "/tmp/perf-17.map").c_str(), 0644) == 0);
    CHECK(text_of(fixture.open()) == "x");
    REQUIRE(::chmod((fixture.root() + "/tmp/perf-17.map").c_str(), 0640) == 0);
    CHECK(fixture.open().why_none == "/tmp/perf-17.map may be read by root alone: not used");
    REQUIRE(::chown((fixture.root() + "/tmp/perf-17.map").c_str(), 1001, 1001) == 0);
    fixture.put_status(1000);
    CHECK(fixture.open().why_none == "/tmp/perf-17.map belongs to uid 1001, not to the process's 1000: not used");
  } else {
    CHECK(fixture.open().why_none == "/tmp/perf-17.map belongs to uid " + std::to_string(us) +
                                         ", not to the process's " + std::to_string(us + 1) + ": not used");
  }
}

TEST_CASE("the user who started a set-user-ID program can't name its code") {
  if (::getuid() != 0) return;  // only root can change a file's owner
  const Fixture fixture;
  REQUIRE(::chown(fixture.write("/tmp/perf-17.map", "x").c_str(), 1000, 1000) == 0);
  fixture.put_status(1000);
  CHECK(text_of(fixture.open()) == "x");
  fixture.proc.directory().write("4242/status",
                                 "Name:\tprogram\nUid:\t1000\t0\t0\t0\nGid:\t1000\t1000\t1000\t1000\n"
                                 "NSpid:\t4242\t17\nSigCgt:\t0000000000000000\n");
  CHECK(fixture.open().why_none == "/tmp/perf-17.map belongs to uid 1000, not to the process's 0: not used");
}

TEST_CASE("a file that has other names is not used as a perf map") {
  const Fixture fixture;
  std::filesystem::create_hard_link(fixture.write("/tmp/secret", "x"), fixture.root() + "/tmp/perf-17.map");
  CHECK(fixture.open().why_none == "/tmp/perf-17.map has more than one name (hard links): not used");
}

TEST_CASE("a folder in a perf map's path may be a link, but only to the process's own files") {
  const Fixture fixture;
  const test::TemporaryDirectory host;
  host.write("perf-17.map", "of the host");
  using std::string_literals::operator""s;
  fixture.proc.directory().write("4242/environ", "TMPDIR=/link\0"s);
  std::filesystem::create_symlink(host.path(), fixture.root() + "/link");
  CHECK(fixture.open().files.empty());
  fixture.write(host.path("perf-17.map"), "of the container");
  CHECK(text_of(fixture.open()) == "of the container");
}

TEST_CASE("files on a file system that may not answer are not looked up") {
  const Fixture fixture;
  fixture.proc.directory().write("4242/mountinfo",
                                 "22 1 8:1 / / rw - ext4 /dev/vda1 rw\n23 22 0:9 / /tmp rw - nfs4 server:/tmp rw\n");
  fixture.write("/tmp/perf-17.map", "x");
  CHECK(fixture.open().why_none ==
        "/tmp/perf-17.map lies on nfs4, which may not answer: not used; have it written to a disk of this machine");
}

TEST_CASE("files behind links to a file system that may not answer are not used") {
  const Fixture fixture;
  const std::string file = fixture.write("/net/perf-17.map", "x");
  struct stat status {};
  REQUIRE(::stat(file.c_str(), &status) == 0);
  using std::string_literals::operator""s;
  fixture.proc.directory().write("4242/environ", "TMPDIR=/link\0"s);
  std::filesystem::create_symlink("net", fixture.root() + "/link");
  CHECK(text_of(fixture.open()) == "x");
  char line[128];
  std::snprintf(line, sizeof line, "22 1 %u:%u / /net rw - fuse.sshfs host:/ rw\n", major(status.st_dev),
                minor(status.st_dev));
  fixture.proc.directory().write("4242/mountinfo", line);
  CHECK(fixture.open().why_none ==
        "/link/perf-17.map lies on fuse.sshfs, which may not answer: not used; have it written to a disk of this "
        "machine");
}

TEST_CASE("nothing is looked up if it is unknown which file systems may not answer") {
  const Fixture fixture;
  fixture.write("/tmp/perf-17.map", "x");
  const JitFiles known = fixture.open();
  fixture.proc.directory().write("4242/mountinfo", std::string((4U << 20) + 1, 'x'));
  CHECK(fixture.open().files.empty());
  CHECK(fixture.open().why_none.find("cannot find out where its files are") == 0);
  CHECK(fixture.open(&known).files == known.files);
}

TEST_CASE("a jitdump is found by its mapping") {
  const Fixture fixture;
  const std::string dump = fixture.write("/home/a/jit-17.dump", "JiTD");
  struct stat status {};
  REQUIRE(::stat(dump.c_str(), &status) == 0);
  char line[128];
  std::snprintf(line, sizeof line, "1000-2000 r-xp 00000000 %02x:%02x %llu  /home/a/jit-17.dump\n",
                major(status.st_dev), minor(status.st_dev), static_cast<unsigned long long>(status.st_ino));
  test::FakeProcess process = fixture.process;
  process.maps = line;
  fixture.put(process);
  const JitFiles found = fixture.open();
  CHECK(text_of(found) == "JiTD");
  CHECK(found.files[0]->format == JitFormat::kJitDump);
  CHECK(found.files[0]->path == "/home/a/jit-17.dump");

  const std::string map = fixture.write("/tmp/perf-17.map", "x");
  CHECK(fixture.open().files.size() == 2);

  std::filesystem::remove(map);
  std::snprintf(line, sizeof line, "22 1 %u:%u / /home rw - fuse.sshfs host:/ rw\n", major(status.st_dev),
                minor(status.st_dev));
  fixture.proc.directory().write("4242/mountinfo", line);
  CHECK(fixture.open().why_none ==
        "/home/a/jit-17.dump lies on fuse.sshfs, which may not answer: not used; have it written to a disk of this "
        "machine");
}

TEST_CASE("a file that is open already stays open, also when its name, or the process, is gone") {
  const Fixture fixture;
  const std::string map = fixture.write("/tmp/perf-17.map", "kept");
  const JitFiles first = fixture.open();
  REQUIRE(first.files.size() == 1);
  CHECK(fixture.open(&first).files == first.files);
  std::filesystem::remove(map);
  CHECK(fixture.open(&first).files == first.files);
  fixture.proc.remove(kOwner.pid);
  const JitFiles last = fixture.open(&first);
  CHECK(last.files == first.files);
  CHECK(text_of(last) == "kept");
}

TEST_CASE("a file that replaced the open one is opened instead") {
  const Fixture fixture;
  const std::string map = fixture.write("/tmp/perf-17.map", "old");
  const JitFiles first = fixture.open();
  std::filesystem::rename(fixture.write("/tmp/new", "new"), map);
  CHECK(text_of(fixture.open(&first)) == "new");
}

TEST_CASE("the pid's next process is not used") {
  const Fixture fixture;
  fixture.write("/tmp/perf-17.map", "x");
  test::FakeProcess next = fixture.process;
  next.start_ticks += 1;
  fixture.put(next);
  CHECK(fixture.open().why_none == "the process ended before its perf maps and jitdumps were looked for");
}

TEST_CASE("without a map the reason has advice for the program") {
  const Fixture fixture;
  const std::string none = "no file behind this memory, and no /tmp/perf-17.map that names JIT code";
  CHECK(fixture.open().why_none == none);
  test::FakeProcess process = fixture.process;
  process.executable = "/usr/bin/node (deleted)";
  fixture.put(process);
  CHECK(fixture.open().why_none == none + ": start node with --perf-basic-prof");
  process.executable = "/opt/python/bin/python3.12";
  fixture.put(process);
  CHECK(fixture.open().why_none == none + ": start python with -X perf (3.12 and later)");
  // Whatever the name of the program with the JVM.
  process.maps = test::code_line(0x1000, 0x2000, 0, 5, "/opt/jdk/lib/server/libjvm.so");
  fixture.put(process);
  CHECK(fixture.open().why_none.find("jcmd PID Compiler.perfmap") != std::string::npos);
}

}  // namespace
}  // namespace flamed::symbolizer
