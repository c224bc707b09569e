// SPDX-License-Identifier: Apache-2.0
//
// Marks of the real daemon: a program that restarted, and notes over its socket.
#include <csignal>

#include <algorithm>
#include <string>

#include "test/catch.h"
#include "test/kernel/folded_stacks.h"
#include "test/support/child_process.h"
#include "test/support/running_daemon.h"

namespace flamed::test {
namespace {

using std::chrono::seconds;

TEST_CASE("a program that ends and begins again below its parent is a restart, and a note is set beside it") {
  RunningDaemon daemon;
  const std::string program = victim("known_chain");
  ChildProcess shell(
      {"sh", "-c",
       program + " & sleep 11; kill $!; wait $!; sleep 0.5; " + program + " & trap \"kill $!\" TERM; wait"});
  const std::string tree = "/marks?tree=" + std::to_string(shell.pid());

  nlohmann::json restart;
  REQUIRE(RunningDaemon::eventually(seconds(60), [&] {
    const HttpAnswer answer = daemon.get(tree);
    // The shell may not be known yet.
    if (answer.status != 200) return false;
    const nlohmann::json body = nlohmann::json::parse(answer.body);
    for (const auto& mark : body["marks"]) {
      if (mark.contains("program")) restart = mark;
    }
    return !restart.is_null();
  }));
  INFO(restart.dump());
  CHECK(restart["kind"] == "restart");
  CHECK(restart["program"] == program);
  CHECK(restart["id"] != restart["id_before"]);
  const std::int64_t pause_ms = restart["time_ms"].get<std::int64_t>() - restart["ended_ms"].get<std::int64_t>();
  CHECK(pause_ms >= 400);
  CHECK(pause_ms < 10'000);

  const HttpAnswer set =
      daemon.send({"POST", "/marks", {{"Content-Type", "application/json"}}, R"({"text": "deploy 1.2.3"})"});
  CHECK(set.status == 201);
  CHECK(daemon.send({"POST", "/marks", {{"Content-Type", "text/plain"}}, "deploy"}).status == 415);
  CHECK(daemon.send({"DELETE", "/marks", {}, ""}).status == 405);
  const nlohmann::json marks = daemon.get_json("/marks")["marks"];
  CHECK(marks.front()["text"] == "flamed started");
  // Programs of other tests may have restarted meanwhile.
  CHECK(std::any_of(marks.begin(), marks.end(), [](const auto& mark) { return mark["text"] == "deploy 1.2.3"; }));
  shell.signal(SIGTERM);
  CHECK(shell.wait(seconds(20)));
}

}  // namespace
}  // namespace flamed::test
