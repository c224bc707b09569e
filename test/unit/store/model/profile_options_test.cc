// SPDX-License-Identifier: Apache-2.0
#include "store/model/profile_options.h"

#include <algorithm>

#include "test/catch.h"
#include "test/unit/store/store_fixture.h"

namespace flamed::store::test {
namespace {

Frame kernel(std::uint64_t offset) { return {kKernelModule, offset}; }
constexpr ModuleId kJitModule{18};

/// As TestNamer, but with all details of functions: module 17's are inlined into "outer", 18 is code without a file,
/// and kernel frames are the kernel's. A function is 16 bytes long and has a line for each byte.
class RichNamer final : public FrameNamer {
 public:
  std::vector<std::shared_ptr<const InlineChain>> name(std::span<const Frame> frames) override {
    std::vector<std::shared_ptr<const InlineChain>> chains;
    for (const Frame& frame : frames) {
      InlineChain chain;
      NamedFrame named{"f" + std::to_string(frame.offset / 16), "lib", FrameKind::kNative, ""};
      named.full_name = named.name + "(int)";
      named.file = "/src/f.c";
      named.line = static_cast<std::uint32_t>(frame.offset % 16);
      if (frame.module == kKernelModule)
        named = {"k" + std::to_string(frame.offset), "[kernel]", FrameKind::kKernel, ""};
      if (frame.module == kJitModule) named = {"j" + std::to_string(frame.offset), "", FrameKind::kJit, ""};
      if (frame.module == ModuleId{17}) {
        chain.push_back({"outer", "lib", FrameKind::kNative, ""});
        named.inlined = true;
      }
      chain.push_back(named);
      chains.push_back(std::make_shared<const InlineChain>(std::move(chain)));
    }
    return chains;
  }
};

NameMatcher is(const std::string& wanted) {
  return [wanted](std::string_view name) { return name == wanted; };
}

struct Asked {
  explicit Asked(const TestStore& store) : t(store), selection{store.everything()} {
    selection.processes = {{kProcess.pid, {}}};
  }
  [[nodiscard]] Profile profile() const {
    RichNamer namer;
    QueryBudget budget;
    return build_profile(t.store.snapshot(), selection, options, namer, budget).value();
  }
  /// Without the root, which is the process.
  [[nodiscard]] std::vector<std::string> lines() const {
    std::vector<std::string> lines = folded(profile());
    for (std::string& line : lines) line.erase(0, line.find(';') + 1);
    return lines;
  }
  const TestStore& t;
  Selection selection;
  ProfileOptions options;
};

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("a function is one frame whatever its lines, and its line is shown if there is only one") {
  TestStore t;
  t.add({code(0x11), code(0x25)});
  t.add({code(0x11), code(0x26)});
  Asked asked(t);
  CHECK(asked.lines() == Lines{"f1;f2 2"});
  Profile profile = asked.profile();
  const auto frame = [&](const char* name) {
    return *std::find_if(profile.frames.begin(), profile.frames.end(),
                         [&](const NamedFrame& candidate) { return candidate.name == name; });
  };
  CHECK(frame("f1").line == 1);
  CHECK(frame("f1").full_name == "f1(int)");
  CHECK(frame("f2").line == 0);
  CHECK(frame("f2").file == "/src/f.c");

  asked.options.lines = true;
  CHECK(asked.lines() == Lines{"f1 f.c:1;f2 f.c:5 1", "f1 f.c:1;f2 f.c:6 1"});
  asked.options.full_names = true;
  asked.options.annotate = true;
  CHECK(asked.lines() == Lines{"f1(int) f.c:1;f2(int) f.c:5 1", "f1(int) f.c:1;f2(int) f.c:6 1"});
}

TEST_CASE("annotations mark frames as kernel, inlined or JIT code") {
  TestStore t;
  t.add({Frame{ModuleId{17}, 0x10}, Frame{kJitModule, 3}, kernel(9)});
  Asked asked(t);
  asked.options.annotate = true;
  CHECK(asked.lines() == Lines{"outer;f1_[i];j3_[j];k9_[k] 1"});
  asked.options.inlines = false;
  CHECK(asked.lines() == Lines{"outer;j3_[j];k9_[k] 1"});
}

TEST_CASE("an inlined and a called occurrence of a function are two frames") {
  TestStore t;
  t.add({Frame{ModuleId{17}, 0x10}});
  t.add({code(0x10)});
  t.add({Frame{ModuleId{17}, 0x10}, code(0x10)});
  Asked asked(t);
  CHECK(asked.profile().frames.size() == 4);
}

TEST_CASE("a border is between user and kernel frames if a stack has both") {
  TestStore t;
  t.add({code(0x10), kernel(1), kernel(2)});
  t.add({code(0x10)});
  t.add({kernel(1)});
  Asked asked(t);
  asked.options.delimited = true;
  CHECK(asked.lines() == Lines{"f1 1", "f1;--;k1;k2 1", "k1 1"});
  asked.selection.side = Side::kKernel;
  CHECK(asked.lines() == Lines{"k1 1", "k1;k2 1"});
}

TEST_CASE("a side leaves out the other side's frames, and samples with only those") {
  TestStore t;
  t.add({code(0x10), kernel(1)});
  t.add({code(0x10)});
  t.add({kernel(2)});
  t.add({kernel(3)}, kProcess, Truncation::kNoUserRegisters);
  t.add({code(0x20), kernel(4)}, kProcess, Truncation::kKernelDepthLimit);
  Asked asked(t);
  asked.selection.side = Side::kUser;
  CHECK(asked.lines() ==
        Lines{"[truncated: " + std::string(describe(Truncation::kNoUserRegisters)) + "] 1", "f1 2", "f2 1"});
  CHECK(asked.profile().quality.stored() == 4);
  asked.selection.side = Side::kKernel;
  CHECK(asked.lines() == Lines{"[truncated: " + std::string(describe(Truncation::kKernelDepthLimit)) + "];k4 1", "k1 1",
                               "k2 1", "k3 1"});
}

TEST_CASE("of two marks in one stack, which only a file from elsewhere may have, the outer one counts") {
  TestStore t;
  const Frame inner{kTruncatedModule, static_cast<std::uint64_t>(Truncation::kKernelDepthLimit)};
  t.add({code(0x10), inner}, kProcess, Truncation::kGuessed);
  Asked asked(t);
  const Quality quality = asked.profile().quality;
  CHECK(quality.stored() == 1);
  CHECK(quality.truncated[static_cast<std::size_t>(Truncation::kGuessed)] == 1);
}

TEST_CASE("focus, ignore and hide work as in pprof") {
  TestStore t;
  t.add({code(0x10), code(0x20), code(0x30)});
  t.add({code(0x10), code(0x30)});
  t.add({code(0x10), code(0x20), code(0x40)});
  Asked asked(t);
  asked.options.focus = is("f2");
  CHECK(asked.lines() == Lines{"f1;f2;f3 1", "f1;f2;f4 1"});
  asked.options.ignore = is("f4");
  CHECK(asked.lines() == Lines{"f1;f2;f3 1"});
  asked.options.focus = nullptr;
  CHECK(asked.lines() == Lines{"f1;f2;f3 1", "f1;f3 1"});
  asked.options.ignore = nullptr;
  asked.options.hide = is("f2");
  CHECK(asked.lines() == Lines{"f1;f3 2", "f1;f4 1"});
  asked.options.focus = is("f2");  // hidden frames can still match
  CHECK(asked.lines() == Lines{"f1;f3 1", "f1;f4 1"});
  asked.options.hide = [](std::string_view) { return true; };
  Profile profile = asked.profile();
  CHECK(profile.nodes.size() == 1);
  CHECK(profile.nodes[0].self_samples == 2);
  CHECK(profile.quality.whole == 3);
  asked.options.focus = is("nothing");
  CHECK(mentions(asked.profile().warnings, "No stack of the selection is left"));
}

TEST_CASE("patterns match names without lines and annotations, and no group nodes") {
  TestStore t;
  t.store.update_process({kProcess, "f1", "", 0, {}, {}});
  t.add({code(0x10), kernel(5)});
  Asked asked(t);
  asked.options.lines = true;
  asked.options.annotate = true;
  asked.options.group = Group::kComm;
  std::vector<std::string> seen;
  asked.options.focus = [&](std::string_view name) {
    seen.emplace_back(name);
    return true;
  };
  static_cast<void>(asked.profile());
  std::sort(seen.begin(), seen.end());
  CHECK(seen == Lines{"f1", "k5"});
}

TEST_CASE("the first level is the requested grouping") {
  TestStore t;
  ProcessInfo first{{1, 1}, "nginx", "/usr/sbin/nginx", 0, {}, {}};
  first.cgroup = "/system.slice/nginx.service";
  first.unit = "nginx.service";
  first.container = "c0ffee";
  t.store.update_process(first);
  const std::vector<Frame> frames{code(0x10)};
  t.store.add({t.clock.monotonic(), {1, 1}, 1, "nginx", frames, {}});
  t.store.add({t.clock.monotonic(), {1, 1}, 2, "worker", frames, {}});
  t.store.add({t.clock.monotonic(), {9, 1}, 9, "worker", frames, {}});
  Asked asked(t);
  asked.selection.processes.clear();
  const auto lines_by = [&](Group group) {
    asked.options.group = group;
    return asked.lines();
  };
  CHECK(lines_by(Group::kNone) == Lines{"f1 3"});
  CHECK(lines_by(Group::kProcess) == Lines{"nginx (1);f1 2", "worker (9);f1 1"});
  CHECK(lines_by(Group::kThread) == Lines{"nginx (1/1);f1 1", "worker (1/2);f1 1", "worker (9/9);f1 1"});
  CHECK(lines_by(Group::kComm) == Lines{"nginx;f1 1", "worker;f1 2"});
  CHECK(lines_by(Group::kExecutable) == Lines{"/usr/sbin/nginx;f1 2", "[kernel threads and unknown];f1 1"});
  CHECK(lines_by(Group::kUnit) == Lines{"[no unit];f1 1", "nginx.service;f1 2"});
  CHECK(lines_by(Group::kContainer) == Lines{"[no container];f1 1", "c0ffee;f1 2"});
}

TEST_CASE("pruned nodes become one below their caller: totals stay true, and they can be fetched") {
  TestStore t;
  for (int i = 0; i < 90; ++i) t.add({code(0x10), code(0x20)});
  for (std::uint64_t i = 0; i < 10; ++i)
    t.add({code(0x10), code(0x30), code(0x40 + 16 * (i / 2)), code(0x400 + 16 * (i % 2))});
  Asked asked(t);
  const Profile whole = asked.profile();
  asked.options.min_percent = 11;
  CHECK(asked.lines() == Lines{"f1;(pruned: 8 functions) 10", "f1;f2 90"});
  CHECK(asked.profile().nodes[0].total_samples == 100);
  asked.options.min_percent = 0;
  asked.options.max_nodes = 4;
  CHECK(asked.lines() == Lines{"f1;f2 90", "f1;f3;(pruned: 7 functions) 10"});
  const Profile pruned = asked.profile();
  CHECK(pruned.nodes.size() == 5);
  CHECK(pruned.cpu_ns(pruned.nodes[0].total_samples) == whole.cpu_ns(whole.nodes[0].total_samples));
  CHECK(std::any_of(pruned.frames.begin(), pruned.frames.end(), [](const NamedFrame& frame) {
    return frame.kind == FrameKind::kMarker && frame.name == "(pruned: 7 functions)";
  }));

  asked.options.max_nodes = 0;
  asked.options.root = {"f1", "f3"};
  const Profile below = asked.profile();
  CHECK(below.frames[below.nodes[0].frame].name == "f3");
  CHECK(below.nodes[0].total_samples == 10);
  CHECK(below.nodes.size() == 1 + 5 + 10);
  asked.options.root = {"f1", "nowhere"};
  CHECK(asked.profile().nodes[0].total_samples == 0);
  CHECK(mentions(asked.profile().warnings, "Nothing in the window is below"));
}

TEST_CASE("a query that is too expensive fails with advice on what to narrow") {
  TestStore t;
  for (std::uint64_t i = 0; i < 5000; ++i) t.add({code(16 * i)});
  RichNamer namer;
  QueryLimits limits;
  limits.visits = 100;
  QueryBudget few_visits(limits, nullptr);
  const auto dear = build_profile(t.store.snapshot(), {t.everything()}, {}, namer, few_visits);
  REQUIRE_FALSE(dear.ok());
  CHECK(dear.error().code() == E2BIG);
  CHECK(dear.error().message().find("shorter window") != std::string::npos);

  limits = {};
  limits.deadline = t.clock.monotonic();
  QueryBudget late(limits, &t.clock);
  const auto too_late = build_profile(t.store.snapshot(), {t.everything()}, {}, namer, late);
  REQUIRE_FALSE(too_late.ok());
  CHECK(too_late.error().code() == ETIMEDOUT);

  std::stop_source stop;
  stop.request_stop();
  QueryBudget cancelled({}, nullptr, stop.get_token());
  const auto unwanted = build_profile(t.store.snapshot(), {t.everything()}, {}, namer, cancelled);
  REQUIRE_FALSE(unwanted.ok());
  CHECK(unwanted.error().code() == ECANCELED);

  limits = {};
  limits.nodes = 100;
  QueryBudget small(limits, nullptr);
  const auto cut = build_profile(t.store.snapshot(), {t.everything()}, {}, namer, small);
  REQUIRE(cut.ok());
  CHECK(cut->nodes.size() == 100);
  CHECK(cut->nodes[0].total_samples == 5000);
  CHECK(mentions(cut->warnings, "would have been too large"));
}

}  // namespace flamed::store::test
