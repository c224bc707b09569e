// SPDX-License-Identifier: Apache-2.0
//
// What a selection selects, by the counted samples.
#include "store/model/selection.h"

#include <functional>

#include "test/catch.h"
#include "test/unit/store/store_fixture.h"

namespace flamed::store::test {
namespace {

/// Each process has a different power of two of samples, so that a total shows which ones were counted.
class Host {
 public:
  /// Returns the process's number of samples.
  std::uint64_t add(const ProcessInfo& info, std::int32_t tid = 0, const char* comm = nullptr) {
    t.store.update_process(info);
    const std::uint64_t weight = std::uint64_t{1} << processes_++;
    const std::vector<Frame> frames{code(16)};
    for (std::uint64_t i = 0; i < weight; ++i) {
      t.store.add(
          {t.clock.monotonic(), info.id, tid != 0 ? tid : info.id.pid, comm != nullptr ? comm : info.comm, frames, {}});
    }
    return weight;
  }
  std::uint64_t count(const std::function<void(Selection&)>& choose) {
    Selection selection{t.everything()};
    choose(selection);
    TestNamer namer;
    return build_profile(t.store.snapshot(), selection, namer).nodes[0].total_samples;
  }

  TestStore t;

 private:
  unsigned processes_ = 0;
};

ProcessInfo process(std::int32_t pid, const char* comm = "worker", const char* executable = "") {
  ProcessInfo info{{pid, 7}, comm, executable, 0, {}, {}};
  return info;
}

}  // namespace

TEST_CASE("several processes are alternatives, further conditions narrow them") {
  Host host;
  const auto a = host.add(process(1));
  const auto b = host.add(process(2));
  const auto c = host.add(process(3), 31, "helper");
  CHECK(host.count([](Selection&) {}) == a + b + c);
  CHECK(host.count([](Selection& s) { s.processes = {{1}, {3}}; }) == a + c);
  CHECK(host.count([](Selection& s) { s.processes = {{1, 7}, {3, 8}}; }) == a);
  CHECK(host.count([](Selection& s) { s.tids = {31, 2}; }) == b + c);
  CHECK(host.count([](Selection& s) { s.comms = {"helper"}; }) == c);
  CHECK(host.count([](Selection& s) {
    s.comms = {"helper"};
    s.processes = {{1}};
  }) == 0);
}

TEST_CASE("a thread's name is compared by its first 15 bytes, which are known") {
  Host host;
  const auto a = host.add(process(1, "a-very-long-thr"));
  host.add(process(2, "a-very"));
  CHECK(host.count([](Selection& s) { s.comms = {"a-very-long-thread-name"}; }) == a);
}

TEST_CASE("a program is found by its path or the path's last component, also if it was deleted") {
  Host host;
  const auto a = host.add(process(1, "x", "/usr/bin/python3"));
  const auto b = host.add(process(2, "x", "/opt/python3 (deleted)"));
  host.add(process(3, "x", "/opt/mypython3"));
  host.add(process(4, "x"));
  CHECK(host.count([](Selection& s) { s.executables = {"python3"}; }) == a + b);
  CHECK(host.count([](Selection& s) { s.executables = {"/usr/bin/python3"}; }) == a);
  CHECK(host.count([](Selection& s) { s.executables = {"/opt/python3"}; }) == b);
  CHECK(host.count([](Selection& s) { s.executables = {"bin/python3"}; }) == 0);
}

TEST_CASE("a cgroup selects itself and the groups below it, by whole components") {
  Host host;
  const auto place = [&](std::int32_t pid, const char* cgroup, const char* unit = "", const char* container = "") {
    ProcessInfo info = process(pid);
    info.cgroup = cgroup;
    info.unit = unit;
    info.container = container;
    return host.add(info);
  };
  const auto a = place(1, "/system.slice/nginx.service", "nginx.service");
  const auto b = place(2, "/system.slice/nginx.service/worker", "nginx.service");
  const auto c = place(3, "/system.slice/nginx.service2", "nginx.socket", "0123456789abcdef0123");
  const auto d = place(4, "/");
  host.add(process(5));
  CHECK(host.count([](Selection& s) { s.cgroups = {"/system.slice/nginx.service"}; }) == a + b);
  CHECK(host.count([](Selection& s) { s.cgroups = {"system.slice/"}; }) == a + b + c);
  CHECK(host.count([](Selection& s) { s.cgroups = {"/"}; }) == a + b + c + d);
  CHECK(host.count([](Selection& s) { s.units = {"nginx"}; }) == a + b);
  CHECK(host.count([](Selection& s) { s.units = {"nginx.socket", "nginx.service"}; }) == a + b + c);
  CHECK(host.count([](Selection& s) { s.containers = {"0123456789ab"}; }) == c);
  CHECK(host.count([](Selection& s) { s.containers = {"0123456789a"}; }) == 0);
}

TEST_CASE("a container is selected by what runs it, and by its pod") {
  Host host;
  const std::string id(64, 'a');
  auto place = [&, pid = 0](const std::string& cgroup, const std::string& container) mutable {
    ProcessInfo info = process(++pid);
    info.cgroup = cgroup;
    info.container = container;
    return host.add(info);
  };
  const auto docker = place("/system.slice/docker-" + id + ".scope", id);
  const auto plain_docker = place("/docker/" + id, id);
  const auto podman = place("/machine.slice/libpod-" + id + ".scope/container", id);
  const auto pod = place(
      "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0d3a4b52_1c2d_4e3f_8a9b_0c1d2e3f4a5b.slice/"
      "cri-containerd-" +
          id + ".scope",
      id);
  const auto crio = place("/kubepods/besteffort/pod0d3a4b52-1c2d-4e3f-8a9b-0c1d2e3f4a5b/crio-" + id, id);
  const auto machine = place("/machine.slice/machine-debian.scope", "debian");
  const auto lxc = place("/lxc.payload.web/system.slice/docker.service", "web");
  // The engine itself is in no container.
  place("/system.slice/docker.service", "");
  const auto by = [&](const std::string& wanted) {
    return host.count([&](Selection& selection) { selection.containers = {wanted}; });
  };
  CHECK(by("docker") == docker + plain_docker);
  CHECK(by("podman") == podman);
  CHECK(by("kubernetes") == pod + crio);
  CHECK(by("containerd") == pod);
  CHECK(by("cri-o") == crio);
  CHECK(by("systemd-nspawn") == machine);
  CHECK(by("lxc") == lxc);
  CHECK(by("0d3a4b52-1c2d-4e3f-8a9b-0c1d2e3f4a5b") == pod + crio);
  CHECK(by("pod0d3a4b52-1c2d-4e3f-8a9b-0c1d2e3f4a5b") == pod + crio);
  CHECK(by("0d3a4b52-1c2d-4e3f-8a9b-0c1d2e3f4a5c") == 0);
  CHECK(by("dock") == 0);
}

TEST_CASE("a container is selected by what it is called") {
  Host host;
  const std::string id(64, 'a');
  auto place = [&, pid = 0](const std::string& container) mutable {
    ProcessInfo info = process(++pid);
    info.cgroup = "/docker/" + id;
    info.container = container;
    return host.add(info);
  };
  const auto web = place(id + " web");
  const auto pod = place(std::string(64, 'b') + " shop/web-7d9/nginx");
  const auto sidecar = place(std::string(64, 'c') + " shop/web-7d9/proxy");
  const auto plain = place(id);
  const auto by = [&](const std::string& wanted) {
    return host.count([&](Selection& selection) { selection.containers = {wanted}; });
  };
  CHECK(by("web") == web);
  CHECK(by("nginx") == pod);
  CHECK(by("shop/web-7d9/nginx") == pod);
  CHECK(by("web-7d9") == pod + sidecar);
  CHECK(by("shop/web-7d9") == pod + sidecar);
  CHECK(by(id) == web + plain);
  CHECK(by(id.substr(0, 12)) == web + plain);
  CHECK(by(id + " web") == 0);
  CHECK(by("shop") == 0);
  CHECK(by("") == 0);
}

TEST_CASE("users are distinguished, and an unknown user matches nothing") {
  Host host;
  ProcessInfo root = process(1);
  root.uid = 0;
  ProcessInfo user = process(2);
  user.uid = 1000;
  const auto a = host.add(root);
  const auto b = host.add(user);
  host.add(process(3));
  CHECK(host.count([](Selection& s) { s.uids = {0}; }) == a);
  CHECK(host.count([](Selection& s) { s.uids = {0, 1000}; }) == a + b);
  CHECK(host.count([](Selection& s) { s.uids = {0xffffffffU}; }) == 0);
}

TEST_CASE("a tree is a process and its descendants, also through ended parents without samples") {
  Host host;
  const auto child = [](std::int32_t pid, std::int32_t parent, std::uint64_t parent_start = 7) {
    ProcessInfo info = process(pid);
    info.parent_pid = parent;
    info.parent_start_ticks = parent_start;
    return info;
  };
  const auto make = host.add(child(10, 1));
  const auto other = host.add(child(11, 1));
  ProcessInfo shell = child(20, 10);
  host.t.store.update_process(shell);
  shell.ended = host.t.clock.wall();
  host.t.store.update_process(shell);
  const auto compiler = host.add(child(30, 20));
  const auto linker = host.add(child(31, 30));
  // A process outside of the tree had its parent's pid before.
  const auto stranger = host.add(child(40, 20, 6));
  host.t.pass_minutes(20);
  CHECK(host.count([](Selection& s) { s.trees = {{10}}; }) == make + compiler + linker);
  CHECK(host.count([](Selection& s) { s.trees = {{20}}; }) == compiler + linker + stranger);
  CHECK(host.count([](Selection& s) { s.trees = {{20, 7}}; }) == compiler + linker);
  CHECK(host.count([](Selection& s) { s.trees = {{31}, {11}}; }) == linker + other);
  CHECK(host.count([](Selection& s) { s.trees = {{1, 7}}; }) == make + other + compiler + linker);
  CHECK(host.count([](Selection& s) { s.trees = {{99}}; }) == 0);
}

TEST_CASE("a child whose parent is known only by pid belongs to the last process with that pid before it") {
  Host host;
  const auto early = host.add({{10, 100}, "a", "", 0, {}, {}});
  const auto late = host.add({{10, 300}, "b", "", 0, {}, {}});
  ProcessInfo info{{11, 200}, "child", "", 0, {}, {}};
  info.parent_pid = 10;
  const auto child = host.add(info);
  CHECK(host.count([](Selection& s) { s.trees = {{10, 100}}; }) == early + child);
  CHECK(host.count([](Selection& s) { s.trees = {{10, 300}}; }) == late);
}

TEST_CASE("parents that were kept only for their children go with them") {
  TestStore t({5 * kNsPerMinute});
  t.store.advance(t.clock.monotonic());
  for (std::int32_t pid = 2; pid < 300; ++pid) {
    ProcessInfo info = process(pid);
    info.parent_pid = pid - 1;
    info.parent_start_ticks = 7;
    info.ended = t.clock.wall();
    t.store.update_process(info);
  }
  t.add({code(16)}, {299, 7});
  t.pass_minutes(4);
  CHECK(t.store.stats().processes == 299);
  t.pass_minutes(400);  // a sweep takes a generation at least
  CHECK(t.store.stats().processes == 0);
}

TEST_CASE("selections that cover everything without overlap add up to the whole machine") {
  TestStore t;
  const char* comms[] = {"alpha", "beta", "gamma"};
  for (std::int32_t i = 0; i < 3000; ++i) {
    const std::int32_t pid = 1 + i % 7;
    const std::vector<Frame> frames{code(static_cast<std::uint64_t>(16 * (i % 5))),
                                    {kKernelModule, static_cast<std::uint64_t>(i % 3)}};
    const std::size_t frame_count = i % 4 == 0 ? 1 : 2;
    t.store.add({t.clock.monotonic(), {pid, 1}, pid, comms[i % 3], std::span(frames).first(frame_count), {}});
    if (i % 20 == 0) t.pass(1);
  }
  const auto count = [&](const Selection& selection) {
    TestNamer namer;
    return build_profile(t.store.snapshot(), selection, namer).nodes[0].total_samples;
  };
  const WallWindow window{{kNoon.ns + 10 * kNsPerSecond}, {kNoon.ns + 130 * kNsPerSecond}};
  const std::uint64_t all = count({window});
  CHECK(all == 120 * 20);
  std::uint64_t by_pid = 0;
  for (std::int32_t pid = 1; pid <= 7; ++pid) {
    Selection selection{window};
    selection.processes = {{pid, {}}};
    by_pid += count(selection);
  }
  CHECK(by_pid == all);
  std::uint64_t by_comm = 0;
  for (const char* comm : comms) {
    Selection selection{window};
    selection.comms = {comm};
    by_comm += count(selection);
  }
  CHECK(by_comm == all);
  std::uint64_t by_time = 0;
  for (std::int64_t ns = window.from.ns; ns < window.to.ns; ns += 7 * kNsPerSecond) {
    by_time += count({{{ns}, {std::min(ns + 7 * kNsPerSecond, window.to.ns)}}});
  }
  CHECK(by_time == all);
  // Every sample has a user part here, and three of four a kernel part.
  Selection user{window};
  user.side = Side::kUser;
  Selection kernel{window};
  kernel.side = Side::kKernel;
  CHECK(count(user) == all);
  CHECK(count(kernel) == all * 3 / 4);
}

TEST_CASE("a function that accepts processes narrows what else is selected") {
  Host host;
  const auto a = host.add(process(1, "worker", "/usr/bin/worker"));
  const auto b = host.add(process(2, "helper", "/usr/bin/helper"));
  host.add(process(3, "other", "/usr/bin/other"));
  const auto ends_in_er = [](const ProcessInfo& info) { return info.comm != "other"; };
  CHECK(host.count([&](Selection& s) { s.accepts = ends_in_er; }) == a + b);
  CHECK(host.count([&](Selection& s) {
    s.accepts = ends_in_er;
    s.executables = {"helper", "other"};
  }) == b);
  CHECK(host.count([](Selection& s) { s.accepts = [](const ProcessInfo&) { return false; }; }) == 0);
}

}  // namespace flamed::store::test
