// SPDX-License-Identifier: Apache-2.0
#include "daemon/stored_until.h"

#include <atomic>
#include <thread>

#include "test/catch.h"

namespace flamed::daemon {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_CASE("what is stored already asks for no drain") {
  int drains = 0;
  StoredUntil stored([&] { ++drains; });
  stored.advance({100});
  stored.await({100}, seconds(60));
  stored.await({99}, seconds(60));
  CHECK(drains == 0);
  CHECK_FALSE(stored.is_awaited());
}

TEST_CASE("who asks for later samples has them drained, and waits until they are stored") {
  std::atomic<bool> asked = false;
  StoredUntil stored([&] { asked = true; });
  std::jthread ingest([&] {
    while (!asked) std::this_thread::sleep_for(milliseconds(1));
    CHECK(stored.is_awaited());
    stored.advance({99});  // not yet
    stored.advance({100});
  });
  stored.await({100}, seconds(60));
  CHECK(asked);
  CHECK_FALSE(stored.is_awaited());
}

TEST_CASE("where ingest does not get there, the wait ends all the same") {
  StoredUntil stored([] {});
  const auto start = std::chrono::steady_clock::now();
  stored.await({100}, milliseconds(20));
  CHECK(std::chrono::steady_clock::now() - start >= milliseconds(20));
  CHECK_FALSE(stored.is_awaited());
}

}  // namespace
}  // namespace flamed::daemon
