// SPDX-License-Identifier: Apache-2.0
#include "store/query/query.h"

#include <algorithm>
#include <set>

#include "test/catch.h"
#include "test/unit/store/store_fixture.h"

namespace flamed::store::test {

TEST_CASE("addresses in one function become one node, siblings sorted by name, parents first") {
  TestStore t;
  t.add({code(0x10), code(0x90)});
  t.add({code(0x11), code(0x91)});
  t.add({code(0x12), code(0x20)});
  t.add({code(0x10)});
  Profile profile = t.profile(ProcessSelector{100, {}});
  CHECK(folded(profile) ==
        std::vector<std::string>{"worker (100);f1 1", "worker (100);f1;f2 1", "worker (100);f1;f9 2"});
  REQUIRE(profile.nodes.size() == 4);
  CHECK(profile.nodes[0].parent == 0);
  CHECK(profile.nodes[0].total_samples == 4);
  CHECK(profile.nodes[1].total_samples == 4);
  CHECK(profile.cpu_ns(profile.nodes[1].total_samples) == 4 * kPeriodNs);
  CHECK(profile.nodes[3].self_samples == 2);
  CHECK(profile.quality.whole == 4);
}

TEST_CASE("inlined functions stand below the function they were inlined into") {
  TestStore t;
  t.add({code(0x10), Frame{ModuleId{17}, 0x10}});
  t.add({code(0x10), Frame{ModuleId{17}, 0x20}});
  CHECK(folded(t.profile(ProcessSelector{100, {}})) ==
        std::vector<std::string>{"worker (100);f1;outer;f1 1", "worker (100);f1;outer;f2 1"});
}

TEST_CASE("names are looked up once per profile, for distinct frames, never for markers") {
  TestStore t;
  t.add({code(0x10), code(0x20)});
  t.add({code(0x10), code(0x20), code(0x10)}, {7, 7}, Truncation::kUnreadableStack);
  TestNamer namer;
  build_profile(t.store.snapshot(), {t.everything()}, namer);
  CHECK(namer.calls == 1);
  CHECK(std::set<Frame>(namer.asked.begin(), namer.asked.end()).size() == namer.asked.size());
  CHECK(namer.asked.size() == 2);
}

TEST_CASE("the frames of modules are listed once each, in order") {
  TestStore t;
  t.add({code(0x20), code(0x10), Frame{ModuleId{17}, 0x30}});
  t.add({code(0x10), Frame{ModuleId{18}, 0x30}, Frame{ModuleId{17}, 0x05}}, {7, 7}, Truncation::kUnreadableStack);
  const ModuleId module = code(0).module;
  const std::vector<ModuleId> two{module, ModuleId{17}};
  CHECK(frames_of(t.store.snapshot(), two) ==
        std::vector<Frame>{code(0x10), code(0x20), {ModuleId{17}, 0x05}, {ModuleId{17}, 0x30}});
  CHECK(frames_of(t.store.snapshot(), {}).empty());
}

TEST_CASE("the whole machine has one node per process below the root, sorted by name") {
  TestStore t;
  t.store.update_process({{1, 1}, "systemd", "/sbin/init", 0, {}, {}});
  t.store.update_process({{2, 1}, "bash", "/bin/bash", 0, {}, {}});
  t.add({code(16)}, {1, 1});
  t.add({code(16)}, {2, 1});
  t.add({code(16)}, {2, 1});
  Profile profile = t.profile();
  CHECK(folded(profile) == std::vector<std::string>{"all;bash (2);f1 2", "all;systemd (1);f1 1"});
  CHECK(profile.frames[profile.nodes[1].frame].kind == FrameKind::kRoot);
  REQUIRE(profile.processes.size() == 2);
  CHECK(profile.processes[0].executable == "/sbin/init");
  std::set<std::pair<std::string, std::string>> distinct;
  for (const NamedFrame& frame : profile.frames) distinct.insert({frame.name, frame.module});
  CHECK(distinct.size() == profile.frames.size());
}

TEST_CASE("among very many processes the smallest share a node per name") {
  TestStore t;
  for (std::int32_t pid = 1; pid <= 1000; ++pid) t.add({code(16)}, {pid, 1});
  for (int i = 0; i < 5; ++i) t.add({code(32)}, {900, 1});
  Profile profile = t.profile();
  auto lines = folded(profile);
  CHECK(lines.size() == 256 + 1 + 1);  // 900 has two functions
  CHECK(std::count(lines.begin(), lines.end(), "all;worker (744 processes);f1 744") == 1);
  CHECK(std::count(lines.begin(), lines.end(), "all;worker (900);f2 5") == 1);
  CHECK(profile.nodes[0].total_samples == 1005);
  CHECK(profile.processes.size() == 1000);
}

TEST_CASE("a caller of very many functions has one node for each") {
  TestStore t;
  for (std::uint64_t i = 0; i < 3000; ++i) t.add({code(16), code(16 * (i % 1000))});
  Profile profile = t.profile(ProcessSelector{100, {}});
  CHECK(profile.nodes.size() == 1 + 1 + 1000);
  CHECK(std::all_of(profile.nodes.begin() + 2, profile.nodes.end(),
                    [](const ProfileNode& node) { return node.self_samples == 3 && node.parent == 1; }));
}

TEST_CASE("threads of a process are merged into it") {
  TestStore t;
  std::vector<Frame> frames{code(16)};
  for (std::int32_t tid : {100, 101, 102}) {
    t.store.add({t.clock.monotonic(), kProcess, tid, "t" + std::to_string(tid), frames, {}});
  }
  CHECK(folded(t.profile()) == std::vector<std::string>{"all;t100 (100);f1 3"});
  CHECK(t.store.stats().threads == 3);
}

TEST_CASE("a reused pid is merged, marked as reused, and can be selected by start time") {
  TestStore t;
  t.store.update_process({{100, 1}, "first", "", 0, {}, kNoon});
  t.store.update_process({{100, 2}, "second", "", 0, {}, {}});
  t.add({code(16)}, {100, 1});
  t.add({code(32)}, {100, 2});
  t.add({code(32)}, {100, 2});
  Profile merged = t.profile(ProcessSelector{100, {}});
  CHECK(merged.nodes[0].total_samples == 3);
  CHECK(merged.processes.size() == 2);
  CHECK(mentions(merged.warnings, "pid=100@1 (first), pid=100@2 (second)"));
  Profile second = t.profile_of({kNoon, {t.clock.wall().ns + kNsPerSecond}}, ProcessSelector{100, 2});
  CHECK(folded(second) == std::vector<std::string>{"second (100);f2 2"});
  CHECK(second.processes.size() == 1);
  CHECK(second.warnings.empty());
}

TEST_CASE("two processes with one pid are two nodes of the whole machine, even with the same name") {
  TestStore t;
  t.add({code(16)}, {100, 1});
  t.add({code(16)}, {100, 2});
  CHECK(folded(t.profile()) == std::vector<std::string>{"all;worker (100@1);f1 1", "all;worker (100@2);f1 1"});
}

TEST_CASE("a window is half-open and rounds outwards to slots without single samples") {
  TestStore t({60 * kNsPerMinute, 8U << 20, 0});
  for (int minute = 0; minute < 5; ++minute) {
    t.add({code(16)});
    t.pass_minutes(1);
  }
  WallTime second{kNoon.ns + kNsPerMinute};
  WallTime third{kNoon.ns + 2 * kNsPerMinute};
  Profile exact = t.profile_of({second, third});
  CHECK(exact.nodes[0].total_samples == 1);
  CHECK(exact.used.from == second);
  CHECK(exact.used.to == third);
  CHECK(exact.asked.from == second);
  Profile touching = t.profile_of({{third.ns - 1}, {third.ns + 1}});
  CHECK(touching.nodes[0].total_samples == 2);
  CHECK(touching.used.from == second);
  CHECK(touching.used.to.ns == third.ns + kNsPerMinute);
  CHECK(touching.resolution_ns == kNsPerMinute);
  CHECK(touching.warnings.empty());
}

TEST_CASE("a window's part of the open slot ends now") {
  TestStore t({60 * kNsPerMinute, 8U << 20, 0});
  t.pass(20);
  t.add({code(16)});
  t.pass(5);
  Profile profile = t.profile_of({{t.clock.wall().ns - 5 * kNsPerSecond}, t.clock.wall()});
  CHECK(profile.nodes[0].total_samples == 1);
  CHECK(profile.used.from == kNoon);
  CHECK(profile.used.to == t.clock.wall());
  CHECK(profile.warnings.empty());
}

TEST_CASE("a window from before sampling says when sampling began") {
  TestStore t;
  t.clock.advance_ns(40 * kNsPerSecond);
  t.store.begin();
  t.add({code(16)});
  t.pass(5);
  const Profile partly = t.profile_of({kNoon, t.clock.wall()});
  CHECK(partly.warnings ==
        std::vector<std::string>{"flamed began to sample at 2026-01-01T12:00:40Z, after the window's "
                                 "start: there are no samples from before."});
  for (const WallTime to : {WallTime{kNoon.ns + 20 * kNsPerSecond}, WallTime{kNoon.ns + 40 * kNsPerSecond}}) {
    const Profile before = t.profile_of({kNoon, to});
    CHECK(before.nodes[0].total_samples == 0);
    CHECK(before.warnings == std::vector<std::string>{"The window is before flamed began to sample, at "
                                                      "2026-01-01T12:00:40Z: there are no samples of it."});
  }
  CHECK(t.profile_of({{kNoon.ns + 40 * kNsPerSecond}, t.clock.wall()}).warnings.empty());

  // In whole milliseconds, as in answers, it is the same moment.
  TestStore within;
  within.clock.advance_ns(40 * kNsPerSecond + 300'000);
  within.store.begin();
  within.add({code(16)});
  within.pass(5);
  CHECK(within.profile_of({{kNoon.ns + 40 * kNsPerSecond}, within.clock.wall()}).warnings.empty());
}

TEST_CASE("a window outside of the retained time names that time") {
  TestStore t({.retention_ns = 3 * kNsPerMinute});
  t.pass_minutes(3);
  t.add({code(16)});
  t.pass_minutes(2);
  Profile partly = t.profile_of({{kNoon.ns - kNsPerMinute}, t.clock.wall()});
  CHECK(partly.nodes[0].total_samples == 1);
  CHECK(partly.used.from.ns == kNoon.ns + 2 * kNsPerMinute);
  CHECK(mentions(partly.warnings,
                 "partly outside of the retained time, which is 2026-01-01T12:02:00Z to 2026-01-01T12:05:00Z"));
  Profile late = t.profile_of({t.clock.wall(), {t.clock.wall().ns + kNsPerMinute}});
  CHECK(mentions(late.warnings, "outside of the retained time"));
  Profile outside = t.profile_of({{kNoon.ns - 2 * kNsPerMinute}, {kNoon.ns - kNsPerMinute}});
  CHECK(outside.nodes.size() == 1);
  CHECK(outside.nodes[0].total_samples == 0);
  CHECK(mentions(outside.warnings, "outside of the retained time"));
  CHECK(outside.warnings.size() == 1);
}

TEST_CASE("an empty selection is a root without samples and a reason") {
  TestStore t;
  CHECK(mentions(t.profile().warnings, "Nothing is retained yet"));
  t.add({code(16)});
  Profile profile = t.profile_of({kNoon, {kNoon.ns + kNsPerMinute}}, ProcessSelector{4242, {}});
  REQUIRE(profile.nodes.size() == 1);
  CHECK(profile.nodes[0].total_samples == 0);
  CHECK(profile.frames.size() == 1);
  CHECK(profile.processes.empty());
  CHECK(mentions(profile.warnings, "4242 has no samples"));
  CHECK(mentions(t.profile_of({kNoon, kNoon}).warnings, "empty"));
}

TEST_CASE("a search for any samples of a selection covers minutes, single samples and sides") {
  TestStore t({.exact_budget_bytes = 0});
  t.add({code(16)}, {1, 1});
  t.add({code(16), {kKernelModule, 1}}, {2, 1});
  t.pass_minutes(3);
  t.add({code(32)}, {3, 1});
  TestNamer namer;
  const auto ever = [&](Selection selection, const ProfileOptions& options = {}) {
    selection.window = {{1}, {2}};
    QueryBudget budget;
    return matches_ever(t.store.snapshot(), std::move(selection), options, namer, budget);
  };
  const auto of_pid = [](std::int32_t pid, Side side = Side::kBoth) {
    Selection selection;
    selection.processes = {{pid, {}}};
    selection.side = side;
    return selection;
  };
  CHECK(ever({}) == true);
  for (const std::int32_t pid : {1, 2, 3}) CHECK(ever(of_pid(pid)) == true);
  CHECK(ever(of_pid(4)) == false);
  CHECK(ever(of_pid(1, Side::kKernel)) == false);
  CHECK(ever(of_pid(2, Side::kKernel)) == true);
  // Names are looked up only if needed.
  CHECK(namer.calls == 0);
  ProfileOptions focus;
  focus.focus = [](std::string_view name) { return name == "f2"; };
  CHECK(ever(of_pid(3), focus) == true);
  CHECK(ever(of_pid(1), focus) == false);
  // A part of each second is a part of the time.
  Selection part = of_pid(3);
  part.part = SecondPart{1, 2};
  CHECK(ever(part) == true);
}

TEST_CASE("whether anything ever matched is unknown for an empty store and beyond the budget") {
  TestStore t;
  TestNamer namer;
  QueryBudget unlimited;
  CHECK_FALSE(matches_ever(t.store.snapshot(), {}, {}, namer, unlimited).has_value());
  t.add({code(16)});
  t.pass_minutes(2);
  QueryBudget none(QueryLimits{.nodes = 0}, nullptr);
  REQUIRE_FALSE(none.grow());
  Selection nobody;
  nobody.comms = {"nobody"};
  CHECK_FALSE(matches_ever(t.store.snapshot(), nobody, {}, namer, none).has_value());
}

TEST_CASE("a selected idle process is described though it has no samples") {
  TestStore t;
  t.store.update_process({kProcess, "idle", "/bin/idle", 7, kNoon, {}});
  t.add({code(16)}, {1, 1});
  Profile profile = t.profile(ProcessSelector{100, {}});
  REQUIRE(profile.processes.size() == 1);
  CHECK(profile.processes[0].comm == "idle");
  CHECK(profile.processes[0].executable == "/bin/idle");
  CHECK(profile.processes[0].cgroup_id == 7);
  CHECK(profile.processes[0].started == kNoon);
  CHECK_FALSE(profile.processes[0].ended.has_value());
}

TEST_CASE("quality is of the selection, but losses are of the machine") {
  TestStore t;
  t.add({code(16)}, {1, 1});
  t.add({code(16)}, {2, 1}, Truncation::kDepthLimit);
  t.add({}, {2, 1}, Truncation::kNoUserRegisters);
  t.add({code(16)}, {2, 1});
  t.store.add_lost(Loss::kRingFull, 9, t.clock.monotonic());
  Profile profile = t.profile(ProcessSelector{2, {}});
  CHECK(profile.quality.whole == 1);
  CHECK(count_of(profile.quality, Truncation::kDepthLimit) == 1);
  CHECK(count_of(profile.quality, Truncation::kNoUserRegisters) == 1);
  CHECK(count_of(profile.quality, Loss::kRingFull) == 9);
  CHECK(profile.quality.taken() == 12);
  Profile machine = t.profile();
  CHECK(machine.quality.whole == t.store.stats().quality.whole);
  CHECK(machine.quality.truncated == t.store.stats().quality.truncated);
}

TEST_CASE("a truncated stack is shown below a marker that says why") {
  TestStore t;
  t.add({code(16)}, kProcess, Truncation::kBrokenFramePointer);
  Profile profile = t.profile(ProcessSelector{100, {}});
  CHECK(folded(profile) == std::vector<std::string>{"worker (100);[truncated: built without frame pointers];f1 1"});
  CHECK(profile.frames[profile.nodes[1].frame].kind == FrameKind::kMarker);
}

TEST_CASE("stacks of any depth are stored and shown") {
  TestStore t;
  std::vector<Frame> deep;
  for (std::uint64_t i = 0; i < 50'000; ++i) deep.push_back(code(16 * i));
  t.add(deep);
  t.add(deep);
  Profile profile = t.profile(ProcessSelector{100, {}});
  REQUIRE(profile.nodes.size() == deep.size() + 1);
  CHECK(profile.nodes.back().self_samples == 2);
  CHECK(profile.nodes[0].total_samples == 2);
}

TEST_CASE("a sample without frames counts for its process") {
  TestStore t;
  t.add({});
  CHECK(folded(t.profile()) == std::vector<std::string>{"all;worker (100) 1"});
}

TEST_CASE("processes with samples in the window are listed, largest first") {
  TestStore t;
  t.add({code(16)}, {1, 1});
  t.add({code(16)}, {2, 1});
  t.add({code(32)}, {2, 1});
  t.pass_minutes(2);
  t.add({code(16)}, {3, 1});
  auto usage = process_usage(t.store.snapshot(), {kNoon, {kNoon.ns + kNsPerMinute}});
  REQUIRE(usage.size() == 2);
  CHECK(usage[0].info.id == ProcessId{2, 1});
  CHECK(usage[0].samples == 2);
  CHECK(usage[0].cpu_ns == 2 * kPeriodNs);
  CHECK(usage[1].info.id == ProcessId{1, 1});
  CHECK(process_usage(t.store.snapshot(), t.everything()).size() == 3);
}

TEST_CASE("the main thread names a process without other information") {
  TestStore t;
  std::vector<Frame> frames{code(16)};
  t.store.add({t.clock.monotonic(), kProcess, 101, "helper", frames, {}});
  t.store.add({t.clock.monotonic(), kProcess, 100, "server", frames, {}});
  t.store.add({t.clock.monotonic(), kProcess, 102, "other", frames, {}});
  CHECK(t.profile().processes.at(0).comm == "server");
}

}  // namespace flamed::store::test
