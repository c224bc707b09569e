// SPDX-License-Identifier: Apache-2.0
#include "daemon/flow/stored_until.h"

#include <atomic>
#include <thread>

#include "test/catch.h"

namespace flamed::daemon {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_CASE("a wait for samples that are stored already requests no drain") {
  int drains = 0;
  StoredUntil stored([&] { ++drains; });
  stored.advance({100});
  stored.await({100}, seconds(60));
  stored.await({99}, seconds(60));
  CHECK(drains == 0);
  CHECK_FALSE(stored.is_awaited());
}

TEST_CASE("a wait for later samples requests a drain, and ends when they are stored") {
  std::atomic<bool> is_asked = false;
  std::atomic<bool> was_awaited = false;
  std::atomic<bool> is_all_there = false;
  StoredUntil stored([&] { is_asked = true; });
  std::jthread ingest([&] {
    while (!is_asked) std::this_thread::sleep_for(milliseconds(1));
    was_awaited = stored.is_awaited();
    stored.advance({99});
    std::this_thread::sleep_for(milliseconds(20));
    is_all_there = true;
    stored.advance({100});
  });
  stored.await({100}, seconds(60));
  CHECK(is_all_there);
  ingest.join();
  CHECK(was_awaited);
  CHECK_FALSE(stored.is_awaited());
}

TEST_CASE("the wait ends even if ingest does not get there") {
  StoredUntil stored([] {});
  const auto start = std::chrono::steady_clock::now();
  stored.await({100}, milliseconds(20));
  CHECK(std::chrono::steady_clock::now() - start >= milliseconds(20));
  CHECK_FALSE(stored.is_awaited());
}

}  // namespace
}  // namespace flamed::daemon
