// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtimes/reading_pace.h"

#include "test/catch.h"

namespace flamed::daemon {
namespace {

/// Reads whenever it may, from the first reading on, until `ns` have passed. Returns the number of readings.
int read_for(ReadingPace& pace, MonotonicTime& now, std::int64_t ns, std::int64_t took_ns = 0) {
  int readings = 0;
  for (const std::int64_t end = now.ns + ns; now.ns < end; now.ns += kNsPerMs) {
    if (!pace.may_read(now)) continue;
    pace.read(now, took_ns, 0);
    ++readings;
  }
  return readings;
}

TEST_CASE("the code of a program that has just begun is read each 50 ms") {
  ReadingPace pace;
  MonotonicTime now{kNsPerSecond};
  CHECK(pace.may_read(now));
  CHECK(read_for(pace, now, 800 * kNsPerMs) == 16);
}

TEST_CASE("code of a program is read more rarely as it goes on, but while samples wait for it") {
  ReadingPace pace;
  MonotonicTime now{kNsPerSecond};
  const int at_first = read_for(pace, now, 5 * kNsPerSecond);
  const int later = read_for(pace, now, 5 * kNsPerSecond);
  CHECK(later < at_first / 2);
  read_for(pace, now, 60 * kNsPerSecond);
  const int at_last = read_for(pace, now, 60 * kNsPerSecond);
  CHECK(at_last == 60 * kNsPerSecond / ReadingPace::kLongestNs);
}

TEST_CASE("after a time without readings a program counts as new") {
  ReadingPace pace;
  MonotonicTime now{kNsPerSecond};
  read_for(pace, now, 60 * kNsPerSecond);
  now.ns = pace.read_at().ns + ReadingPace::kQuietNs;
  CHECK(read_for(pace, now, 100 * kNsPerMs) == 2);
}

TEST_CASE("readings that take long are rarer, but come while samples wait") {
  ReadingPace pace;
  MonotonicTime now{kNsPerSecond};
  CHECK(read_for(pace, now, kNsPerSecond, 20 * kNsPerMs) == 5);
  pace.read(now, 10 * kNsPerSecond, 0);
  now.ns += ReadingPace::kLongestNs;
  CHECK(pace.may_read(now));
}

TEST_CASE("a process that can't be read is asked again more and more rarely") {
  ReadingPace pace;
  MonotonicTime now{kNsPerSecond};
  for (unsigned failures = 1; failures < 8; ++failures) {
    pace.read(now, 0, failures);
    now.ns += (ReadingPace::kShortestNs << failures) - 1;
    CHECK_FALSE(pace.may_read(now));
    now.ns += 1;
    CHECK(pace.may_read(now));
  }
}

}  // namespace
}  // namespace flamed::daemon
