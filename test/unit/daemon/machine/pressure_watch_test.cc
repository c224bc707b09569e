// SPDX-License-Identifier: Apache-2.0
#include "daemon/machine/pressure_watch.h"

#include <string>

#include "test/catch.h"
#include "test/support/manual_clock.h"
#include "test/unit/symbolizer_processes/temporary_directory.h"

namespace flamed::daemon {
namespace {

constexpr std::int64_t kSecond = kNsPerSecond;
/// 2026-01-31T14:05:00Z
constexpr std::int64_t kMinute = 1769868300 * kSecond;
constexpr WallTime kForever{INT64_MAX};

std::string text_of(std::int64_t some_ns) {
  const std::string total = std::to_string(some_ns / kNsPerUs);
  return "some avg10=0.12 avg60=1.50 avg300=0.00 total=" + total + "\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=1\n";
}

/// A host that begins in the middle of a minute.
struct PressedHost {
  /// Returns the folder.
  std::string write() const {
    for (std::size_t i = 0; i < kResources; ++i) {
      directory.write(std::string(kResourceNames[i]), text_of(totals[i]));
    }
    return directory.path().string();
  }
  /// So many looks at intervals of 10 s, in which threads waited for these shares of the time.
  void pass(int looks, const std::array<double, kResources>& shares) {
    for (int look = 0; look < looks; ++look) {
      clock.advance_ns(10 * kSecond);
      for (std::size_t i = 0; i < kResources; ++i) {
        totals[i] += static_cast<std::int64_t>(shares[i] * 10 * static_cast<double>(kSecond));
      }
      write();
      watch.look();
    }
  }
  [[nodiscard]] std::vector<PressedMinute> all() const { return watch.minutes({0}, kForever); }

  test::TemporaryDirectory directory;
  std::array<std::int64_t, kResources> totals{1000 * kSecond, 0, 77 * kSecond};
  ManualClock clock{{3600 * kSecond}, {kMinute - 25 * kSecond}};
  PressureWatch watch{{.limits = {0.5, 0.25, std::nullopt}, .folder = write()}, clock};
};

TEST_CASE("the first line's total is read, and nothing else taken for one") {
  CHECK(parse_pressure_ns(text_of(1'234'567'000)) == 1'234'567'000);
  CHECK(parse_pressure_ns("some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n") == 0);
  for (const std::string text :
       {"", "some", "full avg10=0.00 avg60=0.00 avg300=0.00 total=1\n", "some avg10=0.00\nfull total=3\n",
        "some total=\n", "some total=-1\n", "some total=1x\n", "some total=99999999999999999999\n",
        "some total=9223372036854775807\n"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_pressure_ns(text));
  }
}

TEST_CASE("a minute in which threads waited for as much of the time as the limit says is marked") {
  PressedHost host;
  host.watch.look();
  host.pass(3, {0, 0, 0});  // to 14:05:05
  host.pass(6, {0.6, 0.1, 0.9});
  host.pass(6, {0, 0.3, 0});
  host.pass(6, {0.4, 0.2, 0});
  const auto found = host.all();
  REQUIRE(found.size() == 2);
  // Of the ten seconds around the end of a minute, each minute has its part.
  CHECK(found[0].start.ns == kMinute);
  CHECK(found[0].shares[0] == Approx(0.55));
  CHECK(found[0].is_high == std::array<bool, kResources>{true, false, false});
  CHECK(found[0].shares[2] == Approx(0.825));  // without a limit
  CHECK(found[1].start.ns == kMinute + kNsPerMinute);
  CHECK(found[1].is_high == std::array<bool, kResources>{false, true, false});
  CHECK(host.watch.state().last->start.ns == kMinute + 2 * kNsPerMinute);

  CHECK(host.watch.minutes({kMinute + 1}, kForever).size() == 1);
  CHECK(host.watch.minutes({kMinute}, {kMinute + kNsPerMinute}).size() == 1);
}

TEST_CASE("a minute that is known in part is not judged") {
  PressedHost host;
  host.watch.look();
  SECTION("since flamed began in it") {
    host.pass(3, {1, 1, 1});
    CHECK(host.all().empty());
  }
  SECTION("since the clock was set") {
    host.pass(6, {1, 1, 1});
    host.clock.step_wall_ns(3600 * kSecond);
    host.pass(3, {1, 1, 1});
    CHECK(host.all().empty());
    host.pass(7, {1, 1, 1});
    CHECK(host.all().size() == 1);
  }
}

TEST_CASE("minutes are kept as long as samples, and a flood of them is bounded") {
  PressedHost host;
  host.watch.look();
  host.pass(6 * 60 * 24 + 60, {1, 0, 0});
  const auto found = host.all();
  CHECK(found.size() <= 24 * 60 + 1);
  REQUIRE(found.size() >= 24 * 60 - 1);
  CHECK(found.back().start.ns - found.front().start.ns <= 24 * 60 * kNsPerMinute);
}

TEST_CASE("where the kernel keeps no account, or none is wanted, there is nothing, and a reason") {
  ManualClock clock{{0}, {kMinute}};
  PressureWatch none({.folder = "/nowhere"}, clock);
  none.look();
  CHECK(none.state().is_on);
  CHECK(none.state().problem.find("CONFIG_PSI") != std::string::npos);
  PressureWatch off({.limits = {}, .folder = "/nowhere"}, clock);
  off.look();
  CHECK_FALSE(off.state().is_on);
  CHECK(off.state().problem.empty());

  PressedHost host;
  host.watch.look();
  host.directory.write("io", "another form\n");
  host.watch.look();
  CHECK(host.watch.state().problem.find("another form") != std::string::npos);
  host.write();
  host.watch.look();
  CHECK(host.watch.state().problem.empty());
}

}  // namespace
}  // namespace flamed::daemon
