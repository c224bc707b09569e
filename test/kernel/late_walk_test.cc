// SPDX-License-Identifier: Apache-2.0
//
// Programs that have just begun: their stacks come as slices and are walked late.
#include <map>
#include <string>

#include "test/catch.h"
#include "test/kernel/folded_stacks.h"
#include "test/support/child_process.h"
#include "test/support/running_daemon.h"

namespace flamed::test {
namespace {

using std::chrono::seconds;

constexpr const char* kChain = ";main;outer;middle;";

/// Runs the program again and again, 30 ms of CPU time each. Returns the stacks of all runs.
FoldedStacks run_short_programs(const RunningDaemon& daemon) {
  ChildProcess shell({"sh", "-c", "for i in $(seq 60); do " + victim("known_chain") + " 30; done; read end"});
  const std::string query =
      "/profile?format=folded&group=none&exe=victim_known_chain&tree=" + std::to_string(shell.pid());
  FoldedStacks stacks;
  // 1.8 s of CPU time.
  const bool is_done = RunningDaemon::eventually(
      seconds(60) * patience(),
      [&] {
        stacks = daemon.folded(query);
        return total(stacks) >= 150;
      },
      seconds(1));
  REQUIRE(is_done);
  shell.kill();
  return stacks;
}

double metric(const RunningDaemon& daemon, const std::string& name) {
  const auto metrics = daemon.metrics();
  const auto found = metrics.find(name);
  return found == metrics.end() ? 0 : found->second;
}

TEST_CASE("stacks of programs that have just begun are whole") {
  RunningDaemon daemon;
  const FoldedStacks stacks = run_short_programs(daemon);
  for (const auto& [stack, count] : stacks) {
    if (stack.find("[truncated") != std::string::npos) WARN(stack << " " << count);
  }
  CHECK(with(stacks, "[truncated") <= total(stacks) / 20);
  CHECK(with(stacks, kChain) >= total(stacks) * 8 / 10);
  CHECK(metric(daemon, "flamed_samples_walked_late_total") >= 60);
  CHECK(metric(daemon, "flamed_stack_slices_total") >= metric(daemon, "flamed_samples_walked_late_total"));
  const RunningDaemon::End end = daemon.end();
  CHECK(end.taken == end.whole + end.truncated + end.lost);
}

TEST_CASE("without slices the first stacks of programs are cut") {
  RunningDaemon daemon({"--stack-slices", "off"});
  const FoldedStacks stacks = run_short_programs(daemon);
  CHECK(with(stacks, "[truncated") >= total(stacks) / 4);
  CHECK(daemon.metrics().count("flamed_stack_slices_total") == 0);
}

}  // namespace
}  // namespace flamed::test
