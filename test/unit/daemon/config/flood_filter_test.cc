// SPDX-License-Identifier: Apache-2.0
#include "daemon/config/flood_filter.h"

#include <string>

#include "test/catch.h"

namespace flamed::daemon {
namespace {

MonotonicTime at(std::int64_t ms) { return {ms * kNsPerMs}; }

TEST_CASE("messages that differ only in numbers, paths and quoted words are written a few times per period") {
  FloodFilter filter;
  unsigned written = 0;
  for (int i = 0; i < 10'000; ++i) {
    const std::string message = "cannot open /proc/" + std::to_string(i) + "/maps of '" +
                                std::string(static_cast<std::size_t>(i % 7), 'x') + "'";
    written += filter.admit(message, at(i / 10)).write ? 1 : 0;
  }
  CHECK(written == FloodFilter::kBurst);
}

TEST_CASE("the first message of the next period says how many were left out") {
  FloodFilter filter;
  for (int i = 0; i < 100; ++i) filter.admit("CPU 3 is gone", at(i));
  const FloodFilter::Decision next = filter.admit("CPU 4 is gone", at(20'000));
  CHECK(next.write);
  CHECK(next.left_out == 100 - FloodFilter::kBurst);
  CHECK(filter.admit("CPU 4 is gone", at(20'001)).left_out == 0);
}

TEST_CASE("a flood of one message does not hold back others") {
  FloodFilter filter;
  for (int i = 0; i < 100; ++i) filter.admit("one thing", at(i));
  CHECK(filter.admit("another thing", at(100)).write);
}

TEST_CASE("messages of ever new forms are held back too, in bounded memory") {
  FloodFilter filter;
  unsigned written = 0;
  for (int i = 0; i < 10'000; ++i) {
    std::string word;
    for (int rest = i; rest > 0; rest /= 26) word += static_cast<char>('a' + rest % 26);
    written += filter.admit(word + " happened", at(1)).write ? 1 : 0;
  }
  CHECK(written <= FloodFilter::kMostShapes + FloodFilter::kBurst);
}

}  // namespace
}  // namespace flamed::daemon
