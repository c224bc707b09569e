// SPDX-License-Identifier: Apache-2.0
//
// A daemon whose control group is short of memory.
#include <algorithm>

#include "test/catch.h"
#include "test/kernel/accounts.h"
#include "test/kernel/control_group.h"
#include "test/kernel/folded_stacks.h"
#include "test/support/child_process.h"
#include "test/support/running_daemon.h"

namespace flamed::test {
namespace {

using std::chrono::seconds;

TEST_CASE("short of memory it frees single samples before its cgroup's limit is reached") {
  const ControlGroup group("memory");
  if (!group.exists()) {
    WARN("SKIP memory-cgroup: no control group for memory can be made here");
    return;
  }
  Wrapped wrapped(group.entering());
  RunningDaemon daemon({"--frequency", "1000"});
  // An open minute can't be freed: one must have been sealed.
  ChildProcess program({victim("known_chain")});
  REQUIRE(RunningDaemon::eventually(seconds(150), [&] { return daemon.metrics()["flamed_store_slots"] >= 3; }));
  // A little more than fifteen sixteenths of it are in use, the point at which the daemon must act.
  group.limit_bytes(group.used_bytes() * 18 / 17);
  // New samples come all the time, thousands a second.
  double most = 0;
  CHECK(RunningDaemon::eventually(seconds(15), [&] {
    auto metrics = daemon.metrics();
    most = std::max(most, metrics["flamed_store_exact_samples"]);
    return metrics["flamed_store_given_back_bytes_total"] > 0 && metrics["flamed_store_exact_samples"] < most;
  }));
  CHECK(daemon.get("/healthz").status == 200);
  group.limit_bytes(1ULL << 40);
  check_every_sample_is_counted(daemon);
}

}  // namespace
}  // namespace flamed::test
