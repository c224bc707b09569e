// SPDX-License-Identifier: Apache-2.0
#include "store/query/worst_waits.h"

#include <string>
#include <utility>
#include <vector>

#include "store/query/query.h"
#include "test/catch.h"
#include "test/unit/store/store_fixture.h"

namespace flamed::store::test {
namespace {

/// Near the end of a minute, so that waits that end now began in it.
struct PressedHost : TestStore {
  PressedHost() { pass(59); }

  void wait(std::int32_t pid, WaitReason reason, std::int64_t ns) {
    const std::vector<Frame> frames{wait_frame(reason)};
    WaitSample wait;
    wait.sample = {clock.monotonic(), {pid, 1}, pid, "worker", frames, {}};
    wait.last_seen = clock.monotonic();
    wait.waited_ns = ns;
    store.add_wait(wait);
    store.end_wait(pid, clock.monotonic());
    store.set_waits_seen(clock.monotonic());
  }
  [[nodiscard]] WallTime minute() const { return {clock.wall().ns - clock.wall().ns % kNsPerMinute}; }
  [[nodiscard]] std::vector<std::vector<WorstWait>> worst(const std::vector<PressedMinute>& minutes,
                                                          const Selection& selection = {}, std::size_t most = 5) const {
    QueryBudget budget;
    auto found = worst_waits(store.snapshot(), selection, minutes, most, budget);
    REQUIRE(found);
    return *std::move(found);
  }
};

using Row = std::pair<std::int32_t, WaitReason>;
std::vector<Row> rows_of(const std::vector<WorstWait>& waits) {
  std::vector<Row> rows;
  for (const WorstWait& wait : waits) rows.emplace_back(wait.process.id.pid, wait.reason);
  return rows;
}

constexpr std::int64_t kSecond = kNsPerSecond;

TEST_CASE("Waits for what was under pressure come first, and those that programs choose not at all", "[store]") {
  PressedHost host;
  host.wait(1, WaitReason::kLock, 40 * kSecond);
  host.wait(1, WaitReason::kDisk, 2 * kSecond);
  host.wait(2, WaitReason::kDisk, 7 * kSecond);
  host.wait(2, WaitReason::kRunQueue, 9 * kSecond);
  for (const WaitReason chosen : {WaitReason::kSleep, WaitReason::kPoll, WaitReason::kCondition}) {
    host.wait(3, chosen, 59 * kSecond);
  }
  PressedMinute io{host.minute(), {0.1, 0.7, 0}, {false, true, false}};
  const auto found = host.worst({io});
  REQUIRE(found.size() == 1);
  CHECK(rows_of(found[0]) ==
        std::vector<Row>{
            {2, WaitReason::kDisk}, {1, WaitReason::kDisk}, {1, WaitReason::kLock}, {2, WaitReason::kRunQueue}});
  CHECK(found[0][0].ns == 7 * kSecond);

  PressedMinute cpu{host.minute(), {0.9, 0, 0}, {true, false, false}};
  CHECK(rows_of(host.worst({cpu}, {}, 2)[0]) == std::vector<Row>{{2, WaitReason::kRunQueue}, {1, WaitReason::kLock}});
  Selection one;
  one.processes = {{1, {}}};
  CHECK(rows_of(host.worst({cpu}, one)[0]) == std::vector<Row>{{1, WaitReason::kLock}, {1, WaitReason::kDisk}});
}

TEST_CASE("Each minute has its own waits, also of waits that outlast it", "[store]") {
  PressedHost host;
  const PressedMinute first{host.minute(), {0, 0.9, 0}, {false, true, false}};
  host.wait(1, WaitReason::kDisk, kSecond);
  host.pass_minutes(5);
  const PressedMinute second{host.minute(), {0, 0.9, 0}, {false, true, false}};
  host.wait(2, WaitReason::kDisk, 3 * kSecond);
  // It waits from then on, without an end.
  const std::vector<Frame> lock{wait_frame(WaitReason::kLock)};
  WaitSample standing;
  standing.sample = {host.clock.monotonic(), {3, 1}, 3, "worker", lock, {}};
  host.store.add_wait(standing);
  host.pass_minutes(10);
  const PressedMinute last{{host.minute().ns - 2 * kNsPerMinute}, {0, 0.9, 0}, {false, true, false}};
  host.store.set_waits_seen(host.clock.monotonic());

  const auto found = host.worst({first, second, last});
  CHECK(rows_of(found[0]) == std::vector<Row>{{1, WaitReason::kDisk}});
  REQUIRE(rows_of(found[1]) == std::vector<Row>{{2, WaitReason::kDisk}, {3, WaitReason::kLock}});
  REQUIRE(rows_of(found[2]) == std::vector<Row>{{3, WaitReason::kLock}});
  CHECK(found[2][0].ns == 60 * kSecond);
  CHECK(host.worst({}).empty());
}

TEST_CASE("A viewer is told only the waits of his own processes", "[store]") {
  PressedHost host;
  host.wait(1, WaitReason::kDisk, kSecond);
  const PressedMinute minute{host.minute(), {0, 0.9, 0}, {false, true, false}};
  QueryBudget budget;
  const auto found = worst_waits(seen_by(host.store.snapshot(), 4711), {}, std::vector{minute}, 5, budget);
  REQUIRE(found);
  CHECK((*found)[0].empty());
}

}  // namespace
}  // namespace flamed::store::test
