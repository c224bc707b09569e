// SPDX-License-Identifier: Apache-2.0
#include "daemon/sampler/run_delay.h"

#include <sched.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "test/catch.h"

namespace flamed::daemon {
namespace {

TEST_CASE("a thread that shares its CPU with a busy one learns how long it waited") {
  cpu_set_t allowed;
  REQUIRE(::sched_getaffinity(0, sizeof(allowed), &allowed) == 0);
  int cpu = 0;
  while (!CPU_ISSET(cpu, &allowed)) ++cpu;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);

  std::optional<std::int64_t> at_first, shared, alone;
  bool is_pinned = false;
  std::jthread([&] {  // so that the test's own thread isn't pinned
    is_pinned = ::sched_setaffinity(0, sizeof(one), &one) == 0;
    RunDelay delay;
    at_first = delay.since_last();
    {
      std::jthread busy([](const std::stop_token& stop) {  // on the same CPU
        while (!stop.stop_requested()) {
        }
      });
      const auto began = std::chrono::steady_clock::now();
      while (std::chrono::steady_clock::now() - began < std::chrono::milliseconds(300)) {
      }
      shared = delay.since_last();
      busy.request_stop();
    }
    alone = delay.since_last();
  })
      .join();
  REQUIRE(is_pinned);
  CHECK_FALSE(at_first);
  REQUIRE(shared);
  CHECK(*shared > 30 * kNsPerMs);
  REQUIRE(alone);
  CHECK(*alone >= 0);
}

}  // namespace
}  // namespace flamed::daemon
