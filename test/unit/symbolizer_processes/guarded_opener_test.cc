// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/opener/guarded_opener.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <thread>

#include "base/file.h"
#include "symbolizer/opener/jit_file_opener.h"
#include "symbolizer/process/direct_root_files.h"
#include "test/catch.h"
#include "test/support/manual_clock.h"
#include "test/unit/symbolizer_processes/fake_proc.h"

namespace flamed::symbolizer {
namespace {

constexpr std::int32_t kPid = 4242;
constexpr std::int32_t kStranger = 4243;
constexpr std::uint64_t kStartTicks = 777;

std::string status_text(std::uint32_t uid, std::int32_t pid) {
  const std::string ids = "\t" + std::to_string(uid) + "\t" + std::to_string(uid) + "\t" + std::to_string(uid) + "\t" +
                          std::to_string(uid) + "\n";
  return "Name:\tprogram\nUid:" + ids + "Gid:" + ids + "NSpid:\t" + std::to_string(pid) +
         "\nSigCgt:\t0000000000000000\n";
}

/// Two processes of two users, each with a root of its own, and helpers. A script replaces the first helper.
struct Fixture {
  explicit Fixture(const std::string& first = "", std::int64_t limit_ns = 10 * kNsPerSecond) {
    add(kPid, ::getuid());
    add(kStranger, ::getuid() + 1);
    const std::string mark = proc.directory().path("mark");
    const std::string script = proc.directory().write("helper", "#!/bin/sh\nif ! [ -e " + mark + " ]; then : > " +
                                                                    mark + "; " + (first.empty() ? "true" : first) +
                                                                    "; fi\nexec " + OPEN_HELPER_PROGRAM + " \"$1\"\n");
    REQUIRE(::chmod(script.c_str(), 0700) == 0);
    opener.emplace(clock, GuardedOpener::Options{.program = script, .proc = proc.path(), .limit_ns = limit_ns});
  }
  void add(std::int32_t pid, std::uint32_t uid) const {
    test::FakeProcess process;
    process.pid = pid;
    process.start_ticks = kStartTicks;
    proc.put(process);
    proc.directory().write(std::to_string(pid) + "/status", status_text(uid, pid));
    std::filesystem::create_directories(proc.path() + "/" + std::to_string(pid) + "/root/tmp");
  }
  std::string write(const std::string& name, const std::string& text, std::int32_t pid = kPid) const {
    return proc.directory().write(std::to_string(pid) + "/root" + name, text);
  }
  /// The processes see the mounts that there are.
  void see_mounts() const {
    for (const std::int32_t pid : {kPid, kStranger}) {
      proc.directory().write(std::to_string(pid) + "/mountinfo", read_file("/proc/self/mountinfo", 4U << 20).value());
    }
  }
  /// A module that no process maps: it is opened by its path.
  [[nodiscard]] Result<Fd> open_module(const std::string& path, std::int32_t pid = kPid) {
    struct stat status {};
    ::stat((proc.path() + "/" + std::to_string(pid) + "/root" + path).c_str(), &status);
    const FileKey key{major(status.st_dev), minor(status.st_dev), status.st_ino};
    // The test's disk looks as if it were mounted as the root.
    proc.directory().write(std::to_string(pid) + "/mountinfo", "22 1 " + std::to_string(key.device_major) + ":" +
                                                                   std::to_string(key.device_minor) +
                                                                   " / / rw - ext4 /dev/vda1 rw\n");
    return opener->open_module({ModuleId{16}, key, path, pid, 1, 0x1000, 0x2000});
  }
  /// A module of the test, which is beside its other files.
  [[nodiscard]] FileOwner owner() const {
    struct stat status {};
    REQUIRE(::stat(proc.path().c_str(), &status) == 0);
    return {status.st_uid, status.st_dev};
  }
  std::vector<RootFile> open(const std::vector<std::string>& paths, std::int32_t pid = kPid) {
    return opener->open(pid, paths, owner());
  }
  Result<JitFiles> find_jit_files(std::int32_t pid = kPid) { return opener->find_jit_files({pid, kStartTicks}); }

  test::FakeProc proc;
  ManualClock clock{{0}, {0}};
  std::optional<GuardedOpener> opener;
};

/// A first helper that never answers. All helpers have the same time limit.
struct HangingFixture : Fixture {
  HangingFixture() : Fixture("exec sleep 1000", 3 * kNsPerSecond) {}
};

std::string text_of(const Fd& file) {
  REQUIRE(file);
  return read_fd(file.get(), 1 << 20).value();
}

TEST_CASE("the helper opens the right file") {
  Fixture fixture;
  fixture.write("/lib/a.so", "code");
  fixture.write("/tmp/perf-4242.map", "names");
  fixture.write("/usr/one", "1");
  fixture.write("/usr/two", "2");

  const Result<Fd> module = fixture.open_module("/lib/a.so");
  REQUIRE(module.ok());
  CHECK(text_of(*module) == "code");

  const Result<JitFiles> found = fixture.find_jit_files();
  REQUIRE(found.ok());
  REQUIRE(found->files.size() == 1);
  const JitFile& map = *found->files.front();
  CHECK(text_of(map.file) == "names");
  CHECK(map.path == "/tmp/perf-4242.map");
  CHECK(map.format == JitFormat::kPerfMap);
  struct stat status {};
  REQUIRE(::fstat(map.file.get(), &status) == 0);
  CHECK(map.inode == status.st_ino);
  CHECK(map.device == status.st_dev);
  CHECK(found->why_none.empty());

  const std::vector<RootFile> files = fixture.open({"/usr/one", "/usr/none", "/usr", "/usr/two"});
  REQUIRE(files.size() == 4);
  CHECK(text_of(files[0].file) == "1");
  CHECK_FALSE(files[1].file);
  CHECK_FALSE(files[2].file);
  CHECK(text_of(files[3].file) == "2");
  const std::vector<RootFile> direct =
      DirectRootFiles({.proc = fixture.proc.path()}).open(kPid, std::vector<std::string>{"/usr/one"}, fixture.owner());
  CHECK(files[0].is_local == direct[0].is_local);
  CHECK_FALSE(files[0].is_foreign);

  CHECK(fixture.opener->stats().hung == 0);
  CHECK(fixture.opener->stats().cpu_ns > 0);
}

TEST_CASE("the reason for a missing file is returned") {
  Fixture fixture;
  const Result<Fd> module = fixture.open_module("/lib/none.so");
  REQUIRE_FALSE(module.ok());
  CHECK(module.error().code() != ETIMEDOUT);
  CHECK(module.error().message().find("open none.so: No such file or directory") != std::string::npos);
  CHECK(fixture.find_jit_files()->why_none.starts_with("no file behind this memory"));
  const Result<JitFiles> ended = fixture.opener->find_jit_files({kPid, kStartTicks + 1});
  REQUIRE_FALSE(ended.ok());
  CHECK(ended.error().message() == "the process ended before its perf maps and jitdumps were looked for");
}

TEST_CASE("paths longer than any file's are left out") {
  Fixture fixture;
  fixture.write("/usr/one", "1");
  const std::string longest = "/" + std::string(4094, 'x');
  const std::vector<RootFile> files = fixture.open({longest + "x", longest, "/usr/one", longest});
  CHECK(text_of(files[2].file) == "1");
  CHECK_FALSE(files[0].file);
}

TEST_CASE("when a helper ends, another one gets its request") {
  Fixture fixture("exit 1");
  fixture.write("/usr/one", "1");
  CHECK(text_of(fixture.open({"/usr/one"}).front().file) == "1");
  CHECK(fixture.opener->stats().timeouts == 0);
}

TEST_CASE("a program that is not a helper is an error, and not a crash") {
  const test::FakeProc proc;
  const std::string program = GENERATE("/nonexistent/program", "/bin/true");
  const ManualClock clock({0}, {0});
  GuardedOpener opener(clock, {.program = program, .proc = proc.path()});
  CHECK_FALSE(opener.find_jit_files({kPid, kStartTicks}).ok());
  CHECK_FALSE(opener.open(kPid, std::vector<std::string>{"/usr/one"}, {}).front().file);
  CHECK(opener.stats().timeouts == 0);
}

TEST_CASE("while a user's paths hang, other users' files and the user's mapped ones are still opened") {
  HangingFixture fixture;
  fixture.write("/usr/one", "1");
  fixture.write("/usr/one", "1", kStranger);
  CHECK(fixture.find_jit_files().error().code() == ETIMEDOUT);
  CHECK(fixture.opener->stats().timeouts == 1);

  // Refused without a try, though the next helper would answer.
  CHECK(fixture.find_jit_files().error().code() == ETIMEDOUT);
  CHECK_FALSE(fixture.open({"/usr/one"}).front().file);
  CHECK(text_of(fixture.open({"/usr/one"}, kStranger).front().file) == "1");
  CHECK(fixture.find_jit_files(kStranger).ok());
  // Its mapping is opened nevertheless.
  const Result<Fd> mapped = fixture.open_module("/usr/one");
  REQUIRE_FALSE(mapped.ok());
  CHECK(mapped.error().message() ==
        "its process has ended or unmapped it; a file system does not answer (paths of user " +
            std::to_string(::getuid()) + ")");
  CHECK(text_of(fixture.open_module("/usr/one", kStranger).value()) == "1");
  CHECK(fixture.opener->stats().timeouts == 1);
}

TEST_CASE("files on a file system that does not answer are refused for all users, and others opened") {
  HangingFixture fixture;
  fixture.write("/usr/one", "1");
  for (const std::int32_t pid : {kPid, kStranger}) {
    fixture.proc.directory().write(std::to_string(pid) + "/mountinfo",
                                   "22 1 8:1 / / rw - ext4 /dev/vda1 rw\n23 22 0:77 / /net rw - nfs4 server:/ rw\n"
                                   "24 22 0:78 / /other rw - nfs4 server:/ rw\n");
  }
  const auto open = [&](std::uint32_t minor, std::int32_t pid) {
    return fixture.opener->open_module({ModuleId{16}, {0, minor, 5}, "/net/a.so", pid, 1, 0x1000, 0x2000});
  };
  CHECK(open(77, kPid).error().code() == ETIMEDOUT);
  CHECK(open(77, kPid).error().message() == "a file system does not answer (device 0:77)");
  CHECK(open(77, kStranger).error().code() == ETIMEDOUT);
  CHECK(open(78, kPid).error().message().starts_with("its process has ended or unmapped it"));
  fixture.write("/net/file", "far");
  fixture.write("/other/file", "far, too");
  const std::vector<RootFile> files = fixture.open({"/net/file", "/usr/one", "/other/file"});
  CHECK_FALSE(files[0].file);
  CHECK(text_of(files[1].file) == "1");
  CHECK(text_of(files[2].file) == "far, too");
  CHECK(fixture.opener->stats().timeouts == 1);
}

TEST_CASE("a file system that answers again is used again after a while") {
  HangingFixture fixture;
  fixture.write("/usr/one", "1");
  CHECK_FALSE(fixture.open({"/usr/one"}).front().file);
  CHECK(fixture.opener->stats().timeouts == 1);
  // The first helper was killed and is not blocked in a file system, so it ends.
  for (int i = 0; i < 3000 && fixture.opener->stats().hung != 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    CHECK_FALSE(fixture.open({"/usr/one"}).front().file);
  }
  CHECK(fixture.opener->stats().hung == 0);
  fixture.clock.advance_ns(29 * kNsPerSecond);
  CHECK_FALSE(fixture.open({"/usr/one"}).front().file);
  fixture.clock.advance_ns(2 * kNsPerSecond);
  CHECK(text_of(fixture.open({"/usr/one"}).front().file) == "1");
  CHECK(fixture.opener->stats().timeouts == 1);
}

TEST_CASE("if no user is known to own the links, paths that hang are refused by their folder") {
  HangingFixture fixture;
  const std::string one = fixture.write("/usr/one", "1");
  const std::string two = fixture.write("/lib/two", "2");
  CHECK_FALSE(fixture.open({one}, RootFiles::kHost).front().file);
  CHECK(fixture.opener->stats().timeouts == 1);
  CHECK_FALSE(fixture.open({one}, RootFiles::kHost).front().file);
  CHECK(text_of(fixture.open({two}, RootFiles::kHost).front().file) == "2");
  CHECK(fixture.opener->stats().timeouts == 1);
}

TEST_CASE("a stop does not wait, and neither do later requests") {
  Fixture fixture("exec sleep 1000", 1000 * kNsPerSecond);
  std::jthread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    fixture.opener->stop();
  });
  CHECK(fixture.find_jit_files().error().code() == ECANCELED);
  CHECK(fixture.find_jit_files().error().code() == ECANCELED);
  CHECK_FALSE(fixture.open({"/usr/one"}).front().file);
  CHECK(fixture.opener->stats().timeouts == 0);
}

/// Each request takes a second more.
class SlowClock final : public Clock {
 public:
  [[nodiscard]] MonotonicTime monotonic() const override { return {now_ns += kNsPerSecond}; }
  [[nodiscard]] WallTime wall() const override { return {}; }
  [[nodiscard]] std::int64_t boottime_ns() const override { return now_ns; }
  mutable std::int64_t now_ns = 0;
};

TEST_CASE("a slow place is left alone for a while, and others are opened meanwhile") {
  const Fixture files;
  files.write("/usr/one", "1");
  files.write("/usr/one", "1", kStranger);
  const SlowClock clock;
  GuardedOpener opener(clock, {.program = OPEN_HELPER_PROGRAM, .proc = files.proc.path()});
  const std::vector<std::string> path{"/usr/one"};
  REQUIRE(opener.find_jit_files({kStranger, kStartTicks}).ok());  // starts the helper
  CHECK(opener.open(kPid, path, files.owner()).front().file);
  CHECK_FALSE(opener.open(kPid, path, files.owner()).front().file);
  CHECK(opener.open(kStranger, path, files.owner()).front().file);
  clock.now_ns += 20 * kNsPerSecond;
  CHECK(opener.open(kPid, path, files.owner()).front().file);
  CHECK(opener.stats().timeouts == 0);
}

TEST_CASE("the helper copies sources, and the reason why one is not shown is returned") {
  if (::getuid() != 0) return;
  Fixture fixture;
  fixture.see_mounts();
  fixture.write("/src/a.c", "text");
  const auto copy = [&](const std::string& path, std::uint64_t start_ticks = kStartTicks) {
    return fixture.opener->copy_source(
        {{kPid, start_ticks}, path, 0, std::vector<std::uint32_t>(kMostSourceGroups, 7)});
  };
  const Result<SourceCopy> copied = copy("/src/a.c");
  REQUIRE(copied.ok());
  CHECK(text_of(copied->text) == "text");
  CHECK(copied->modified_ns > 0);
  CHECK(copy("/src/b.c").error().message() == "No such file or directory");
  CHECK(copy("/src/a.c", kStartTicks + 1).error().message() == "its process has ended");
  CHECK(copy("/" + std::string(10'000, 'x')).error().message() == "its path is not one of a file");
  CHECK(text_of(copy("/src/a.c")->text) == "text");
  CHECK(fixture.opener->copy_source({{4299, kStartTicks}, "/src/a.c"}).error().message() == "its process has ended");
}

TEST_CASE("while a user's sources hang, they are refused at once, and other users' are shown") {
  if (::getuid() != 0) return;
  HangingFixture fixture;
  fixture.see_mounts();
  fixture.write("/src/a.c", "text");
  fixture.write("/src/a.c", "other", kStranger);
  const auto copy = [&](std::int32_t pid) { return fixture.opener->copy_source({{pid, kStartTicks}, "/src/a.c"}); };
  CHECK(copy(kPid).error().code() == ETIMEDOUT);
  CHECK(copy(kPid).error().code() == ETIMEDOUT);
  CHECK(text_of(copy(kStranger)->text) == "other");
  CHECK(fixture.opener->stats().timeouts == 1);
}

}  // namespace
}  // namespace flamed::symbolizer
