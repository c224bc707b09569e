// SPDX-License-Identifier: Apache-2.0
#include "daemon/flow/notice_pace.h"

#include "test/catch.h"

namespace flamed::daemon {
namespace {

/// A reader that is woken by notices.
struct Reader {
  /// A notice `ms` after the last wake-up. Returns how long it had to wait, in milliseconds.
  std::int64_t notice_after(std::int64_t ms) {
    const std::int64_t came_ns = now.ns + ms * kNsPerMs;
    now.ns = std::max(came_ns, pace.listens_from().ns);
    pace.woken(now);
    return (now.ns - came_ns) / kNsPerMs;
  }

  NoticePace pace;
  MonotonicTime now{1000 * kNsPerSecond};
};

TEST_CASE("a single notice is read at once") {
  Reader reader;
  for (int i = 0; i < 100; ++i) CHECK(reader.notice_after(NoticePace::kPeriodNs / kNsPerMs + 10) == 0);
}

TEST_CASE("the first notices of a burst wait for each other only a moment") {
  Reader reader;
  CHECK(reader.notice_after(1000) == 0);
  for (int i = 1; i < NoticePace::kBurst; ++i) CHECK(reader.notice_after(0) == 10);
}

TEST_CASE("endless notices are read at a bounded rate") {
  Reader reader;
  for (int i = 0; i < 20; ++i) static_cast<void>(reader.notice_after(1));
  const MonotonicTime begin = reader.now;
  for (int i = 0; i < 200; ++i) static_cast<void>(reader.notice_after(1));
  CHECK(reader.now.ns - begin.ns == 200 * NoticePace::kPeriodNs);
}

TEST_CASE("where samples are rarer, notices wake the reader less often") {
  Reader reader;
  reader.pace.stretch(4);
  for (int i = 0; i < 20; ++i) static_cast<void>(reader.notice_after(1));
  const MonotonicTime begin = reader.now;
  for (int i = 0; i < 100; ++i) {
    reader.pace.stretch(4);
    static_cast<void>(reader.notice_after(1));
  }
  CHECK(reader.now.ns - begin.ns == 400 * NoticePace::kPeriodNs);
  reader.pace.stretch(1);
  for (int i = 0; i < 20; ++i) static_cast<void>(reader.notice_after(1));
  const MonotonicTime back = reader.now;
  for (int i = 0; i < 100; ++i) static_cast<void>(reader.notice_after(1));
  CHECK(reader.now.ns - back.ns == 100 * NoticePace::kPeriodNs);
}

TEST_CASE("after a pause a burst is read as soon as the first one") {
  Reader reader;
  for (int i = 0; i < 100; ++i) static_cast<void>(reader.notice_after(1));
  CHECK(reader.notice_after(NoticePace::kBurst * NoticePace::kPeriodNs / kNsPerMs + 50) == 0);
  for (int i = 1; i < NoticePace::kBurst; ++i) CHECK(reader.notice_after(0) == 10);
}

}  // namespace
}  // namespace flamed::daemon
