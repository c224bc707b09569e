// SPDX-License-Identifier: Apache-2.0
//
// Whose memory is left alone after a helper hung in it, and for how long.
#include "daemon/waits/hung_memory.h"

#include <cstdint>

#include "base/clock.h"
#include "test/catch.h"

namespace flamed::daemon {
namespace {

constexpr MonotonicTime kBegin{100 * kNsPerSecond};

TEST_CASE("memory in which a helper hung is left alone, and that of no other process with its pid") {
  HungMemory hung;
  hung.add({.pid = 100, .start_ns = 7, .user = 1000}, kBegin);
  CHECK(hung.is_refused({.pid = 100, .start_ns = 7, .user = 1000}));
  CHECK_FALSE(hung.is_refused({.pid = 100, .start_ns = 8, .user = 1000}));
  CHECK_FALSE(hung.is_refused({.pid = 101, .start_ns = 7, .user = 1000}));
}

TEST_CASE("after the fourth process of a user all of the user's are left alone, and nobody else's") {
  HungMemory hung;
  for (std::int32_t pid = 100; pid < 104; ++pid) {
    CHECK_FALSE(hung.is_refused({.pid = 200, .start_ns = 7, .user = 1000}));
    hung.add({.pid = pid, .start_ns = 7, .user = 1000}, kBegin);
  }
  CHECK(hung.is_refused({.pid = 200, .start_ns = 7, .user = 1000}));
  CHECK_FALSE(hung.is_refused({.pid = 200, .start_ns = 7, .user = 1001}));
}

TEST_CASE("what hung before a time is forgotten") {
  HungMemory hung;
  hung.add({.pid = 100, .start_ns = 7, .user = 1000}, kBegin);
  hung.add({.pid = 101, .start_ns = 7, .user = 1000}, {kBegin.ns + kNsPerMinute});
  hung.forget_before(kBegin);
  CHECK(hung.is_refused({.pid = 100, .start_ns = 7, .user = 1000}));
  hung.forget_before({kBegin.ns + 1});
  CHECK_FALSE(hung.is_refused({.pid = 100, .start_ns = 7, .user = 1000}));
  CHECK(hung.is_refused({.pid = 101, .start_ns = 7, .user = 1000}));
}

TEST_CASE("of very many hung processes the last ones are known") {
  HungMemory hung;
  for (std::int32_t i = 0; i < 1000; ++i) {
    hung.add({.pid = 100 + i, .start_ns = 7, .user = static_cast<std::uint32_t>(i)}, kBegin);
  }
  CHECK_FALSE(hung.is_refused({.pid = 100, .start_ns = 7, .user = 0}));
  CHECK(hung.is_refused({.pid = 1099, .start_ns = 7, .user = 999}));
}

}  // namespace
}  // namespace flamed::daemon
