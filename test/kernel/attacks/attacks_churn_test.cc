// SPDX-License-Identifier: Apache-2.0
//
// Attacks by side-band events: a user's program maps code or changes its name all the time, so that flamed would have
// no time for anything else.
#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "test/catch.h"
#include "test/kernel/attacks/attack.h"
#include "test/kernel/folded_stacks.h"
#include "test/support/child_process.h"
#include "test/support/running_daemon.h"

namespace flamed::test {
namespace {

using std::chrono::seconds;

constexpr unsigned kMallory = 64601;

int seconds_of_it() { return attack_tries(25) == 200 ? 120 : 25; }

void check_that_others_do_not_suffer(const std::vector<std::string>& attack, const std::string& budget = "0.3%") {
  RunningDaemon daemon({"--cpu-budget", budget});
  ChildProcess roots({victim("known_chain")});
  REQUIRE(has_samples(daemon, roots.pid(), 50));
  // The costs of the start are over.
  std::this_thread::sleep_for(seconds(12));
  ChildProcess mallory(as_user(kMallory, attack));
  REQUIRE(mallory.read_line(seconds(20)) == "ready");
  // If the frequency is lowered, that happens after some seconds.
  double lowest_hz = 99;
  double most_muted = 0;
  for (int i = 0; i < seconds_of_it(); ++i) {
    std::this_thread::sleep_for(seconds(1));
    const std::map<std::string, double> metrics = daemon.metrics();
    lowest_hz = std::min(lowest_hz, metrics.at("flamed_sampling_frequency_hertz"));
    most_muted = std::max(most_muted, metrics.at("flamed_side_band_muted_processes"));
  }
  CHECK(lowest_hz == 99);
  CHECK(most_muted > 0);
  const std::map<std::string, double> metrics = daemon.metrics();
  CHECK(metrics.at("flamed_side_band_skipped_total") > 10'000);
  // Only a very small part of the records was read and applied.
  INFO(metrics.at("flamed_side_band_skipped_total") << " skipped");

  const FoldedStacks stacks = settled_profile(daemon, roots.pid());
  INFO((stacks.empty() ? "" : stacks.begin()->first));
  CHECK(with(stacks, ";main;outer;middle;work_") >= total(stacks) * 98 / 100);

  // The program's own stacks are right, or marked as cut.
  const FoldedStacks own = daemon.folded(profile_of(mallory.pid()));
  for (const auto& [stack, count] : own) UNSCOPED_INFO(count << "  " << stack);
  CHECK(with(own, ";main;churn_outer") + with(own, "[truncated") + with(own, "change_") + with(own, "__") >=
        total(own) * 95 / 100);
  CHECK(with(own, ";main;churn_outer;churn_leaf") > total(own) / 10);

  // Afterwards everything is as before.
  mallory.kill();
  CHECK(RunningDaemon::eventually(seconds(20) * patience(),
                                  [&] { return daemon.metrics().at("flamed_side_band_muted_processes") == 0; }));
}

TEST_CASE("a program that maps and unmaps code all the time costs no one else samples, names or resolution") {
  check_that_others_do_not_suffer({victim("churn_news"), "mappings", victim("known_chain")});
}

TEST_CASE("a program that changes its name all the time costs no one else samples, names or resolution") {
  check_that_others_do_not_suffer({victim("churn_news"), "names"});
}

TEST_CASE("a program whose children change their names all the time costs no one else samples, names or resolution") {
  // Hundreds of new sampled processes a second have a cost of their own.
  check_that_others_do_not_suffer({victim("churn_news"), "forks"}, "1%");
}

}  // namespace
}  // namespace flamed::test
