// SPDX-License-Identifier: Apache-2.0
#include "store/query/stack_profile.h"

#include <map>
#include <random>

#include "store/query/timed_samples.h"
#include "test/catch.h"
#include "test/unit/store/store_fixture.h"

namespace flamed::store::test {
namespace {

/// "pid/tid comm: outermost;...;innermost [reason]", counted.
using Counted = std::map<std::string, std::uint64_t>;

std::string text_of(const StackProfile& profile, std::uint32_t thread, std::uint32_t stack,
                    std::optional<Truncation> truncation) {
  std::string text;
  for (std::uint32_t node = stack; node != 0; node = profile.nodes[node].caller) {
    const InlineChain& chain = *profile.frames[profile.nodes[node].frame].chain;
    for (auto function = chain.rbegin(); function != chain.rend(); ++function) {
      if (!text.empty()) text.insert(0, ";");
      text.insert(0, function->name);
    }
  }
  const StackThread& label = profile.threads[thread];
  text = std::to_string(profile.processes[label.process].id.pid) + "/" + std::to_string(label.tid) + " " + label.comm +
         ": " + text;
  if (truncation) text += " [" + std::string(name_of(*truncation)) + "]";
  return text;
}

Counted counted(const StackProfile& profile) {
  Counted counts;
  for (const StackCount& count : profile.counts) {
    counts[text_of(profile, count.thread, count.stack, count.truncation)] += count.samples;
  }
  return counts;
}

Counted counted(const TimedSamples& timed) {
  Counted counts;
  for (const TimedSample& sample : timed.samples) {
    ++counts[text_of(timed.stacks, sample.thread, sample.stack, sample.truncation)];
  }
  return counts;
}

StackProfile stacks_of(const TestStore& t, const Selection& selection, const ProfileOptions& options = {}) {
  TestNamer namer;
  QueryBudget budget;
  return build_stacks(t.store.snapshot(), selection, options, namer, budget).value();
}

TimedSamples timed_of(const TestStore& t, const Selection& selection, const ProfileOptions& options = {}) {
  TestNamer namer;
  QueryBudget budget;
  return timed_samples(t.store.snapshot(), selection, options, namer, budget).value();
}

}  // namespace

TEST_CASE("stacks are counted by thread, with the frames' addresses and their inline chains") {
  TestStore t;
  const std::vector<Frame> frames{code(0x10), Frame{ModuleId{17}, 0x25}};
  t.store.add({t.clock.monotonic(), kProcess, 100, "main", frames, {}});
  t.store.add({t.clock.monotonic(), kProcess, 100, "main", frames, {}});
  t.store.add({t.clock.monotonic(), kProcess, 101, "helper", std::span(frames).first(1), Truncation::kDepthLimit});
  t.pass_minutes(2);
  t.store.add({t.clock.monotonic(), kProcess, 100, "main", frames, {}});
  t.store.add({t.clock.monotonic(), {7, 1}, 7, "empty", {}, {}});
  const StackProfile profile = stacks_of(t, {t.everything()});
  CHECK(counted(profile) ==
        Counted{{"100/100 main: f1;outer;f2", 3}, {"100/101 helper: f1 [depth_limit]", 1}, {"7/7 empty: ", 1}});
  CHECK(profile.counts.size() == 3);
  CHECK(profile.total_samples == 5);
  CHECK(profile.total_ns == 5 * kPeriodNs);
  CHECK(profile.quality.whole == 4);
  CHECK(profile.frames.size() == 2);
  CHECK(std::any_of(profile.frames.begin(), profile.frames.end(), [](const StackFrame& frame) {
    return frame.address == Frame{ModuleId{17}, 0x25};
  }));
  REQUIRE(profile.processes.size() == 2);
  CHECK(profile.processes[0].id.pid == 7);
}

TEST_CASE("options for frames apply to stacks too") {
  TestStore t;
  t.add({code(0x10), Frame{ModuleId{17}, 0x20}, Frame{kKernelModule, 0x30}});
  t.add({code(0x10), code(0x40)});
  ProfileOptions options;
  const auto is = [](const char* wanted) { return [=](std::string_view name) { return name == wanted; }; };
  options.inlines = false;
  CHECK(counted(stacks_of(t, {t.everything()}, options)) ==
        Counted{{"100/100 worker: f1;outer;f3", 1}, {"100/100 worker: f1;f4", 1}});
  options.inlines = true;
  options.hide = is("outer");
  CHECK(counted(stacks_of(t, {t.everything()}, options)) ==
        Counted{{"100/100 worker: f1;f2;f3", 1}, {"100/100 worker: f1;f4", 1}});
  options.hide = [](std::string_view name) { return name != "f1"; };
  const StackProfile hidden = stacks_of(t, {t.everything()}, options);
  CHECK(counted(hidden) == Counted{{"100/100 worker: f1", 2}});
  CHECK(hidden.counts.size() == 1);
  options.hide = nullptr;
  options.focus = is("f2");
  CHECK(counted(stacks_of(t, {t.everything()}, options)).size() == 1);
  CHECK(timed_of(t, {t.everything()}, options).samples.size() == 1);
  options.focus = nullptr;
  options.ignore = is("f2");
  CHECK(counted(stacks_of(t, {t.everything()}, options)) == Counted{{"100/100 worker: f1;f4", 1}});
  Selection user{t.everything()};
  user.side = Side::kUser;
  CHECK(counted(stacks_of(t, user)) == Counted{{"100/100 worker: f1;outer;f2", 1}, {"100/100 worker: f1;f4", 1}});
}

TEST_CASE("single samples come in the order of time with their CPU, as many as are counted") {
  TestStore t;
  std::mt19937_64 random(5);
  const MonotonicTime noon = t.clock.monotonic();
  for (int second = 0; second < 130; ++second) {
    for (int i = 0; i < 10; ++i) {
      std::int64_t ns = t.clock.monotonic().ns + static_cast<std::int64_t>(random() % kNsPerSecond);
      if (i == 0) ns = std::max(noon.ns, ns - 20 * kNsPerSecond);
      const std::vector<Frame> frames{code(16 * (random() % 4)), code(16 * (random() % 4))};
      // The CPU is derived from the time, so that the test sees whether they stay together.
      t.store.add({{ns}, {1 + second % 3, 1}, 1, "w", frames, {}, static_cast<std::uint16_t>(ns % 64)});
    }
    t.pass(1);
  }
  const Selection selection{{{kNoon.ns + 30 * kNsPerSecond}, {kNoon.ns + 125 * kNsPerSecond}}};
  const TimedSamples timed = timed_of(t, selection);
  CHECK(timed.stacks.exact());
  CHECK(timed.samples.size() == timed.stacks.total_samples);
  CHECK(timed.stacks.quality.whole == timed.samples.size());
  CHECK(std::is_sorted(timed.samples.begin(), timed.samples.end(),
                       [](const TimedSample& a, const TimedSample& b) { return a.time < b.time; }));
  for (const TimedSample& sample : timed.samples) {
    CHECK(sample.time >= selection.window.from);
    CHECK(sample.time < selection.window.to);
    CHECK(sample.cpu == (sample.time.ns - kNoon.ns + noon.ns) % 64);
  }
  CHECK(counted(timed) == counted(timed.stacks));
  CHECK(counted(timed) == counted(stacks_of(t, selection)));
}

TEST_CASE("a window without single samples has none, and the answer says from when on there are some") {
  TestStore t({60 * kNsPerMinute, 8U << 20, 45'000});
  for (int second = 0; second < 600; ++second) {
    for (int i = 0; i < 20; ++i) t.add({code(16)});
    t.pass(1);
  }
  const WallTime exact_from = t.store.stats().exact_from.value();
  REQUIRE(exact_from > kNoon);
  const TimedSamples timed = timed_of(t, {t.everything()});
  CHECK(timed.stacks.used.from == exact_from);
  CHECK(mentions(timed.stacks.warnings, "kept one by one only from"));
  TestNamer namer;
  QueryBudget budget;
  const auto old = timed_samples(t.store.snapshot(), {{kNoon, exact_from}}, {}, namer, budget);
  REQUIRE_FALSE(old.ok());
  CHECK(old.error().code() == ENODATA);
  CHECK(timed_of(t, {{{0}, {1}}}).samples.empty());
}

TEST_CASE("stacks and samples beyond the budget are an error and take no memory") {
  TestStore t;
  for (std::uint64_t i = 0; i < 5000; ++i) t.add({code(16 * i)});
  TestNamer namer;
  QueryLimits limits;
  limits.nodes = 1000;
  QueryBudget budget(limits, nullptr);
  CHECK(build_stacks(t.store.snapshot(), {t.everything()}, {}, namer, budget).error().code() == E2BIG);
  QueryBudget other(limits, nullptr);
  CHECK(timed_samples(t.store.snapshot(), {t.everything()}, {}, namer, other).error().code() == E2BIG);
}

}  // namespace flamed::store::test
