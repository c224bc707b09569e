// SPDX-License-Identifier: Apache-2.0
#include "daemon/machine/cpu_time.h"

#include <string>

#include "base/clock.h"
#include "test/catch.h"

namespace flamed::daemon {
namespace {

TEST_CASE("busy time is that of threads, without interrupts, which may come while a CPU is idle") {
  // 10 + 20 + 40 + 1280 + 640 ticks of 10 ms
  const auto busy = parse_busy_ns("cpu  10 20 40 80 160 1280 640 320 2560 5120\ncpu0 1 2 3\n");
  REQUIRE(busy.ok());
  CHECK(*busy == 700 * kNsPerMs);
}

TEST_CASE("fields after the third are optional") { CHECK(*parse_busy_ns("cpu 1 1 1") == 30 * kNsPerMs); }

TEST_CASE("text that is not /proc/stat is refused") {
  for (const std::string text :
       {"", "cpu", "cpu ", "cpu0 1 2 3 4 5 6 7", "cpu  1 2", "cpu  1 2 x 4 5 6 7", "cpu  -1 2 3 4 5 6 7",
        "cpu  99999999999999999999 2 3 4 5 6 7", "intr 1 2 3 4 5 6 7"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_busy_ns(text).ok());
  }
}

TEST_CASE("more CPU time than 64 bits of nanoseconds hold wraps round, and differences stay right") {
  const auto before = parse_busy_ns("cpu  922337203685 0 0 0 0 0 0");
  const auto after = parse_busy_ns("cpu  922337203785 0 0 0 0 0 0");
  REQUIRE(before.ok());
  REQUIRE(after.ok());
  CHECK(static_cast<std::uint64_t>(*after) - static_cast<std::uint64_t>(*before) == 1'000'000'000);
}

TEST_CASE("idle time of all CPUs is the second number of /proc/uptime, in hundredths of a second") {
  CHECK(parse_idle_ns("45423.45 52317.09\n") == 52'317 * kNsPerSecond + 90 * kNsPerMs);
  CHECK(parse_idle_ns("1.00 0.50") == 500 * kNsPerMs);
}

TEST_CASE("text that is not /proc/uptime has no idle time") {
  for (const std::string text :
       {"", "1.00", "1.00 ", "1.00 2", "1.00 2.", "1.00 2.5", "1.00 x.50", "1.00 2.x0", "1.00 2.-1"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_idle_ns(text).has_value());
  }
}

TEST_CASE("how long a thread has waited for a CPU is the second number of its schedstat") {
  CHECK(parse_run_delay_ns("1234567 89012 34\n") == 89'012);
  CHECK(parse_run_delay_ns("1 0 0") == 0);
  for (const std::string text : {"", "12", "12 ", "x 1 2", "1 x 2"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_run_delay_ns(text).has_value());
  }
}

TEST_CASE("this machine has a busy time") {
  const auto busy = read_busy_ns();
  REQUIRE(busy.ok());
  CHECK(*busy > 0);
}

}  // namespace
}  // namespace flamed::daemon
