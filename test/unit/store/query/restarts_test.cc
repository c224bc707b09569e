// SPDX-License-Identifier: Apache-2.0
#include "store/query/restarts.h"

#include <optional>
#include <string>
#include <vector>

#include "store/model/wait_reason.h"
#include "test/catch.h"
#include "test/unit/store/store_fixture.h"

namespace flamed::store::test {
namespace {

constexpr ProcessId kInit{1, 0};
constexpr ProcessId kShell{50, 10};

/// A host with systemd and a shell, whose processes' times are seconds since noon.
struct Host {
  Host() {
    t.store.update_process({kInit, "systemd", "/usr/lib/systemd/systemd", 0, {}, {}});
    t.store.update_process({kShell, "bash", "/usr/bin/bash", 0, at(0), {}});
  }
  static WallTime at(double second) { return {kNoon.ns + static_cast<std::int64_t>(second * kNsPerSecond)}; }

  ProcessInfo& info(const std::string& program, double started, std::optional<double> ended, ProcessId parent) {
    ++pid;
    last = {{pid, static_cast<std::uint64_t>(1000 + pid)}, program, "/usr/bin/" + program, 0, at(started), {}};
    if (ended) last.ended = at(*ended);
    last.parent_pid = parent.pid;
    last.parent_start_ticks = parent.start_ticks;
    return last;
  }
  ProcessId add(const ProcessInfo& process) {
    t.store.update_process(process);
    return process.id;
  }
  ProcessId add_to_unit(const std::string& unit, const std::string& program, double started,
                        std::optional<double> ended = {}, ProcessId parent = kInit) {
    ProcessInfo& process = info(program, started, ended, parent);
    process.unit = unit;
    process.cgroup = "/system.slice/" + unit;
    return add(process);
  }
  ProcessId add_below_shell(const std::string& program, double started, std::optional<double> ended = {}) {
    return add(info(program, started, ended, kShell));
  }

  [[nodiscard]] std::vector<std::string> found(Selection selection = {}) const {
    if (selection.window.to.ns == 0) selection.window = {{0}, {kNoon.ns + 10'000 * kNsPerSecond}};
    std::vector<std::string> texts;
    for (const Restart& restart : restarts(t.store.snapshot(), selection, 3)) {
      texts.push_back(restart.what + " " + std::to_string(restart.before.id.pid) + " " +
                      std::to_string(restart.after.id.pid));
    }
    return texts;
  }
  TestStore t;
  std::int32_t pid = 100;
  ProcessInfo last{};
};

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("a unit whose main process ended and began again has restarted") {
  Host host;
  host.add_to_unit("web.service", "web", 0, 100);
  host.add_to_unit("web.service", "web", 103, 200);
  host.add_to_unit("web.service", "web", 200);
  CHECK(host.found() == Texts{"web.service 101 102", "web.service 102 103"});
  // Another program, another unit, and one that was started much later.
  Host others;
  others.add_to_unit("web.service", "prepare", 0, 10);
  others.add_to_unit("web.service", "web", 10, 20);
  others.add_to_unit("mail.service", "web", 21, 30);
  others.add_to_unit("mail.service", "web", 300);
  CHECK(others.found().empty());
}

TEST_CASE("processes below a unit's main process are no restart of the unit") {
  Host host;
  const ProcessId main = host.add_to_unit("web.service", "web", 0);
  host.add_to_unit("web.service", "web", 1, 9, main);
  host.add_to_unit("web.service", "web", 9, 20, main);
  CHECK(host.found().empty());
  // But of the program below its parent, as of one that a supervisor runs.
  host.add_to_unit("web.service", "web", 21, 40, main);
  CHECK(host.found() == Texts{"web 103 104"});
}

TEST_CASE("a container has restarted when what its shim started did so") {
  Host host;
  ProcessInfo shim{{60, 20}, "containerd-shim", "/usr/bin/containerd-shim", 0, {}, {}};
  host.t.store.update_process(shim);
  const std::string id(64, 'a');
  for (const double started : {0.0, 50.0}) {
    ProcessInfo& process = host.info("java", started, started + 49, {60, 20});
    process.container = id;
    process.unit = "docker-" + id + ".scope";
    process.cgroup = "/system.slice/" + process.unit;
    host.add(process);
  }
  CHECK(host.found() == Texts{id + " 101 102"});
}

TEST_CASE("below one parent a program has restarted if it had run for a while, and alone") {
  Host host;
  host.add_below_shell("server", 0, 60);
  host.add_below_shell("server", 62);
  CHECK(host.found() == Texts{"server 101 102"});

  Host build;
  for (int i = 0; i < 5; ++i) build.add_below_shell("cc1plus", 5 * i, 5 * i + 5);
  CHECK(build.found().empty());

  Host pool;
  pool.add_below_shell("worker", 0, 60);
  pool.add_below_shell("worker", 0);
  pool.add_below_shell("worker", 61);
  CHECK(pool.found().empty());
}

TEST_CASE("below one parent a program that only waited has not restarted") {
  Host loop;
  for (const double started : {0.0, 60.0}) {
    const ProcessId sleep = loop.add_below_shell("sleep", started, started + 60);
    const std::vector<Frame> frames{code(1), wait_frame(WaitReason::kSleep)};
    WaitSample wait;
    wait.sample = {loop.t.clock.monotonic(), sleep, sleep.pid, "sleep", frames, {}};
    wait.waited_ns = kNsPerSecond;
    loop.t.store.add_wait(wait);
  }
  CHECK(loop.found().empty());
  // One that also ran has.
  for (const std::int32_t pid : {101, 102}) loop.t.add({code(1)}, {pid, static_cast<std::uint64_t>(1000 + pid)});
  CHECK(loop.found() == Texts{"sleep 101 102"});
}

TEST_CASE("restarts are of the window and the selection, and the newest if there are too many") {
  Host host;
  host.add_to_unit("web.service", "web", 0, 100);
  host.add_to_unit("web.service", "web", 100, 200);
  host.add_to_unit("web.service", "web", 200, 300);
  host.add_to_unit("web.service", "web", 300, 400);
  host.add_to_unit("web.service", "web", 400);
  CHECK(host.found() == Texts{"web.service 102 103", "web.service 103 104", "web.service 104 105"});
  Selection window;
  window.window = {Host::at(100), Host::at(200)};
  CHECK(host.found(window) == Texts{"web.service 101 102"});
  Selection other;
  other.units = {"mail"};
  CHECK(host.found(other).empty());
}

TEST_CASE("a user sees only restarts of own processes") {
  Host host;
  host.add_to_unit("web.service", "web", 0, 100);
  host.add_to_unit("web.service", "web", 101);
  const Selection all{{{0}, {kNoon.ns + 1000 * kNsPerSecond}}};
  CHECK(restarts(seen_by(host.t.store.snapshot(), 1000), all, 10).empty());
}

}  // namespace flamed::store::test
