// SPDX-License-Identifier: Apache-2.0
//
// Code without a file: named by its compiler's map, as long as there are stacks with it.
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "test/catch.h"
#include "test/kernel/folded_stacks.h"
#include "test/support/child_process.h"
#include "test/support/running_daemon.h"

namespace flamed::test {
namespace {

using std::chrono::seconds;

constexpr const char* kChain = ";main;jit outer;jit:<b>middle;jit_work;";

bool has_command(const std::string& name) { return std::system(("command -v " + name + " >/dev/null").c_str()) == 0; }

/// The process that `parent` has started, once it runs the program `comm`; 0 if it does not yet.
pid_t child_with(pid_t parent, const std::string& comm) {
  const std::string process = "/proc/" + std::to_string(parent);
  pid_t child = 0;
  if (!(std::ifstream(process + "/task/" + std::to_string(parent) + "/children") >> child)) return 0;
  std::string name;
  std::getline(std::ifstream("/proc/" + std::to_string(child) + "/comm"), name);
  return name == comm ? child : 0;
}

double share(const FoldedStacks& stacks, const std::string& part) {
  return total(stacks) == 0 ? 0 : static_cast<double>(with(stacks, part)) / static_cast<double>(total(stacks));
}

/// After the map was found: names that were looked up before stay unknown for some seconds.
bool names_come(const RunningDaemon& daemon, pid_t pid, const std::string& part, double wanted_share) {
  return RunningDaemon::eventually(seconds(30),
                                   [&] { return share(settled_profile(daemon, pid), part) >= wanted_share; });
}

std::string perf_map_of(pid_t pid) { return "/tmp/perf-" + std::to_string(pid) + ".map"; }

bool has_jit_victim() {
  const bool is_there = std::filesystem::exists(victim("jit"));
  if (!is_there) WARN("SKIP x86-64: the program that makes code is for x86-64 only");
  return is_there;
}

TEST_CASE("code without a file is named by the program's perf map, also when program and map are gone") {
  if (!has_jit_victim()) return;
  const RunningDaemon& daemon = frequent_daemon();
  ChildProcess program({victim("jit")});
  REQUIRE(has_samples(daemon, program.pid(), 200));
  CHECK(names_come(daemon, program.pid(), kChain, 0.95));
  program.kill();
  REQUIRE(std::filesystem::remove(perf_map_of(program.pid())));
  // Longer than names of code without a file are cached.
  ::sleep(6);
  const FoldedStacks stacks = settled_profile(daemon, program.pid());
  CHECK(share(stacks, kChain) >= 0.95);

  const nlohmann::json answer = daemon.get_json("/profile?pid=" + std::to_string(program.pid()));
  CHECK(answer.dump().find("jit;<b>middle") != std::string::npos);
}

TEST_CASE("a program that ended before any query has the names of its perf map") {
  if (!has_jit_victim()) return;
  const RunningDaemon& daemon = frequent_daemon();
  ChildProcess program({victim("jit"), "3000"});
  REQUIRE(program.wait(seconds(240)) == 0);
  std::filesystem::remove(perf_map_of(program.pid()));
  REQUIRE(has_samples(daemon, program.pid(), 100));
  CHECK(share(settled_profile(daemon, program.pid()), kChain) >= 0.95);
}

TEST_CASE("a program in a container is named by the map in its own root, with the pid in its own namespace") {
  if (!has_jit_victim()) return;
  if (!has_command("unshare") || !has_command("mount")) {
    WARN("SKIP: no unshare and mount here");
    return;
  }
  const RunningDaemon& daemon = frequent_daemon();
  const std::filesystem::path path = victim("jit");
  ChildProcess container({"unshare", "--pid", "--fork", "--kill-child", "--mount", "sh", "-c",
                          "set -e; cd '" + path.parent_path().string() + "'; mount -t tmpfs tmpfs /tmp; exec ./" +
                              path.filename().string()});
  pid_t pid = 0;
  REQUIRE(
      RunningDaemon::eventually(seconds(30), [&] { return (pid = child_with(container.pid(), "victim_jit")) != 0; }));
  REQUIRE(has_samples(daemon, pid, 200));
  CHECK(names_come(daemon, pid, kChain, 0.95));
  container.kill();
  ::sleep(6);
  CHECK(share(settled_profile(daemon, pid), kChain) >= 0.95);
}

TEST_CASE("without a map, the answer has a remedy") {
  if (!has_command("node")) {
    WARN("SKIP: no node here");
    return;
  }
  RunningDaemon daemon({"--runtimes", "off"});  // else it reads their names
  ChildProcess program({"node", victim("jit.js")});
  REQUIRE(has_samples(daemon, program.pid(), 100));
  const std::string answer = daemon.get_json("/profile?pid=" + std::to_string(program.pid())).dump();
  CHECK(answer.find("no " + perf_map_of(program.pid()) + " that names JIT code: start node with --perf-basic-prof") !=
        std::string::npos);
}

TEST_CASE("functions of a node program have their names") {
  if (!has_command("node")) {
    WARN("SKIP: no node here");
    return;
  }
  RunningDaemon daemon({"--runtimes", "off"});  // else it reads their names
  ChildProcess program({"node", "--perf-basic-prof", victim("jit.js")});
  REQUIRE(has_samples(daemon, program.pid(), 200));
  // Any of them: Node 24 compiles the innermost into its callers.
  CHECK(names_come(daemon, program.pid(), "victim_jit.js:", 0.8));
  program.kill();
  std::filesystem::remove(perf_map_of(program.pid()));
}

}  // namespace
}  // namespace flamed::test
