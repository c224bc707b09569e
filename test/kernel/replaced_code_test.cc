// SPDX-License-Identifier: Apache-2.0
//
// Code that a runtime has freed, with other code in its place a moment later: each sample has the name of what ran, or
// none, but never that of the other one.
#include <chrono>
#include <string>
#include <vector>

#include "test/catch.h"
#include "test/kernel/folded_stacks.h"
#include "test/kernel/own_stacks.h"
#include "test/support/child_process.h"
#include "test/support/programs.h"
#include "test/support/running_daemon.h"
#include "test/unit/runtimes/live_python.h"

namespace flamed::test {
namespace {

using std::chrono::seconds;

/// The kind of the victim's function with this name in a stack, as in "outer_3". Empty: it is not there.
std::string kind_of(const std::string& stack, const std::string& name) {
  const std::size_t at = stack.find(name);
  return at == std::string::npos ? "" : stack.substr(at + name.size(), 1);
}

void check_names(RunningDaemon& daemon, const std::vector<std::string>& command) {
  INFO(command.front());
  ChildProcess program(command);
  REQUIRE(program.read_line(seconds(60) * patience()) == "runs");
  std::uint64_t right = 0;
  std::uint64_t wrong = 0;
  std::string stacks;
  const auto is_enough = [&] {
    right = 0;
    wrong = 0;
    stacks.clear();
    for (const auto& [stack, count] : daemon.folded(profile_of(program.pid()))) {
      const std::string outer = kind_of(stack, ";outer_");
      const std::string leaf = kind_of(stack, ";leaf_");
      if (outer.empty() || leaf.empty()) continue;  // not read in time: it has no name
      (outer == leaf ? right : wrong) += count;
      stacks += std::to_string(count) + " " + stack + "\n";
    }
    return right >= 50 || wrong > 10;
  };
  CHECK(RunningDaemon::eventually(seconds(60) * patience(), is_enough, seconds(1)));
  CAPTURE(right, wrong, stacks);
  // An object that is older than a second is looked at once a second, and the machine may have kept one from running.
  CHECK(wrong <= right / 50);
}

TEST_CASE("code in the place of other code does not get its name", "[python][node]") {
#if !defined(__x86_64__)
  WARN("SKIP: runtimes are read on x86-64 only");
  return;
#endif
  RunningDaemon daemon;
  for (const std::string& python : runtimes::pythons())
    check_names(daemon, {python, std::string(PYTHON_VICTIMS) + "/python_replaced.py"});
  const std::vector<std::string> nodes = programs_of("FLAMED_NODES", NODE);
  if (nodes.empty()) WARN("SKIP: there is no Node: install nodejs, or set FLAMED_NODES");
  for (const std::string& node : nodes)
    check_names(daemon, {node, "--expose-gc", std::string(NODE_VICTIMS) + "/node_replaced.js"});
}

}  // namespace
}  // namespace flamed::test
