// SPDX-License-Identifier: Apache-2.0
//
// What a user sees of their own processes that they may not inspect: those that changed to the user without an exec, or
// that made themselves non-dumpable.
#include <string>
#include <vector>

#include "test/catch.h"
#include "test/kernel/attacks/attack.h"
#include "test/kernel/folded_stacks.h"
#include "test/support/child_process.h"
#include "test/support/running_daemon.h"

namespace flamed::test {
namespace {

using std::chrono::seconds;

constexpr unsigned kUser = 64701;
constexpr const char* kShown = "[not shown: not dumpable]";

std::string asked_by(unsigned user, const RunningDaemon& daemon, const std::string& target) {
  ChildProcess client(as_user(
      user, {"curl", "--silent", "--max-time", "20", "http://127.0.0.1:" + std::to_string(daemon.port()) + target}));
  std::string text;
  while (const auto line = client.read_line(seconds(25))) text += *line + "\n";
  return text;
}

/// Without samples from before it became the user's.
std::string recently(pid_t pid, const std::string& format) {
  return "/profile?pid=" + std::to_string(pid) + "&from=now-1s&format=" + format;
}

TEST_CASE("the owner of a process that is not dumpable learns only that it exists, and root sees all of it") {
  RunningDaemon daemon;
  struct Case {
    const char* how;
    bool is_dumpable;
  };
  for (const auto& [how, is_dumpable] :
       {Case{"stays", false}, Case{"tells", true}, Case{"runs", true}, Case{"refuses", false}}) {
    CAPTURE(how);
    ChildProcess program({victim("dropped"), std::to_string(kUser), how});
    REQUIRE(program.read_line(seconds(10)) == std::string(is_dumpable ? "1" : "0"));
    const std::string pid = std::to_string(program.pid());
    REQUIRE(RunningDaemon::eventually(seconds(20) * patience(), [&] {
      return with(daemon.folded(recently(program.pid(), "folded")), "secret_work") >= 20;
    }));
    for (const char* format : {"folded", "flamegraph", "top", "speedscope", "perf-script", "columns"}) {
      CAPTURE(format);
      const std::string target = recently(program.pid(), format);
      const std::string seen = asked_by(kUser, daemon, target);
      INFO(seen.substr(0, 600));
      CHECK((seen.find("secret_") != std::string::npos) == is_dumpable);
      // perf has one name for all unknown functions.
      const std::string shown = std::string(format) == "perf-script" ? "[not_shown]" : kShown;
      CHECK((seen.find(shown) != std::string::npos) == !is_dumpable);
      CHECK(daemon.get(target).body.find("secret_work") != std::string::npos);
    }
    const std::string listed = asked_by(kUser, daemon, "/processes?from=now-1s");
    INFO(listed.substr(0, 600));
    CHECK(listed.find("\"pid\":" + pid) != std::string::npos);
  }
}

}  // namespace
}  // namespace flamed::test
