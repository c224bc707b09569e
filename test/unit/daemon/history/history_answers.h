// SPDX-License-Identifier: Apache-2.0
//
// Shared by the tests of history: some minutes of two users, and every kind of answer about them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/render/render_diff.h"
#include "api/render/render_flamegraph.h"
#include "api/render/render_folded.h"
#include "api/render/render_pprof.h"
#include "api/render/render_processes.h"
#include "api/render/render_speedscope.h"
#include "api/render/render_threads.h"
#include "api/render/render_timeline.h"
#include "api/render/render_top.h"
#include "store/query/query.h"
#include "store/query/stack_profile.h"
#include "store/query/timeline.h"
#include "test/catch.h"
#include "test/unit/daemon/history/history_fixture.h"
#include "test/unit/store/store_fixture.h"

namespace flamed::daemon::test {

using store::Selection;
using store::Snapshot;
using store::test::code;
using store::test::kNoon;
using store::test::TestStore;

inline constexpr ProcessId kShell{100, 5000};
inline constexpr ProcessId kServer{200, 6000};
inline constexpr std::uint32_t kAlice = 1000;
inline constexpr std::uint32_t kBob = 1001;
inline constexpr std::uint32_t kDynamic = 61200;

/// Without single samples, as minutes from disk are.
inline constexpr store::Limits kCountsAlone{.exact_budget_bytes = 0};

inline void add(TestStore& test, ProcessId process, std::int32_t tid, std::uint32_t owner, std::vector<Frame> frames,
                std::optional<store::Truncation> truncation = {}, bool is_hidden = false) {
  store::StackSample sample{test.clock.monotonic(), process, tid, "worker", frames, truncation};
  sample.owner = owner;
  sample.is_hidden = is_hidden;
  test.store.add(sample);
}

inline store::ProcessInfo info_of(ProcessId id, std::string executable) {
  store::ProcessInfo info;
  info.id = id;
  info.comm = "name";
  info.executable = std::move(executable);
  info.started = WallTime{kNoon.ns - kNsPerMinute};
  info.command_line = "program --flag";
  info.cgroup = "/system.slice/a.service";
  info.unit = "a.service";
  return info;
}

/// Of two users' processes, with all that a minute can have.
inline void sample_once(TestStore& test, int number) {
  if (number == 0) {
    test.store.update_process(info_of(kShell, "/bin/shell"));
    test.store.update_process(info_of(kServer, "/usr/bin/server"));
  }
  const std::uint64_t varying = 0x100 + 16 * static_cast<std::uint64_t>(number);
  add(test, kShell, 100, kAlice, {code(0x10), code(varying)});
  add(test, kServer, 201, kBob, {code(0x10), code(0x20), {kKernelModule, 0xffffffff81000010}});
  add(test, kServer, 202, kBob, {code(0x30)}, store::Truncation::kDepthLimit);
  test.store.add_lost(store::Loss::kRingFull, 1, test.clock.monotonic());
}
inline void sample(TestStore& test, int minutes) {
  for (int minute = 0; minute < minutes; ++minute) {
    sample_once(test, minute);
    test.pass_minutes(1);
  }
}

inline void end(TestStore& test, TestHistory& on_disk) {
  test.store.finish(test.clock.monotonic());
  on_disk.history.write();
  on_disk.history.end_session();
  REQUIRE_FALSE(on_disk.history.state().problem);
}

inline std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += text + "\n";
  return all;
}

/// Every kind of answer about a window but pprof, which has addresses, as its bytes.
inline std::string answers_without_addresses(const Snapshot& snapshot, const Selection& selection,
                                             store::FrameNamer& namer) {
  store::QueryBudget budget;
  std::vector<std::string> texts;
  for (const store::Group group :
       {store::Group::kProcess, store::Group::kThread, store::Group::kUnit, store::Group::kUser}) {
    store::ProfileOptions options;
    options.group = group;
    const auto profile = store::build_profile(snapshot, selection, options, namer, budget).value();
    texts.push_back(api::render_flamegraph(profile, 99));
    texts.push_back(api::render_folded(profile));
    texts.push_back(api::render_top_text(profile, 10));
  }
  const auto stacks = store::build_stacks(snapshot, selection, {}, namer, budget).value();
  texts.push_back(api::render_speedscope(stacks, store::Group::kNone, "title"));
  texts.push_back(api::render_processes(store::process_usage(snapshot, selection, budget).value(), 99));
  texts.push_back(api::render_threads(store::thread_usage(snapshot, selection, budget).value(), 99));
  texts.push_back(api::render_timeline(store::timeline(snapshot, selection, kNsPerMinute, 5, budget).value(), 99));
  Selection earlier = selection;
  earlier.window.to.ns -= kNsPerMinute;
  const auto diff = store::build_diff(snapshot, earlier, selection, {}, {}, namer, budget).value();
  texts.push_back(api::render_diff_folded(diff));
  return joined(texts);
}

inline std::string answers(const Snapshot& snapshot, const Selection& selection, store::FrameNamer& namer) {
  store::QueryBudget budget;
  const auto stacks = store::build_stacks(snapshot, selection, {}, namer, budget).value();
  return answers_without_addresses(snapshot, selection, namer) + api::render_pprof(stacks).value();
}

}  // namespace flamed::daemon::test
