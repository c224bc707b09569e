// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/process/process_details.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "test/catch.h"
#include "test/unit/symbolizer_processes/fake_proc.h"

namespace flamed::symbolizer {
namespace {

using test::FakeProcess;

struct Fixture {
  std::uint64_t make_cgroup(const std::string& path) const {
    std::filesystem::create_directories(cgroups.path(path.substr(1)));
    struct stat status {};
    REQUIRE(::stat(cgroups.path(path.substr(1)).c_str(), &status) == 0);
    return status.st_ino;
  }
  FakeProcess put(std::int32_t pid, const std::string& cgroup) const {
    FakeProcess process{pid, 5000};
    process.cmdline = std::string("cat\0-n\0", 7);
    process.cgroup = "0::" + cgroup + "\n";
    process.uid = 33;
    proc.put(process);
    return process;
  }

  test::FakeProc proc;
  test::TemporaryDirectory cgroups;
  ProcessDetails details{CommandLines::kFull, proc.path(), {cgroups.path().string()}};
};

TEST_CASE("a process is described by its effective user and its command line") {
  Fixture f;
  f.put(100, "/");
  const auto detail = f.details.read({100, 5000});
  REQUIRE(detail);
  CHECK(detail->uid == 33U);
  CHECK(detail->command_line == "cat -n");
}

TEST_CASE("a command line is read without the process's other details") {
  Fixture f;
  f.put(100, "/");
  CHECK(f.details.read_command_line(100) == "cat -n");
  CHECK(f.details.read_command_line(101).empty());
}

TEST_CASE("command lines are not read if they are turned off") {
  Fixture f;
  f.put(100, "/");
  const ProcessDetails details(CommandLines::kOff, f.proc.path());
  const auto detail = details.read({100, 5000});
  REQUIRE(detail);
  CHECK(detail->command_line.empty());
  CHECK(details.read_command_line(100).empty());
}

TEST_CASE("details of a pid's next process are not taken for the process's") {
  Fixture f;
  f.put(100, "/system.slice/next.service");
  CHECK_FALSE(f.details.read({100, 4999}));
  CHECK_FALSE(f.details.read({101, 5000}));
  CHECK(f.details.cgroup(77, {100, 4999}) == nullptr);
}

TEST_CASE("a cgroup is looked up once, and then known for ended processes") {
  Fixture f;
  const std::uint64_t id = f.make_cgroup("/system.slice/cron.service");
  f.put(100, "/system.slice/cron.service");
  const auto first = f.details.cgroup(id, {100, 5000});
  REQUIRE(first != nullptr);
  CHECK(first->path == "/system.slice/cron.service");
  CHECK(first->unit == "cron.service");
  CHECK(f.details.cgroup(id, {4711, 1}) == first);
}

TEST_CASE("a process that changed its cgroup does not name the one that it was sampled in") {
  Fixture f;
  const std::uint64_t before = f.make_cgroup("/before.slice");
  f.make_cgroup("/after.slice");
  f.put(100, "/after.slice");
  const auto now = f.details.cgroup(before, {100, 5000});
  REQUIRE(now != nullptr);
  CHECK(now->path == "/after.slice");
  CHECK(f.details.cgroup(before, {4711, 1}) == nullptr);
}

TEST_CASE("the root of an unused hierarchy does not stand for processes in those of version 1") {
  Fixture f;
  const std::uint64_t root = f.make_cgroup("/");
  FakeProcess process;
  process.pid = 100;
  process.start_ticks = 5000;
  process.cgroup = "1:name=systemd:/\n0::/\n";
  f.proc.put(process);
  REQUIRE(f.details.cgroup(root, {100, 5000}) != nullptr);
  CHECK(f.details.cgroup(root, {100, 5000})->path == "/");
  process.pid = 101;
  process.cgroup = "1:name=systemd:/system.slice/cron.service\n0::/\n";
  f.proc.put(process);
  REQUIRE(f.details.cgroup(root, {101, 5000}) != nullptr);
  CHECK(f.details.cgroup(root, {101, 5000})->unit == "cron.service");
}

TEST_CASE("a cgroup's name is made safe to print") {
  Fixture f;
  f.put(100, "/evil\x1b[2J.service");
  const auto cgroup = f.details.cgroup(1, {100, 5000});
  REQUIRE(cgroup != nullptr);
  CHECK(cgroup->path == "/evil\uFFFD[2J.service");
  CHECK(cgroup->unit == "evil\uFFFD[2J.service");
}

struct NamespaceFixture : Fixture {
  NamespaceFixture() {
    // Process 1 has the host's mount, from the hierarchy's root on. The container's own begins at its own group.
    for (const char* group : {"kubepods/pod1/flamed", "kubepods/pod1/other", "kubepods/pod2/web", "system.slice/a"}) {
      std::filesystem::create_directories(hosts + "/" + group);
    }
    std::filesystem::create_directory_symlink(hosts + "/kubepods/pod1/flamed", mount);
    put(1, "/../../../init.scope");
  }

  const std::string mount = cgroups.path("mount");
  const std::string hosts = proc.directory().path("1/root") + mount;
};

TEST_CASE("in a cgroup namespace cgroups have their paths in the host's hierarchy") {
  NamespaceFixture f;
  const Result<CgroupTree> tree = find_cgroup_tree(f.proc.path(), f.mount);
  REQUIRE(tree);
  CHECK(tree->mount == f.hosts);
  CHECK(tree->own == "/kubepods/pod1/flamed");

  ProcessDetails details(CommandLines::kFull, f.proc.path(), *tree);
  struct stat status {};
  REQUIRE(::stat((f.hosts + "/kubepods/pod2/web").c_str(), &status) == 0);
  f.put(100, "/../../pod2/web");
  const auto web = details.cgroup(status.st_ino, {100, 5000});
  REQUIRE(web != nullptr);
  CHECK(web->path == "/kubepods/pod2/web");
  CHECK(details.cgroup(status.st_ino, {4711, 1}) == web);
}

TEST_CASE("outside of a cgroup namespace the hierarchy is what is mounted") {
  NamespaceFixture f;
  f.put(1, "/init.scope");
  const Result<CgroupTree> tree = find_cgroup_tree(f.proc.path(), f.mount);
  REQUIRE(tree);
  CHECK(tree->mount == f.mount);
  CHECK(tree->own.empty());
}

TEST_CASE("a cgroup namespace whose root is not found is an error") {
  NamespaceFixture f;
  SECTION("it is not among those of process 1") {
    std::filesystem::remove_all(f.hosts + "/kubepods/pod1");
    std::filesystem::remove(f.mount);
    std::filesystem::create_directory(f.mount);
  }
  SECTION("it is at another level") { f.put(1, "/../init.scope"); }
  SECTION("process 1 can't be looked into") { std::filesystem::remove_all(f.proc.directory().path("1/root")); }
  CHECK_FALSE(find_cgroup_tree(f.proc.path(), f.mount));
}

}  // namespace
}  // namespace flamed::symbolizer
