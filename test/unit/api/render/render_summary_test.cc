// SPDX-License-Identifier: Apache-2.0
#include "api/render/render_summary.h"

#include <algorithm>
#include <string>

#include "test/catch.h"
#include "test/unit/api/render/profile_builder.h"

namespace flamed::api {
namespace {

using store::FrameKind;
using store::Group;

constexpr std::int64_t kWindowS = 900;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// A machine's profile by program.
struct Machine : ProfileBuilder {
  Machine() {
    profile.period_ns = 10'000'000;
    profile.periods = {{10'000'000, 1}};
  }
  /// A program with one process that has this many samples in main() and below, in `function`.
  std::uint32_t add_program(const std::string& name, const std::string& function, std::uint64_t samples) {
    const auto pid = static_cast<std::int32_t>(100 + profile.processes.size());
    profile.processes.push_back({{pid, 1}, name, "/usr/bin/" + name, 0, {}, {}});
    const auto group = add(0, {name, "", FrameKind::kRoot, ""}, 0);
    const auto main = add(group, "main_of_" + name, 0);
    return add(main, function, samples);
  }
  std::string text() {
    profile.quality.whole += profile.nodes.front().total_samples - profile.quality.stored();
    return render_summary(profile, facts);
  }
  SummaryFacts facts{{}, Group::kProgram, 4};
};

/// A profile of one process.
struct Process : Machine {
  Process() {
    facts.selection.processes = {{7, 70}};
    profile.processes.push_back({{7, 70}, "worker", "/usr/bin/worker", 0, profile.used.from, {}});
  }
  [[nodiscard]] store::ProcessInfo& process() { return profile.processes.front(); }
};

TEST_CASE("a busy machine is told by its first sentence: how busy, which program, which function") {
  Machine machine;
  machine.add_program("cc1plus", "parse", 90'000);
  machine.add_program("make", "wait", 20'000);
  const std::string text = machine.text();
  CHECK(first_line(text) ==
        "The machine used 1.22 of its 4 CPUs (31 %), most of it (82 %) in cc1plus; the hottest function is parse (82 "
        "%).");
  CHECK(contains(text,
                 "That is 1100.00 s of CPU time from 2026-01-31T14:00:00.000Z to 2026-01-31T14:15:00.000Z (15 min), "
                 "from 110000 samples at 100 Hz.\n"));
  CHECK(contains(text, "By program: cc1plus 82 % (pid 100), make 18 % (pid 101).\n"));
  CHECK(contains(text, "Time in the functions themselves: parse 82 %, wait 18 %.\n"));
  CHECK(contains(text, "Time with what they call: main_of_cc1plus 82 %, main_of_make 18 %.\n"));
  CHECK_FALSE(contains(text, "may be wrong"));
  CHECK_FALSE(contains(text, "kernel"));
  CHECK_FALSE(contains(text, "ended"));
}

TEST_CASE("programs of many processes are counted, and the smallest are summed up") {
  Machine machine;
  for (int i = 0; i < 7; ++i) machine.add_program("p" + std::to_string(i), "f", 1000 - static_cast<std::uint64_t>(i));
  machine.profile.processes.push_back({{999, 1}, "p0", "/opt/p0", 0, {}, WallTime{1}});
  const std::string text = machine.text();
  CHECK(contains(text, "By program: p0 14 % (2 processes), p1 14 % (pid 101), "));
  CHECK(contains(text, "; 2 others 28 %.\n"));
  CHECK(contains(text, "1 of the 8 processes has ended.\n"));
}

TEST_CASE("functions that differ by no more than chance share the time") {
  Process process;
  process.add(0, "first", 5060);
  process.add(0, "second", 4940);
  CHECK(contains(first_line(process.text()), "; two functions share it: first (51 %) and second (49 %)."));

  Process flat;
  for (int i = 0; i < 20; ++i) flat.add(0, "f" + std::to_string(i), 1000);
  CHECK(contains(first_line(flat.text()), "; no function stands out: the hottest are f0 (5.0 %), "));

  Process one;
  one.add(0, "first", 5050);
  one.add(0, "second", 3950);
  CHECK(contains(first_line(one.text()), "; the hottest function is first (56 %)."));
}

TEST_CASE("a process is told by its own life") {
  Process process;
  process.add(0, "f", 9000);
  process.process().started = WallTime{process.profile.used.from.ns + 800 * kNsPerSecond};
  CHECK(contains(first_line(process.text()), "worker (pid 7) used 0.90 of the machine's 4 CPUs (22 %); "));

  process.process().ended = WallTime{process.profile.used.from.ns + 890 * kNsPerSecond};
  CHECK(contains(first_line(process.text()),
                 "worker (pid 7) has ended, at 2026-01-31T14:14:50.000Z; before that it used 1.00 of the machine's"));

  Process waiting;
  waiting.add(0, "poll", 100);
  CHECK(contains(first_line(waiting.text()),
                 "worker (pid 7) mostly waited, for a CPU or something else: it used 0.00 of the machine's 4 CPUs"));
}

TEST_CASE("an empty window says why it is empty") {
  Machine idle;
  CHECK(first_line(idle.text()) == "The machine was idle: no sample was taken.");

  Machine quiet;
  quiet.add_program("tick", "f", 100);
  CHECK(contains(first_line(quiet.text()), "The machine was nearly idle: it used 0.00 of its 4 CPUs"));

  Process waiting;
  CHECK(first_line(waiting.text()) == "worker (pid 7) used no CPU in the window: it waited, and no sample met it.");
  waiting.process().ended = WallTime{waiting.profile.used.to.ns + 1};
  CHECK(contains(first_line(waiting.text()), "it ended at 2026-01-31T14:15:00.000Z."));
  waiting.process().ended = WallTime{waiting.profile.used.from.ns - kNsPerSecond};
  CHECK(first_line(waiting.text()) == "worker (pid 7) has ended: at 2026-01-31T13:59:59.000Z, before the window.");
  waiting.process().ended.reset();
  waiting.process().started = WallTime{waiting.profile.used.to.ns + kNsPerSecond};
  CHECK(contains(first_line(waiting.text()), "worker (pid 7) started after the window"));

  Machine unknown;
  unknown.facts.selection.processes = {{9, {}}};
  CHECK(first_line(unknown.text()) == "Process 9 used no CPU in the window: it waited, or did not exist yet.");

  Machine selected;
  selected.facts.selection.units = {"nginx"};
  CHECK(first_line(selected.text()) == "Nothing in the selection used CPU in the window.");

  Machine filtered;
  filtered.profile.quality.whole = 10;
  CHECK(first_line(render_summary(filtered.profile, filtered.facts)) ==
        "No stack in the window is left by focus, ignore and root.");

  Machine before;
  before.profile.used.to = before.profile.used.from;
  CHECK(first_line(before.text()) == "Nothing is known of this window: flamed keeps no sample of it.");
  Machine unsampled;
  unsampled.profile.periods.clear();
  CHECK(first_line(unsampled.text()) == first_line(before.text()));
}

TEST_CASE("code without names is told by its module, with what would help") {
  Process process;
  const auto main = process.add(0, "main", 0);
  for (int i = 0; i < 100; ++i) {
    process.add(
        main, {"[unknown] (libfoo.so+" + std::to_string(i) + ")", "libfoo.so", FrameKind::kUnknown, "no symbols"}, 60);
  }
  process.add(main, {"[unknown] (anon+0x1)", "[anon]", FrameKind::kUnknown, "no perf map"}, 1000);
  process.add(main, "named", 3000);
  const std::string text = process.text();
  CHECK(contains(first_line(text), "; most is code without names in libfoo.so (60 %)."));
  CHECK(contains(text,
                 "70 % of the time is in code without names: libfoo.so 60 %, [anon] 10 %. Install debug symbols of "
                 "libfoo.so, or build it without stripping. If it is a runtime's generated code, let the runtime "
                 "write a perf map.\n"));
}

TEST_CASE("functions without names are told one by one, and added up by module") {
  Process process;
  const auto main = process.add(0, "main", 0);
  process.add(main, {"[libfoo.so+0x1000]", "libfoo.so", FrameKind::kUnnamed, "no symbols"}, 6000);
  process.add(main, {"[libfoo.so+0x2000]", "libfoo.so", FrameKind::kUnnamed, "no symbols"}, 1000);
  process.add(main, "named", 3000);
  const std::string text = process.text();
  CHECK(contains(first_line(text), "the hottest function is [libfoo.so+0x1000] (60 %)."));
  CHECK(
      contains(text, "70 % of the time is in code without names: libfoo.so 70 %. Install debug symbols of libfoo.so"));
}

TEST_CASE("of callers that are in all stacks the innermost come first") {
  Process process;
  std::uint32_t at = 0;
  for (const char* name : {"_start", "__libc_start_main", "main", "run", "loop", "step", "work"}) {
    at = process.add(at, name, 0);
  }
  process.add(at, "leaf", 1000);
  CHECK(contains(process.text(),
                 "Time with what they call: work 100 %, step 100 %, loop 100 %, run 100 %, main 100 %.\n"));
}

TEST_CASE("time in the kernel is told with its functions") {
  Process process;
  const auto read = process.add(0, "read", 100);
  process.add(read, {"clear_user", "[kernel]", FrameKind::kKernel, ""}, 900);
  const std::string text = process.text();
  CHECK(contains(first_line(text), ", mostly in the kernel (90 %); the hottest function is clear_user (90 %)."));
  CHECK(contains(text, "90 % of the time is in the kernel: clear_user 90 %.\n"));
}

TEST_CASE("stacks that are cut are told with the reason, and with what would help only where something would") {
  Process process;
  process.add(0, "f", 1000);
  auto& truncated = process.profile.quality.truncated;
  truncated[static_cast<std::size_t>(store::Truncation::kNoUnwindInformation)] = 200;
  truncated[static_cast<std::size_t>(store::Truncation::kNewProcess)] = 50;
  CHECK(contains(process.text(),
                 "25 % of the stacks are cut: outer functions are missing, mostly because code has neither "
                 "unwind information nor frame pointers (20 %); build that code with frame pointers"));
  truncated = {};
  truncated[static_cast<std::size_t>(store::Truncation::kDamagedStack)] = 20;
  process.profile.quality.whole = 980;
  CHECK(contains(process.text(),
                 "2.0 % of the stacks are cut: outer functions are missing, mostly because stacks do not grow "
                 "upwards (2.0 %).\n"));
  truncated = {};
  process.profile.quality.whole = 1000;
  CHECK_FALSE(contains(process.text(), "frame pointers"));
}

TEST_CASE("losses, coverage, few samples, the viewer and warnings are told") {
  Process process;
  process.add(0, "f", 100);
  process.profile.quality.lost[static_cast<std::size_t>(store::Loss::kRingFull)] = 3;
  process.profile.coverage = store::Coverage{1'000'000'000, 0.97, {}};
  process.profile.only_user = 1000;
  process.profile.warnings = {"Look out.\nReally."};
  const std::string text = process.text();
  CHECK(contains(text, "With so few samples a share may be wrong by 10 points."));
  CHECK(contains(text, "The samples stand for 97 % of the CPU time in the kernel's own accounts.\n"));
  CHECK(contains(
      text,
      "3 samples of the machine were lost in these minutes, mostly because: the CPU's ring of samples was full.\n"));
  CHECK(contains(text, "Only processes of uid 1000 are counted, the user who asks.\n"));
  CHECK(contains(text, "Note: Look out._Really.\n"));
}

TEST_CASE("a part of the stacks is not taken for the whole") {
  Machine machine;
  machine.add_program("cc1plus", "parse", 9000);
  machine.facts.is_filtered = true;
  CHECK(contains(first_line(machine.text()),
                 "The matching stacks of the machine used 0.10 of the machine's 4 CPUs (2.5 %); "));
  CHECK(contains(machine.text(), "Only stacks left by focus, ignore and root are counted.\n"));

  Process process;
  process.process().ended = process.profile.used.to;
  process.add(0, {"clear_user", "[kernel]", FrameKind::kKernel, ""}, 900);
  process.facts.selection.side = store::Side::kKernel;
  CHECK(contains(first_line(process.text()), "The matching stacks of worker (pid 7) used "));
  CHECK(contains(process.text(), "Only the kernel is counted.\n"));
}

TEST_CASE("names can neither break a line nor fill it") {
  Process process;
  process.process().comm = "a\nb";
  process.add(0, "f\n" + std::string(5000, 'x'), 100);
  const std::string text = process.text();
  CHECK(contains(first_line(text), "a_b (pid 7)"));
  for (std::size_t begin = 0; begin < text.size(); begin = text.find('\n', begin) + 1) {
    CHECK(text.find('\n', begin) - begin < 1000);
  }
}

struct Comparison {
  Comparison() {
    for (store::DiffSide* side : {&diff.before, &diff.after}) {
      side->used = {WallTime{1769868000LL * kNsPerSecond}, WallTime{(1769868000LL + kWindowS) * kNsPerSecond}};
      side->period_ns = 10'000'000;
      side->periods = {{10'000'000, 1}};
    }
  }
  void add(const std::string& name, std::uint64_t before, std::uint64_t after, bool significant) {
    diff.frames.push_back({name, "m", FrameKind::kNative, ""});
    store::DiffFunction function{
        static_cast<std::uint32_t>(diff.functions.size()), {before, before}, {after, after}, {}, 0};
    function.self.significant = significant;
    diff.functions.push_back(function);
    diff.before.total_samples += before;
    diff.after.total_samples += after;
  }
  std::string text() {
    for (store::DiffFunction& function : diff.functions) {
      const auto share = [](std::uint64_t part, std::uint64_t all) {
        return static_cast<double>(part) / static_cast<double>(all);
      };
      function.self.before = share(function.before.self_samples, diff.before.total_samples);
      function.self.after = share(function.after.self_samples, diff.after.total_samples);
    }
    diff.before.quality.whole = diff.before.total_samples;
    diff.after.quality.whole = diff.after.total_samples;
    return render_diff_summary(diff, facts);
  }
  store::ProfileDiff diff;
  SummaryFacts facts{{}, Group::kNone, 4};
};

TEST_CASE("a comparison names what changed beyond chance, with both shares") {
  Comparison comparison;
  comparison.add("slower", 50'000, 75'000, true);
  comparison.add("steady", 25'000, 15'000, true);
  comparison.add("even", 25'000, 10'000, true);
  comparison.add("other", 10, 11, false);
  const std::string text = comparison.text();
  CHECK(first_line(text) ==
        "slower takes more of the CPU time than before: 75 % instead of 50 % in the function itself, beyond chance.");
  CHECK(contains(text, "More than before: slower 50 % to 75 %.\n"));
  CHECK(contains(text, "Less than before: steady 25 % to 15 %, even 25 % to 10 %.\n"));
  CHECK(contains(text, "Shares add up to 100 %"));
  CHECK(contains(text, "Of the other 1 function none changed beyond chance.\n"));
  CHECK(contains(
      text,
      "Before, from 2026-01-31T14:00:00.000Z to 2026-01-31T14:15:00.000Z (15 min): 1.11 of the machine's 4 CPUs"));
  CHECK(contains(text, "The CPU use as a whole is about the same.\n"));
}

TEST_CASE("a comparison says what is new or gone, and whether the whole is busier") {
  Comparison comparison;
  comparison.add("newcomer", 0, 60'000, true);
  comparison.add("steady", 50'000, 50'000, false);
  CHECK(
      contains(first_line(comparison.text()), "newcomer takes more of the CPU time than before: 55 % instead of 0 %"));
  CHECK(contains(first_line(comparison.text()), "it is new"));
  CHECK(contains(comparison.text(), "The CPU use as a whole rose from 0.56 CPUs to 1.22 CPUs.\n"));
}

TEST_CASE("a comparison without a change beyond chance says so") {
  Comparison comparison;
  comparison.add("f", 102, 110, false);
  const std::string text = comparison.text();
  CHECK(contains(first_line(text), "Nothing changed beyond chance"));
  CHECK(contains(text, "The largest change is that of f 100 % to 100 %, which chance explains.\n"));
  CHECK(contains(text, "One side has only 102 samples: only large changes can be told from chance.\n"));
}

TEST_CASE("a comparison without samples on a side says which") {
  Comparison comparison;
  comparison.add("f", 0, 110, false);
  comparison.diff.before.warnings = {"The window is before flamed began to sample."};
  const std::string text = render_diff_summary(comparison.diff, comparison.facts);
  CHECK(first_line(text) == "There is nothing to compare: the side before has no samples.");
  CHECK(contains(text, "Note on the side before: The window is before flamed began to sample.\n"));
}

}  // namespace
}  // namespace flamed::api
