// SPDX-License-Identifier: Apache-2.0
#include "store/ring/user_shares.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "store/query/timed_samples.h"
#include "test/catch.h"
#include "test/unit/store/store_fixture.h"

namespace flamed::store::test {
namespace {

constexpr std::uint32_t kFlooder = 1001;
constexpr std::uint32_t kModest = 1002;
constexpr ProcessId kFlooding{100, 1};
constexpr ProcessId kQuiet{200, 1};
constexpr int kFloodPerMinute = 400;
constexpr int kQuietPerMinute = 60;

/// A store in which one user keeps adding new stacks.
struct Flooded : TestStore {
  explicit Flooded(Limits limits = {24 * 60 * kNsPerMinute, 2U << 20}) : TestStore(limits) {}

  void add_as(std::uint32_t user, ProcessId process, const std::vector<Frame>& frames,
              std::optional<Truncation> truncation = {}) {
    store.add(
        {clock.monotonic(), process, process.pid, user == kModest ? "quiet" : "flood", frames, truncation, 0, user});
  }
  void flood(std::uint32_t user = kFlooder, ProcessId process = kFlooding) {
    std::vector<Frame> frames;
    for (int i = 0; i < 40; ++i) frames.push_back(code(16 * ++unique));
    // As deep as a record allows.
    add_as(user, process, frames, unique % 3 == 0 ? std::optional(Truncation::kDepthLimit) : std::nullopt);
  }
  void be_modest(std::uint64_t i) { add_as(kModest, kQuiet, {{ModuleId{17}, 16}, {ModuleId{17}, (2 + i % 20) * 16}}); }
  void pass_minute_of_both() {
    for (int i = 0; i < kFloodPerMinute; ++i) {
      flood();
      if (i * kQuietPerMinute % kFloodPerMinute < kQuietPerMinute) be_modest(static_cast<std::uint64_t>(i));
      clock.advance_ns(kNsPerMinute / kFloodPerMinute);
      if (i % 20 == 0) store.advance(clock.monotonic());
      REQUIRE(store.stats().used_bytes <= store.stats().budget_bytes);
    }
    store.advance(clock.monotonic());
  }

  std::uint64_t unique = 0;
};

std::uint64_t total(const Profile& profile) { return profile.nodes.front().total_samples; }

std::map<std::string, std::uint64_t> counts_of(const Profile& profile) {
  std::map<std::string, std::uint64_t> counts;
  for (const std::string& line : folded(profile)) {
    const std::size_t blank = line.rfind(' ');
    counts[line.substr(0, blank)] += std::stoull(line.substr(blank + 1));
  }
  return counts;
}

Profile profile_by(const Snapshot& snapshot, WallWindow window, std::optional<ProcessSelector> process = {}) {
  TestNamer namer;
  Selection selection{window};
  if (process) selection.processes.push_back(*process);
  return build_profile(snapshot, selection, namer);
}

}  // namespace

TEST_CASE("a user who keeps adding new stacks loses their own oldest ones, and no one else loses any") {
  Flooded t;
  constexpr int kMinutes = 40;
  for (int minute = 0; minute < kMinutes; ++minute) t.pass_minute_of_both();
  const StoreStats stats = t.store.stats();
  CHECK(stats.slots_dropped_for_budget == 0);
  CHECK(stats.stacks_given_up > 0);
  CHECK(stats.samples_dropped_for_share == 0);
  CHECK(stats.quality.lost_total() == 0);
  CHECK(stats.quality.taken() == kMinutes * (kFloodPerMinute + kQuietPerMinute));
  CHECK(stats.above_share == std::vector<std::uint32_t>{kFlooder});

  const Profile modest = t.profile(ProcessSelector{200, {}});
  CHECK(total(modest) == kMinutes * kQuietPerMinute);
  CHECK(modest.quality.whole == kMinutes * kQuietPerMinute);
  CHECK(modest.quality.truncated_total() == 0);

  // The user's time is complete, the newest part with its stacks.
  const Profile flooder = t.profile(ProcessSelector{100, {}});
  CHECK(total(flooder) == kMinutes * kFloodPerMinute);
  CHECK(count_of(flooder.quality, Truncation::kUserShare) == stats.stacks_given_up);
  CHECK(flooder.quality.stored() == kMinutes * kFloodPerMinute);
  const auto lines = folded(flooder);
  CHECK(std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
    return line.find("flood (100);[truncated: its user had more than a share of the memory budget") == 0;
  }));
  const WallTime now = t.clock.wall();
  CHECK(t.profile_of({{now.ns - kNsPerMinute / 10}, now}, ProcessSelector{100, {}}).quality.whole > 0);
}

TEST_CASE("a lone user may fill the whole store, and loses whole minutes") {
  const std::uint32_t user = GENERATE(kFlooder, kNoUser);
  Flooded t;
  for (int minute = 0; minute < 40; ++minute) {
    for (int i = 0; i < kFloodPerMinute; ++i) t.flood(user);
    t.pass_minutes(1);
  }
  const StoreStats stats = t.store.stats();
  CHECK(stats.slots_dropped_for_budget > 0);
  CHECK(stats.stacks_given_up == 0);
  CHECK(stats.above_share.empty());
  CHECK(stats.used_bytes > stats.budget_bytes * 2 / 5);
  CHECK(count_of(t.profile().quality, Truncation::kUserShare) == 0);
}

TEST_CASE("a user who fills the store within a minute leaves room for others' new stacks in it") {
  Flooded t;
  constexpr std::uint64_t kFlood = 20'000;
  std::uint64_t modest = 0;
  for (std::uint64_t i = 0; i < kFlood; ++i) {
    t.flood();
    if (i % 50 == 0) t.add_as(kModest, kQuiet, {{ModuleId{17}, 16}, {ModuleId{17}, ++modest * 16}});
  }
  const StoreStats stats = t.store.stats();
  CHECK(stats.used_bytes <= stats.budget_bytes);
  CHECK(stats.stacks_cut_for_share > kFlood / 2);
  CHECK(stats.quality.lost_total() == 0);
  const Profile quiet = t.profile(ProcessSelector{200, {}});
  CHECK(quiet.quality.whole == modest);
  CHECK(quiet.quality.truncated_total() == 0);
  CHECK(total(t.profile(ProcessSelector{100, {}})) == kFlood);
}

TEST_CASE(
    "a user who needs more than another left of the minute does not wait for its end, and loses no older minutes") {
  Flooded t;
  for (std::uint64_t i = 0; i < kQuietPerMinute; ++i) t.be_modest(i);
  t.pass_minutes(2);
  for (int i = 0; i < 4000; ++i) t.flood();
  REQUIRE(t.store.stats().stacks_cut_for_share > 0);
  REQUIRE(t.store.stats().stacks_given_up == 0);
  t.pass(6);
  const std::size_t slots = t.store.stats().slots;
  std::uint64_t modest = 0;
  for (int second = 0; second < 20; ++second) {
    for (int i = 0; i < 200; ++i) {
      t.flood();
      t.add_as(kModest, kQuiet, {{ModuleId{17}, 16}, {ModuleId{17}, ++modest * 16}, {ModuleId{18}, modest * 16}});
    }
    t.pass(1);
  }
  const StoreStats stats = t.store.stats();
  CHECK(stats.stacks_given_up > 0);
  CHECK(stats.slots_dropped_for_budget == 0);
  CHECK(stats.slots > slots);
  CHECK(stats.slots <= slots + 5);
  CHECK(stats.used_bytes <= stats.budget_bytes);
  const Profile quiet = t.profile(ProcessSelector{200, {}});
  // All but those that came when the last piece had only just begun.
  CHECK(quiet.quality.whole > (modest + kQuietPerMinute) * 9 / 10);
  CHECK(total(quiet) == modest + kQuietPerMinute);
  CHECK(total(t.profile(ProcessSelector{100, {}})) == 4000 + 20 * 200);
}

TEST_CASE("several users who keep adding new stacks share what the modest ones leave") {
  Flooded t;
  for (int minute = 0; minute < 60; ++minute) {
    for (std::uint64_t i = 0; i < 300; ++i) {
      t.flood(kFlooder + 10 + static_cast<std::uint32_t>(i % 3), {static_cast<std::int32_t>(300 + i % 3), 1});
      if (i % 10 == 0) t.be_modest(i);
    }
    t.pass_minutes(1);
  }
  CHECK(t.store.stats().slots_dropped_for_budget == 0);
  CHECK(t.profile(ProcessSelector{200, {}}).quality.whole == 60 * 30);
  std::vector<std::uint64_t> whole;
  for (const std::int32_t pid : {300, 301, 302}) {
    const Profile profile = t.profile(ProcessSelector{pid, {}});
    CHECK(total(profile) == 60 * 100);
    whole.push_back(profile.quality.whole + count_of(profile.quality, Truncation::kDepthLimit));
  }
  const auto [least, most] = std::minmax_element(whole.begin(), whole.end());
  CHECK(*least > 0);
  CHECK(*most < 3 * *least);
}

TEST_CASE("only a user who keeps starting processes also loses the rest of their minutes") {
  Flooded t;
  std::int32_t pid = 1000;
  for (int minute = 0; minute < 60; ++minute) {
    for (std::uint64_t i = 0; i < 300; ++i) {
      t.add_as(kFlooder, {++pid, 1}, {code(16), code(32)});
      if (i % 10 == 0) t.be_modest(i);
    }
    t.pass_minutes(1);
    REQUIRE(t.store.stats().used_bytes <= t.store.stats().budget_bytes);
  }
  const StoreStats stats = t.store.stats();
  CHECK(stats.samples_dropped_for_share > 0);
  CHECK(stats.slots_dropped_for_budget == 0);
  const Profile all = t.profile();
  CHECK(total(all) == 60 * 330 - stats.samples_dropped_for_share);
  CHECK(all.quality.stored() == total(all));
  CHECK(all.quality.lost_total() == 0);
  CHECK(t.profile(ProcessSelector{200, {}}).quality.whole == 60 * 30);
  CHECK(mentions(all.warnings, "and the samples themselves up to"));
}

TEST_CASE("after stacks were given up, a minute's single samples and its counts agree") {
  // Room for all single samples.
  Flooded t({24 * 60 * kNsPerMinute, 3U << 20, 3U << 19});
  constexpr int kMinutes = 12;
  for (int minute = 0; minute < kMinutes; ++minute) t.pass_minute_of_both();
  REQUIRE(t.store.stats().stacks_given_up > kFloodPerMinute);
  REQUIRE(keeps_single_samples(t.store.snapshot(), t.everything()));
  std::uint64_t given_up = 0;
  for (int minute = 0; minute < kMinutes; ++minute) {
    CAPTURE(minute);
    const WallTime from{kNoon.ns + minute * kNsPerMinute};
    const WallTime middle{from.ns + 23 * kNsPerSecond};
    const WallTime to{from.ns + kNsPerMinute};
    const Profile counted = t.profile_of({from, to});
    std::map<std::string, std::uint64_t> sums;
    for (const WallWindow& part : {WallWindow{from, middle}, WallWindow{middle, to}}) {
      const Profile exact = t.profile_of(part);
      CHECK(exact.exact());
      for (const auto& [stack, samples] : counts_of(exact)) sums[stack] += samples;
    }
    CHECK(sums == counts_of(counted));
    CHECK(total(counted) == kFloodPerMinute + kQuietPerMinute);
    CHECK(counted.quality.stored() == kFloodPerMinute + kQuietPerMinute);
    given_up += count_of(counted.quality, Truncation::kUserShare);

    TestNamer namer;
    QueryBudget unlimited;
    const auto one_by_one = timed_samples(t.store.snapshot(), Selection{{from, to}}, {}, namer, unlimited);
    REQUIRE(one_by_one);
    const auto marked = std::count_if(one_by_one->samples.begin(), one_by_one->samples.end(),
                                      [](const TimedSample& s) { return s.truncation == Truncation::kUserShare; });
    CHECK(static_cast<std::uint64_t>(marked) == count_of(counted.quality, Truncation::kUserShare));
  }
  CHECK(given_up == t.store.stats().stacks_given_up);
}

TEST_CASE("a snapshot keeps stacks that were given up after it was taken, and has its own sums") {
  Flooded t;
  constexpr std::int64_t kMinutes = 20;
  // Too few to need room.
  for (std::int64_t minute = 0; minute < kMinutes; ++minute) {
    for (int i = 0; i < 15; ++i) t.flood();
    for (std::uint64_t i = 0; i < 15; ++i) t.be_modest(i);
    t.pass_minutes(1);
  }
  REQUIRE(t.store.stats().stacks_given_up == 0);
  const Snapshot before = t.store.snapshot();
  const WallWindow window{kNoon, {kNoon.ns + kMinutes * kNsPerMinute}};
  const auto known = counts_of(profile_by(before, window));
  const auto usage = process_usage(before, window);
  for (int minute = 0; minute < 20; ++minute) t.pass_minute_of_both();
  REQUIRE(t.store.stats().stacks_given_up > 15 * kMinutes);

  const Profile old = profile_by(before, window);
  CHECK(counts_of(old) == known);
  CHECK(count_of(old.quality, Truncation::kUserShare) == 0);
  CHECK(process_usage(before, window).size() == usage.size());
  for (int again = 0; again < 2; ++again) {
    const Profile now = t.profile_of(window);
    CHECK(total(now) == 30 * kMinutes);
    CHECK(count_of(now.quality, Truncation::kUserShare) == 15 * kMinutes);
    CHECK(now.quality.whole == 15 * kMinutes);
    CHECK(counts_of(t.profile_of(window, ProcessSelector{200, {}})) ==
          counts_of(profile_by(before, window, ProcessSelector{200, {}})));
    // The old snapshot's sums, made after the new one's.
    CHECK(counts_of(profile_by(before, window)) == known);
  }
}

TEST_CASE("an answer names the user whose stacks were given up, only to viewers who may see that user") {
  Flooded t;
  for (int minute = 0; minute < 20; ++minute) t.pass_minute_of_both();
  const Snapshot snapshot = t.store.snapshot();
  const std::string told = "Stacks of user 1001 were given up, all or some of those from 2026-01-01T12:00:00Z to ";
  CHECK(mentions(profile_by(snapshot, t.everything()).warnings, told));
  CHECK(mentions(profile_by(snapshot, t.everything()).warnings, "a share of the store's memory budget of 2 MiB"));
  CHECK(mentions(profile_by(seen_by(snapshot, kFlooder), t.everything()).warnings, told));
  CHECK(profile_by(seen_by(snapshot, kModest), t.everything()).warnings ==
        std::vector<std::string>{"The window is partly outside of the retained time, which is "
                                 "2026-01-01T12:00:00Z to 2026-01-01T12:20:00Z."});
  // Nor if it is not selected.
  CHECK_FALSE(mentions(profile_by(snapshot, t.everything(), ProcessSelector{200, {}}).warnings, "given up"));
  const WallTime now = t.clock.wall();
  CHECK_FALSE(mentions(profile_by(snapshot, {now, {now.ns + kNsPerSecond}}).warnings, "given up"));
}

TEST_CASE("once a user fits into a share, no more stacks are given up, and later the record of it goes") {
  Flooded t({30 * kNsPerMinute, 2U << 20});
  for (int minute = 0; minute < 10; ++minute) t.pass_minute_of_both();
  const std::uint64_t given_up = t.store.stats().stacks_given_up;
  REQUIRE(given_up > 0);
  for (int minute = 0; minute < 50; ++minute) {
    for (std::uint64_t i = 0; i < 20; ++i) {
      t.be_modest(i);
      t.add_as(kFlooder, kFlooding, {code(16), code(32)});
    }
    t.pass_minutes(1);
  }
  CHECK(t.store.stats().above_share.empty());
  CHECK_FALSE(mentions(t.profile().warnings, "given up"));
  CHECK(t.profile().quality.truncated_total() == 0);
  CHECK(t.store.stats().nodes < 100);
}

TEST_CASE("users of whom nothing is held any more make room for others") {
  UserShares shares;
  for (std::uint32_t user = 0; user < 254; ++user) CHECK(shares.tag_of(user) != kSeveral);
  CHECK(shares.tag_of(254) == kSeveral);
  CHECK(shares.find(254) == kSeveral);
  UserShares::Held nodes{};
  nodes[shares.find(7)] = 1;
  shares[shares.find(8)].open_entries = 1;
  shares.forget_unused(nodes, 1, {});
  CHECK(shares.find(6) == kSeveral);
  CHECK(shares.find(7) != kSeveral);
  CHECK(shares.find(8) != kSeveral);
  CHECK(shares.tag_of(254) != kSeveral);
}

TEST_CASE("the user most above a share comes first, and a lone user has no share") {
  UserShares shares;
  const UserTag one = shares.tag_of(1);
  const UserTag two = shares.tag_of(2);
  const UserTag three = shares.tag_of(3);
  UserShares::Resource resource;
  resource.room = 90;
  resource.held[one] = 20;
  resource.held[two] = 40;
  resource.held[three] = 50;
  shares.judge(std::span(&resource, 1));
  CHECK(shares.over() == std::vector<UserTag>{three, two});
  CHECK(shares.is_over(3));
  CHECK_FALSE(shares.is_over(1));
  resource.held[one] = resource.held[two] = 0;
  resource.held[three] = 500;
  shares.judge(std::span(&resource, 1));
  CHECK(shares.over().empty());
}

}  // namespace flamed::store::test
