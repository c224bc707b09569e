// SPDX-License-Identifier: Apache-2.0
//
// What one user of a host sees of a snapshot with all users' samples.
#include <algorithm>
#include <string>
#include <vector>

#include "store/query/heatmap.h"
#include "store/query/query.h"
#include "store/query/stack_profile.h"
#include "store/query/timed_samples.h"
#include "store/query/timeline.h"
#include "test/catch.h"
#include "test/unit/store/store_fixture.h"

namespace flamed::store::test {
namespace {

constexpr std::uint32_t kAlice = 1001;
constexpr std::uint32_t kBob = 1002;
constexpr ProcessId kAlices{201, 5000};
constexpr ProcessId kBobs{202, 5001};

/// A store in which Alice and Bob have a process each.
struct SharedHost : TestStore {
  SharedHost() {
    add_of(kAlice, kAlices, 3);
    add_of(kBob, kBobs, 5);
  }
  void add_of(std::uint32_t owner, ProcessId process, int samples, std::vector<Frame> frames = {code(16)}) {
    StackSample sample{clock.monotonic(), process, process.pid, "worker", frames, {}};
    sample.owner = owner;
    for (int i = 0; i < samples; ++i) store.add(sample);
  }
  [[nodiscard]] std::uint64_t seen(std::uint32_t user, const Selection& selection) const {
    TestNamer namer;
    return build_profile(seen_by(store.snapshot(), user), selection, namer).nodes[0].total_samples;
  }
  [[nodiscard]] std::uint64_t seen(std::uint32_t user) const { return seen(user, Selection{everything()}); }
};

Selection with_pid(const SharedHost& host, std::int32_t pid) {
  Selection selection{host.everything()};
  selection.processes.push_back({pid});
  return selection;
}

TEST_CASE("A user sees the samples of their own threads and no others", "[store]") {
  const SharedHost host;
  CHECK(host.seen(kAlice) == 3);
  CHECK(host.seen(kBob) == 5);
  CHECK(host.seen(1003) == 0);
  CHECK(host.profile().nodes[0].total_samples == 8);
}

TEST_CASE("Hidden code is one frame to its user, for as long as it was hidden", "[store]") {
  SharedHost host;
  const ProcessId hidden{301, 5002};
  StackSample sample{host.clock.monotonic(), hidden, hidden.pid, "dropped", {}, {}};
  const std::vector<Frame> frames{code(32), code(48)};
  sample.frames = frames;
  sample.owner = kAlice;
  host.store.add(sample);
  sample.is_hidden = true;
  for (int i = 0; i < 4; ++i) host.store.add(sample);
  const auto seen_as = [&](const Snapshot& snapshot) {
    TestNamer namer;
    static_cast<void>(build_profile(snapshot, with_pid(host, hidden.pid), namer));
    std::vector<Frame> asked = namer.asked;
    std::sort(asked.begin(), asked.end());
    return asked;
  };
  CHECK(seen_as(host.store.snapshot()) == std::vector<Frame>{code(32), code(48)});
  CHECK(seen_as(seen_by(host.store.snapshot(), kAlice)) == std::vector<Frame>{{kHiddenModule, 0}, code(32), code(48)});
  CHECK(host.seen(kAlice, with_pid(host, hidden.pid)) == 5);
  // The frame exists as long as there are such stacks, and returns with them.
  host.clock.advance_ns(3 * 24 * 60 * kNsPerMinute);
  host.store.advance(host.clock.monotonic());
  sample.time = host.clock.monotonic();
  host.store.add(sample);
  CHECK(seen_as(seen_by(host.store.snapshot(), kAlice)) == std::vector<Frame>{{kHiddenModule, 0}});
}

TEST_CASE("No selection reaches another user's processes", "[store]") {
  const SharedHost host;
  CHECK(host.seen(kAlice, with_pid(host, kAlices.pid)) == 3);
  CHECK(host.seen(kAlice, with_pid(host, kBobs.pid)) == 0);
  Selection by_uid{host.everything()};
  by_uid.uids.push_back(kBob);
  CHECK(host.seen(kAlice, by_uid) == 0);
  CHECK(host.seen(kBob, by_uid) == 5);
  Selection by_name{host.everything()};
  by_name.comms.emplace_back("worker");
  CHECK(host.seen(kAlice, by_name) == 3);
  Selection by_tid{host.everything()};
  by_tid.tids.push_back(kBobs.pid);
  CHECK(host.seen(kAlice, by_tid) == 0);
}

TEST_CASE("Each kind of answer has only the user's own samples", "[store]") {
  const SharedHost host;
  const Snapshot alices = seen_by(host.store.snapshot(), kAlice);
  const Selection everything{host.everything()};
  TestNamer namer;
  QueryBudget budget;

  const Profile profile = build_profile(alices, everything, namer);
  REQUIRE(profile.processes.size() == 1);
  CHECK(profile.processes.front().id == kAlices);
  CHECK(profile.quality.whole == 3);
  CHECK(profile.only_user == kAlice);

  const auto stacks = build_stacks(alices, everything, {}, namer, budget).value();
  CHECK(stacks.total_samples == 3);
  REQUIRE(stacks.processes.size() == 1);
  CHECK(stacks.processes.front().id == kAlices);
  CHECK(stacks.only_user == kAlice);

  const auto samples = timed_samples(alices, everything, {}, namer, budget).value();
  CHECK(samples.samples.size() == 3);

  const auto line = timeline(alices, everything, kNsPerSecond, 10, budget).value();
  REQUIRE(line.processes.size() == 1);
  CHECK(line.processes.front().info.id == kAlices);
  CHECK(line.quality.whole == 3);

  const auto map = heatmap(alices, everything, 50, budget).value();
  CHECK(map.total_samples == 3);
  CHECK(map.most == 3);

  const auto processes = process_usage(alices, everything, budget).value();
  REQUIRE(processes.rows.size() == 1);
  CHECK(processes.rows.front().info.id == kAlices);
  CHECK(processes.total_samples == 3);

  const auto threads = thread_usage(alices, everything, budget).value();
  REQUIRE(threads.rows.size() == 1);
  CHECK(threads.rows.front().process.id == kAlices);
}

TEST_CASE("A user learns nothing about other users from a snapshot", "[store]") {
  const SharedHost host;
  const Snapshot alices = seen_by(host.store.snapshot(), kAlice);
  CHECK(knows(alices, {kAlices.pid}));
  CHECK_FALSE(knows(alices, {kBobs.pid}));
  CHECK(knows(host.store.snapshot(), {kBobs.pid}));
  Selection both;
  both.processes = {{kAlices.pid}, {kBobs.pid}};
  CHECK(selected_processes(alices, both, 10).size() == 1);
  // A profile of a pid without samples describes the process, but not another user's.
  TestNamer namer;
  CHECK(build_profile(alices, with_pid(host, kBobs.pid), namer).processes.empty());
}

TEST_CASE("A thread that had several users is seen by none", "[store]") {
  SharedHost host;
  const ProcessId set_user_id{203, 5002};
  host.add_of(kNoUser, set_user_id, 7);
  CHECK(host.seen(kAlice) == 3);
  CHECK(host.seen(kNoUser) == 0);
  CHECK(host.seen(kNoUser, with_pid(host, set_user_id.pid)) == 0);
}

TEST_CASE("A user sees a process's samples from when it became theirs", "[store]") {
  SharedHost host;
  const ProcessId service{204, 5003};
  host.add_of(0, service, 2, {code(32)});
  CHECK(host.seen(kAlice, with_pid(host, service.pid)) == 0);
  host.add_of(kAlice, service, 4, {code(64)});
  TestNamer namer;
  const Profile profile = build_profile(seen_by(host.store.snapshot(), kAlice), with_pid(host, service.pid), namer);
  CHECK(folded(profile) == std::vector<std::string>{"worker (204);f4 4"});
}

TEST_CASE("A user does not see a process that is no longer theirs", "[store]") {
  SharedHost host;
  host.add_of(0, kAlices, 1);
  CHECK(host.seen(kAlice) == 0);
  CHECK_FALSE(knows(seen_by(host.store.snapshot(), kAlice), {kAlices.pid}));
}

TEST_CASE("Threads of one process are separated by user in long windows, too", "[store]") {
  SharedHost host;
  const ProcessId mixed{205, 5004};
  for (int minute = 0; minute < 70; ++minute) {
    host.add_of(0, mixed, 1);
    host.add_of(kAlice, mixed, 1);
    host.pass_minutes(1);
  }
  // A viewer of everything makes the sums of minutes, which have no threads.
  CHECK(host.profile().nodes[0].total_samples == 8 + 140);
  CHECK(host.seen(kAlice, with_pid(host, mixed.pid)) == 70);
}

TEST_CASE("A user is told that samples were lost, but not how many", "[store]") {
  SharedHost host;
  host.store.add_lost(Loss::kRingFull, 1234, host.clock.monotonic());
  TestNamer namer;
  const Profile profile = build_profile(seen_by(host.store.snapshot(), kAlice), Selection{host.everything()}, namer);
  CHECK(profile.quality.lost_total() == 0);
  CHECK(mentions(profile.warnings, "were lost"));
  CHECK_FALSE(mentions(profile.warnings, "1234"));
}

TEST_CASE("A user is not told addresses in the kernel", "[store]") {
  SharedHost host;
  const std::uint64_t address = 0xffffffff81000010ULL;
  host.add_of(kAlice, kAlices, 1, {code(16), {kKernelModule, address}});
  const auto tells = [&](const Snapshot& snapshot) {
    TestNamer namer;
    QueryBudget budget;
    const auto stacks = build_stacks(snapshot, Selection{host.everything()}, {}, namer, budget).value();
    return std::any_of(stacks.frames.begin(), stacks.frames.end(),
                       [&](const StackFrame& frame) { return frame.address.offset == address; });
  };
  CHECK(tells(host.store.snapshot()));
  CHECK_FALSE(tells(seen_by(host.store.snapshot(), kAlice)));
}

TEST_CASE("A user whose processes were idle learns that, and not that the machine was", "[store]") {
  const SharedHost host;
  TestNamer namer;
  const Profile profile = build_profile(seen_by(host.store.snapshot(), 1003), Selection{host.everything()}, namer);
  CHECK(mentions(profile.warnings, "No process of uid 1003"));
  CHECK_FALSE(mentions(profile.warnings, "idle"));
}

}  // namespace
}  // namespace flamed::store::test
