// SPDX-License-Identifier: Apache-2.0
//
// Attacks on the history: a user fills the store with ever new stacks, so that others' samples would have no room and
// their minutes would be dropped.
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
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

constexpr unsigned kMallory = 64101;
constexpr unsigned kAlice = 64102;
// Not root, which may run other programs on the machine meanwhile.
constexpr unsigned kBob = 64103;
/// A frame of every whole sample of victim_known_chain.
constexpr const char* kChain = ";main;outer;middle;";

/// In the long form several minutes come and go.
seconds length_of_attack() { return seconds(attack_tries(20) == 200 ? 240 : 20); }

double metric(const RunningDaemon& daemon, const std::string& name) {
  const auto metrics = daemon.metrics();
  const auto found = metrics.find(name);
  return found == metrics.end() ? 0 : found->second;
}

bool lacks_room(const RunningDaemon& daemon) {
  return daemon.get("/metrics").body.find("flamed_samples_truncated_total{reason=\"store_full\"} 0\n") ==
         std::string::npos;
}

/// The answer that `user` gets about everything they may see; curl's last message where it fails for a minute.
std::string own_answer(unsigned user, const RunningDaemon& daemon) {
  std::string text;
  CHECK(RunningDaemon::eventually(
      seconds(60) * patience(),
      [&] {
        ChildProcess client(
            as_user(user, {"curl", "--silent", "--show-error", "--fail-with-body", "--max-time", "60",
                           "http://127.0.0.1:" + std::to_string(daemon.port()) + "/profile?format=flamegraph"}),
            ChildProcess::Capture::kOutputAndErrors);
        text.clear();
        while (const auto line = client.read_line(seconds(65))) text += *line + "\n";
        return client.wait(seconds(5)) == 0;
      },
      seconds(1)));
  return text;
}

TEST_CASE("a user who fills the store with new stacks loses their own, and others keep all of theirs") {
  // So that the store is full within seconds, and not only after a minute.
  RunningDaemon daemon({"--memory-budget", "8MiB", "--frequency", "499"});
  ChildProcess early(as_user(kAlice, {victim("known_chain")}));
  REQUIRE(has_samples(daemon, early.pid(), 200));
  early.kill();
  const FoldedStacks before = daemon.folded(profile_of(early.pid()));
  REQUIRE(with(before, kChain) >= total(before) * 8 / 10);

  ChildProcess flood(as_user(kMallory, {victim("random_stacks")}));
  REQUIRE(RunningDaemon::eventually(
      seconds(60) * patience(), [&] { return lacks_room(daemon); }, seconds(1)));

  // Programs that start when there is no room any more.
  const ChildProcess alices(as_user(kAlice, {victim("known_chain")}));
  const ChildProcess bobs(as_user(kBob, {victim("known_chain")}));
  ::sleep(static_cast<unsigned>(length_of_attack().count()));
  for (const pid_t pid : {alices.pid(), bobs.pid()}) {
    const FoldedStacks stacks = daemon.folded(profile_of(pid));
    INFO((stacks.empty() ? "no samples" : stacks.begin()->first));
    CHECK(total(stacks) > 200);
    CHECK(with(stacks, kChain) >= total(stacks) * 9 / 10);
    // Others may also need the rest of the smallest store, all in the same seconds.
    CHECK(with(stacks, "no room for new stacks") <= total(stacks) / 1000);
  }
  // Earlier samples are all still there. Some had not arrived then.
  const FoldedStacks after = daemon.folded(profile_of(early.pid()));
  CHECK(with(after, kChain) >= with(before, kChain));
  CHECK(with(after, kChain) >= total(after) * 8 / 10);
  CHECK(metric(daemon, "flamed_store_share_losses_total") > 0);
  CHECK(metric(daemon, "flamed_samples_lost_total") == 0);
  // The user's time is complete, and the answer says why the stacks are not.
  CHECK(total(daemon.folded(profile_of(flood.pid()))) > total(daemon.folded(profile_of(bobs.pid()))) / 2);
  const std::string told = "Stacks of user " + std::to_string(kMallory) + " were given up";
  CHECK(daemon.get("/profile?format=flamegraph").body.find(told) != std::string::npos);
  const std::string of_mallory = own_answer(kMallory, daemon);
  INFO(of_mallory.substr(0, 2000));
  CHECK(of_mallory.find(told) != std::string::npos);
  const std::string of_alice = own_answer(kAlice, daemon);
  CHECK(of_alice.find("known_chain") != std::string::npos);
  CHECK(of_alice.find(std::to_string(kMallory)) == std::string::npos);

  const RunningDaemon::End end = daemon.end();
  CHECK(end.taken == end.whole + end.truncated + end.lost);
}

}  // namespace
}  // namespace flamed::test
