// SPDX-License-Identifier: Apache-2.0
#include "store/query/diff.h"

#include <array>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/index/frame_table.h"
#include "store/query/profile_tree.h"
#include "store/query/significance.h"
#include "test/catch.h"
#include "test/unit/store/store_fixture.h"

namespace flamed::store::test {
namespace {

/// A synthetic program: function i is called by function i / 3, and its share of the time falls with i.
class Program {
 public:
  explicit Program(std::size_t functions) {
    for (std::size_t i = 0; i < functions; ++i) work_.push_back(1.0 / static_cast<double>(i + 3));
  }
  /// Makes a function take `factor` as long.
  void slow_down(std::size_t function, double factor) { work_[function] *= factor; }

  /// `seconds` of the program at 99 Hz on one busy CPU. With `burst` above one, samples come in runs of the same
  /// function, of that length on average.
  [[nodiscard]] Profile run(double seconds, std::mt19937_64& random, double burst = 1) const {
    FunctionTable functions{ProfileOptions{}};
    FrameTable frames(functions);
    ProfileTree tree(frames, frames.intern({"all", "", FrameKind::kRoot, ""}), 1'000'000);
    std::discrete_distribution<std::size_t> pick(work_.begin(), work_.end());
    std::uniform_real_distribution<double> unit(0, 1);
    const auto samples = static_cast<std::size_t>(seconds * 99);
    std::vector<std::size_t> path;
    std::size_t function = pick(random);
    for (std::size_t i = 0; i < samples; ++i) {
      if (unit(random) < 1 / burst) function = pick(random);
      path.clear();
      for (std::size_t at = function + 1; at != 0; at /= 3) path.push_back(at - 1);
      std::uint32_t node = 0;
      for (auto at = path.rbegin(); at != path.rend(); ++at) {
        node = tree.child(node, frames.intern({"f" + std::to_string(*at), "lib", FrameKind::kNative, ""}));
      }
      tree.add_self(node, 1);
    }
    Profile profile;
    profile.period_ns = kPeriodNs;
    profile.used = {{0}, {static_cast<std::int64_t>(static_cast<double>(samples) * kPeriodNs)}};
    std::move(tree).finish(profile);
    return profile;
  }

 private:
  std::vector<double> work_;
};

/// Compares two profiles that were built separately.
ProfileDiff compare(const Profile& before, const Profile& after, const DiffOptions& options) {
  FunctionTable functions{ProfileOptions{}};
  FrameTable frames(functions);
  ProfileTree tree(frames, frames.intern(before.frames[before.nodes[0].frame]), 1'000'000, 2);
  std::array<DiffSide, 2> described;
  for (std::size_t side = 0; side < 2; ++side) {
    const Profile& profile = side == 0 ? before : after;
    static_cast<AnswerFacts&>(described[side]) = static_cast<const AnswerFacts&>(profile);
    std::vector<std::uint32_t> place(profile.nodes.size(), 0);
    for (std::size_t i = 0; i < profile.nodes.size(); ++i) {
      const ProfileNode& node = profile.nodes[i];
      if (i != 0) place[i] = tree.child(place[node.parent], frames.intern(profile.frames[node.frame]));
      tree.add_self(place[i], node.self_samples, side);
    }
  }
  return diff(tree, std::move(described[0]), std::move(described[1]), options);
}

std::size_t marks(const ProfileDiff& diff) {
  std::size_t marks = 0;
  for (const DiffNode& node : diff.nodes) marks += node.self.significant ? 1 : 0;
  for (const DiffFunction& function : diff.functions) {
    marks += function.self.significant ? 1 : 0;
  }
  return marks;
}

/// Samples of the later side below each function, each stack once, by a walk from every node to the root.
std::map<std::string, std::uint64_t> totals_by_walking(const ProfileDiff& diff) {
  std::map<std::string, std::uint64_t> totals;
  for (std::uint32_t leaf = 0; leaf < diff.nodes.size(); ++leaf) {
    std::set<std::string> functions;
    for (std::uint32_t at = leaf;; at = diff.nodes[at].parent) {
      const NamedFrame& frame = diff.frames[diff.nodes[at].frame];
      if (frame.kind != FrameKind::kRoot && frame.kind != FrameKind::kMarker) functions.insert(frame.name);
      if (at == 0) break;
    }
    for (const std::string& function : functions) totals[function] += diff.nodes[leaf].after.self_samples;
  }
  return totals;
}

const std::string& name_of(const ProfileDiff& diff, const DiffFunction& function) {
  return diff.frames[function.frame].name;
}

}  // namespace

TEST_CASE("a diff is the union of both trees, with both sides' counts") {
  TestStore t;
  t.add({code(16), code(32)});
  t.add({code(16), code(48)});
  t.pass_minutes(2);
  t.add({code(16), code(48)});
  t.add({code(16)});
  t.add({code(64), code(32)});
  const WallTime border{kNoon.ns + kNsPerMinute};
  const ProcessSelector pid{100, {}};
  const Profile before = t.profile_of({kNoon, border}, pid);
  const Profile after = t.profile_of({border, t.everything().to}, pid);
  const ProfileDiff result = compare(before, after, {});
  std::map<std::string, std::array<std::uint64_t, 4>> nodes;
  for (const DiffNode& node : result.nodes) {
    std::string path = result.frames[node.frame].name;
    for (std::uint32_t at = node.parent; at != 0; at = result.nodes[at].parent) {
      path.insert(0, ";");
      path.insert(0, result.frames[result.nodes[at].frame].name);
    }
    nodes[path] = {node.before.self_samples, node.before.total_samples, node.after.self_samples,
                   node.after.total_samples};
  }
  CHECK(nodes == std::map<std::string, std::array<std::uint64_t, 4>>{{"worker (100)", {0, 2, 0, 3}},
                                                                     {"f1", {0, 2, 1, 2}},
                                                                     {"f1;f2", {1, 1, 0, 0}},
                                                                     {"f1;f3", {1, 1, 1, 1}},
                                                                     {"f4", {0, 0, 0, 1}},
                                                                     {"f4;f2", {0, 0, 1, 1}}});
  for (const DiffFunction& function : result.functions) {
    if (name_of(result, function) != "f2") continue;
    CHECK(function.before.self_samples == 1);
    CHECK(function.after.self_samples == 1);
    CHECK(result.after.cpu_ns(function.after.self_samples) == kPeriodNs);
  }
  CHECK(result.before.total_samples == 2);
  CHECK(result.after.total_samples == 3);
  CHECK(marks(result) == 0);
}

TEST_CASE("a recursive function's total counts a stack once") {
  TestStore t;
  t.add({code(16), code(32), code(16), code(16)});
  const Profile profile = t.profile(ProcessSelector{100, {}});
  for (const DiffFunction& function : compare(profile, profile, {}).functions) {
    CHECK(function.before.total_samples == 1);
    CHECK(function.after.total_samples == 1);
  }
}

TEST_CASE("functions that call themselves count once, whatever is hidden and wherever the answer begins") {
  std::mt19937_64 random(3);
  TestStore t;
  for (int minute = 0; minute < 2; ++minute) {
    for (int i = 0; i < 300; ++i) {
      std::vector<Frame> frames;
      for (std::uint64_t depth = 1 + random() % 12; depth > 0; --depth) frames.push_back(code(16 * (random() % 5)));
      if (random() % 3 == 0) frames.push_back(Frame{ModuleId{17}, 16 * (random() % 5)});
      t.add(std::move(frames));
    }
    t.pass_minutes(1);
  }
  const WallTime border{kNoon.ns + kNsPerMinute};
  for (int how = 0; how < 6; ++how) {
    Selection before{{kNoon, border}};
    Selection after{{border, t.everything().to}};
    ProfileOptions options;
    if (how == 1) options.hide = [](std::string_view name) { return name == "f2"; };
    if (how == 2) options.focus = [](std::string_view name) { return name == "f3"; };
    if (how == 3) options.root = {"worker (100)", "f1"};
    if (how == 4) options.root = {"worker (100)", "f1", "f1"};
    if (how == 5) before.side = Side::kUser;  // a separate tree for each side
    TestNamer namer;
    QueryBudget unlimited;
    const auto diff = build_diff(t.store.snapshot(), before, after, options, {}, namer, unlimited);
    REQUIRE(diff);
    std::map<std::string, std::uint64_t> totals;
    for (const DiffFunction& function : diff->functions)
      totals[name_of(*diff, function)] = function.after.total_samples;
    CHECK(totals == totals_by_walking(*diff));
    CHECK(totals.size() >= 4);
  }
}

TEST_CASE("CPUs in use count over the sampled time, also if a window begins before it") {
  TestStore t;
  t.clock.advance_ns(40 * kNsPerSecond);
  t.store.begin();
  // One CPU that is busy all the time.
  for (int i = 0; i < 2000; ++i) {
    t.add({code(16)});
    t.clock.advance_ns(kPeriodNs);
  }
  const WallTime border{kNoon.ns + 50 * kNsPerSecond};
  TestNamer namer;
  QueryBudget unlimited;
  const auto diff =
      build_diff(t.store.snapshot(), Selection{{{kNoon.ns - 60 * kNsPerSecond}, border}},
                 Selection{{border, {border.ns + 10 * kNsPerSecond}}}, {}, {Normalise::kTime}, namer, unlimited);
  REQUIRE(diff);
  CHECK(diff->nodes.front().before.total_samples == 1000);
  CHECK(diff->nodes.front().after.total_samples == 1000);
  CHECK(diff->nodes.front().change_total == Approx(0).margin(1e-6));
}

TEST_CASE("between two windows of the same load nothing is significant") {
  std::mt19937_64 random(11);
  const Program program(300);
  int with_marks = 0;
  for (int i = 0; i < 100; ++i) {
    const Profile before = program.run(i % 2 == 0 ? 60 : 600, random);
    const Profile after = program.run(60, random);
    DiffOptions options;
    options.normalise = i % 3 == 0 ? Normalise::kTime : Normalise::kSamples;
    with_marks += marks(compare(before, after, options)) != 0 ? 1 : 0;
  }
  CHECK(with_marks <= 3);  // at most one in a hundred
}

TEST_CASE("a load in bursts is not taken for a change") {
  std::mt19937_64 random(12);
  const Program program(300);
  int with_marks = 0;
  for (int i = 0; i < 100; ++i) {
    with_marks += marks(compare(program.run(120, random, 2), program.run(120, random, 2), {})) != 0 ? 1 : 0;
  }
  CHECK(with_marks <= 4);
}

TEST_CASE("a function that takes ten percent longer comes first") {
  std::mt19937_64 random(13);
  // A function with 7 % of the time, among 300 functions, in twenty minutes on one CPU.
  Program program(300);
  int first = 0;
  int significant = 0;
  for (int i = 0; i < 10; ++i) {
    const Profile before = program.run(1200, random);
    Program slower = program;
    slower.slow_down(0, 1.1);
    const Profile after = slower.run(1200, random);
    for (const Normalise normalise : {Normalise::kSamples, Normalise::kTime}) {
      DiffOptions options;
      options.normalise = normalise;
      const ProfileDiff result = compare(before, after, options);
      REQUIRE_FALSE(result.functions.empty());
      const DiffFunction& top = result.functions.front();
      first += name_of(result, top) == "f0" ? 1 : 0;
      significant += top.self.significant && top.self.z > 0 ? 1 : 0;
    }
  }
  CHECK(first == 20);
  CHECK(significant >= 18);
}

TEST_CASE("a machine that is busier as a whole is a change in time and none in samples") {
  std::mt19937_64 random(14);
  const Program program(100);
  Profile before = program.run(300, random);
  Profile after = program.run(600, random);
  after.used = before.used;  // the same time, twice the CPUs
  DiffOptions options;
  options.normalise = Normalise::kSamples;
  CHECK(marks(compare(before, after, options)) == 0);
  options.normalise = Normalise::kTime;
  const ProfileDiff by_time = compare(before, after, options);
  CHECK(marks(by_time) > 50);
  CHECK(by_time.nodes[0].change_total == Approx(1.0).margin(0.001));
}

TEST_CASE("pruning a diff keeps both sides' totals") {
  std::mt19937_64 random(15);
  const Program program(300);
  const Profile before = program.run(60, random);
  const Profile after = program.run(120, random);
  DiffOptions options;
  options.max_nodes = 20;
  const ProfileDiff result = compare(before, after, options);
  CHECK(result.nodes.size() <= 40);
  std::uint64_t self_before = 0;
  std::uint64_t self_after = 0;
  for (const DiffNode& node : result.nodes) {
    self_before += node.before.self_samples;
    self_after += node.after.self_samples;
    CHECK(node.parent <= static_cast<std::uint32_t>(&node - result.nodes.data()));
  }
  CHECK(self_before == before.nodes[0].total_samples);
  CHECK(self_after == after.nodes[0].total_samples);
  CHECK(result.functions.size() == compare(before, after, {}).functions.size());
}

TEST_CASE("an empty side is reported, and nothing is significant") {
  std::mt19937_64 random(16);
  const Profile some = Program(10).run(60, random);
  const Profile none = Program(10).run(0, random);
  for (const Normalise normalise : {Normalise::kSamples, Normalise::kTime}) {
    DiffOptions options;
    options.normalise = normalise;
    const ProfileDiff result = compare(some, none, options);
    CHECK(mentions(result.warnings, "One side has no samples"));
    CHECK(marks(result) == 0);
  }
}

TEST_CASE("the z of a change is that of a normal distribution where there are many samples") {
  // The textbook's test: p = 0.11 of 20,000; the difference of 0.02 has a standard error of 0.004425.
  CHECK(z_of_shares(1000, 10'000, 1200, 10'000) == Approx(0.02 / 0.0044249).epsilon(0.02));
  CHECK(z_of_shares(1200, 10'000, 1000, 10'000) == Approx(-0.02 / 0.0044249).epsilon(0.02));
  CHECK(z_of_rates(1000, 1, 1100, 1) == Approx(100 / std::sqrt(2100.0)).epsilon(0.02));
  CHECK(z_of_rates(1000, 1, 2000, 2) == Approx(0).margin(0.01));
  CHECK(z_of_shares(5, 5, 7, 7) == 0);
  CHECK(z_of_shares(0, 0, 7, 7) == 0);
  CHECK(least_significant_z(0.05, 1) == Approx(1.95996).epsilon(1e-4));
  CHECK(least_significant_z(0.01, 1000) == Approx(4.4172).epsilon(1e-3));
}

TEST_CASE("a few samples are not significant, also between windows of very unequal length") {
  CHECK(std::abs(z_of_shares(2, 100, 0, 10'000)) < 3.8);
  CHECK(std::abs(z_of_shares(0, 10'000, 3, 10'000)) < 2);
}

}  // namespace flamed::store::test
