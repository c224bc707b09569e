// SPDX-License-Identifier: Apache-2.0
//
// Processes by program, unit, container, user and tree, in a profile and in a table.
#include "store/query/process_groups.h"
#include "store/model/container_text.h"

#include <map>
#include <string>

#include "test/catch.h"
#include "test/unit/store/store_fixture.h"

namespace flamed::store::test {
namespace {

struct Host {
  Host() {
    add({{1, 0}, "systemd", "/usr/lib/systemd/systemd", 0, {}, {}}, 0, 0);
    ProcessInfo make{{10, 100}, "make", "/usr/bin/make", 0, {}, {}, 1, 0};
    make.unit = "build.service";
    make.cgroup = "/system.slice/build.service";
    add(make, 1000, 1);
    add({{11, 110}, "cc1plus", "/usr/lib/gcc/12/cc1plus", 0, {}, WallTime{1}, 10, 100}, 1000, 2);
    add({{12, 120}, "cc1plus", "/usr/lib/gcc/14/cc1plus", 0, {}, {}, 10, 100}, 1000, 4);
    add({{13, 130}, "kworker/0:1", "", 0, {}, {}, 2, 5}, 0, 8);
    ProcessInfo java{{14, 140}, "java", "/usr/bin/java", 0, {}, {}, 77, 70};
    java.container = std::string(64, 'a');
    java.cgroup = "/system.slice/docker-" + java.container + ".scope";
    add(java, kNoUser, 16);
  }
  void add(const ProcessInfo& info, std::uint32_t owner, int samples) {
    t.store.update_process(info);
    const std::vector<Frame> frames{code(16)};
    StackSample sample{t.clock.monotonic(), info.id, info.id.pid, info.comm, frames, {}};
    sample.owner = owner;
    for (int i = 0; i < samples; ++i) t.store.add(sample);
  }
  using Groups = std::map<std::string, std::uint64_t>;
  [[nodiscard]] Groups in_profile(Group by) const {
    TestNamer namer;
    QueryBudget budget;
    ProfileOptions options;
    options.group = by;
    const Profile profile = build_profile(t.store.snapshot(), {t.everything()}, options, namer, budget).value();
    Groups groups;
    for (const ProfileNode& node : profile.nodes) {
      if (&node != &profile.nodes.front() && node.parent == 0)
        groups[profile.frames[node.frame].name] = node.total_samples;
    }
    return groups;
  }
  [[nodiscard]] std::vector<GroupUsage> in_table(Group by, std::optional<std::uint32_t> user = {}) const {
    QueryBudget budget;
    const Snapshot all = t.store.snapshot();
    return group_usage(user ? seen_by(all, *user) : all, {t.everything()}, by, budget).value().rows;
  }
  TestStore t;
};

}  // namespace

TEST_CASE("processes are grouped by program, unit, container, user and tree, the same in a profile and in a table") {
  const Host host;
  const std::string id(64, 'a');
  const std::map<Group, Host::Groups> expected{
      {Group::kProgram, {{"make", 1}, {"cc1plus", 6}, {"kworker/0:1", 8}, {"java", 16}}},
      {Group::kExecutable,
       {{"/usr/bin/make", 1},
        {"/usr/lib/gcc/12/cc1plus", 2},
        {"/usr/lib/gcc/14/cc1plus", 4},
        {"[kernel threads and unknown]", 8},
        {"/usr/bin/java", 16}}},
      {Group::kUnit, {{"build.service", 1}, {"[no unit]", 30}}},
      {Group::kContainer, {{id, 16}, {"[no container]", 15}}},
      {Group::kUser, {{"uid 0", 8}, {"uid 1000", 7}, {"[user not known]", 16}}},
      {Group::kTree, {{"make (10)", 7}, {"kworker/0:1 (13)", 8}, {"java (14)", 16}}},
  };
  for (const auto& [by, groups] : expected) {
    INFO(static_cast<int>(by));
    CHECK(host.in_profile(by) == groups);
    Host::Groups in_table;
    for (const GroupUsage& row : host.in_table(by)) in_table[row.name] = row.samples;
    CHECK(in_table == groups);
  }
}

TEST_CASE("a container's text has its id, its name, or both") {
  const std::string id(64, 'a');
  CHECK(split_container(id).id == id);
  CHECK(split_container(id).shown() == id);
  CHECK(split_container("debian").id == "debian");
  const std::string text = join_container(id, "shop/web-7d9/nginx");
  const ContainerText both = split_container(text);
  CHECK(both.id == id);
  CHECK(both.shown() == "shop/web-7d9/nginx");
  CHECK(split_container(std::string(64, 'x') + " y").name.empty());
  CHECK(split_container("").shown().empty());
  CHECK(parts_of_container(both.name).pod_namespace == "shop");
  CHECK(parts_of_container(both.name).pod == "web-7d9");
  CHECK(parts_of_container(both.name).container == "nginx");
  CHECK(parts_of_container("web").container == "web");
  CHECK(parts_of_container("a/b").pod.empty());
}

TEST_CASE("a row of a group has its processes, and the query that selects it") {
  const Host host;
  const std::vector<GroupUsage> programs = host.in_table(Group::kProgram);
  REQUIRE(programs.size() == 4);
  CHECK(programs[0].name == "java");
  CHECK(programs[1].parameter == "comm");
  CHECK(programs[2].name == "cc1plus");
  CHECK(programs[2].parameter == "exe");
  CHECK(programs[2].value == "cc1plus");
  CHECK(programs[2].processes == 2);
  CHECK(programs[2].ended == 1);
  CHECK(programs[2].cpu_ns == 6 * kPeriodNs);
  CHECK(host.in_table(Group::kTree)[2].value == "10@100");
  CHECK(host.in_table(Group::kUser)[1].value == "0");
  for (const GroupUsage& row : host.in_table(Group::kUnit)) CHECK(row.parameter.empty() == (row.name == "[no unit]"));
}

TEST_CASE("a tree has only ancestors that the viewer may see") {
  Host host;
  host.add({{20, 200}, "sshd", "/usr/sbin/sshd", 0, {}, {}, 1, 0}, 0, 1);
  host.add({{21, 210}, "bash", "/usr/bin/bash", 0, {}, {}, 20, 200}, 1001, 2);
  host.add({{22, 220}, "vi", "/usr/bin/vi", 0, {}, {}, 21, 210}, 1001, 3);
  const auto own = host.in_table(Group::kTree, 1001);
  REQUIRE(own.size() == 1);
  CHECK(own[0].name == "bash (21)");
  CHECK(own[0].samples == 5);
  CHECK(host.in_table(Group::kTree)[3].name == "sshd (20)");
}

TEST_CASE("trees begin below a user's service manager") {
  Host host;
  host.add({{30, 300}, "systemd", "/usr/lib/systemd/systemd", 0, {}, {}, 1, 0}, 1001, 1);
  host.add({{31, 310}, "firefox", "/usr/bin/firefox", 0, {}, {}, 30, 300}, 1001, 2);
  const auto own = host.in_table(Group::kTree, 1001);
  REQUIRE(own.size() == 2);
  CHECK(own[0].name == "firefox (31)");
  CHECK(own[1].name == "systemd (30)");
}

}  // namespace flamed::store::test
