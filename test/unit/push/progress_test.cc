// SPDX-License-Identifier: Apache-2.0
#include "push/progress.h"

#include "test/catch.h"

namespace flamed::push {
namespace {

using Kind = Progress::Step::Kind;

constexpr std::int64_t kStart = 1'769'868'000'000;  // a whole minute

Progress progress_at(std::int64_t until_ms, std::uint64_t minute_samples = 0) {
  return {Progress::Options{}, Mark{until_ms, minute_samples}, until_ms};
}

TEST_CASE("stretches follow each other by the interval, once they are complete") {
  Progress progress = progress_at(kStart);
  CHECK_FALSE(progress.next(kStart + 19'999));
  for (std::int64_t begin = kStart; begin < kStart + kMinuteMs; begin += 15'000) {
    const auto step = progress.next(begin + 20'000);
    REQUIRE(step);
    CHECK(step->kind == Kind::kSend);
    CHECK(step->stretch == Stretch{begin, begin + 15'000});
    CHECK(progress.fits(*step, step->ask));
    progress.done(*step, 10);
    CHECK(progress.mark().until_ms == begin + 15'000);
  }
  // Of the minute that has just begun.
  CHECK(progress.mark() == Mark{kStart + kMinuteMs, 0});
}

TEST_CASE("a new receiver begins with what comes from now on") {
  const Progress progress({}, {}, kStart + 6'000);
  CHECK(progress.mark() == Mark{kStart + 15'000, 0});
}

TEST_CASE("where minutes alone are kept a whole one is sent") {
  Progress progress = progress_at(kStart);
  const auto part = progress.next(kStart + 10 * kMinuteMs);
  REQUIRE(part);
  CHECK_FALSE(progress.fits(*part, {kStart, kStart + kMinuteMs}));
  const auto minute = progress.next(kStart + 10 * kMinuteMs);
  REQUIRE(minute);
  CHECK(minute->kind == Kind::kSend);
  CHECK(minute->stretch == Stretch{kStart, kStart + kMinuteMs});
  // Less is asked for, so that a minute of the daemon that begins a moment later is not touched.
  CHECK(minute->ask == Stretch{kStart + 100, kStart + kMinuteMs - 100});
  CHECK(progress.fits(*minute, {kStart - 3, kStart + kMinuteMs - 3}));
  progress.done(*minute, 6000);
  CHECK(progress.mark() == Mark{kStart + kMinuteMs, 0});
  // After it, single samples are tried again.
  CHECK(progress.next(kStart + 10 * kMinuteMs)->stretch == Stretch{kStart + kMinuteMs, kStart + kMinuteMs + 15'000});
}

TEST_CASE("the rest of a minute of which a part was sent is counted, to the sample, and not sent again") {
  Progress progress = progress_at(kStart + 30'000, 700);
  const auto part = progress.next(kStart + 10 * kMinuteMs);
  REQUIRE(part);
  CHECK_FALSE(progress.fits(*part, {kStart, kStart + kMinuteMs}));
  const auto cut = progress.next(kStart + 10 * kMinuteMs);
  REQUIRE(cut);
  CHECK(cut->kind == Kind::kCountCut);
  CHECK(cut->stretch == Stretch{kStart, kStart + kMinuteMs});
  CHECK(progress.count(*cut, 1000) == 300);
  CHECK(progress.mark() == Mark{kStart + kMinuteMs, 0});
}

TEST_CASE("what is older than the receiver takes is counted, without what was sent of its first minute") {
  Progress progress = progress_at(kStart + 30'000, 700);
  const std::int64_t now = kStart + 125 * kMinuteMs + 1;
  const auto old = progress.next(now);
  REQUIRE(old);
  CHECK(old->kind == Kind::kCountOld);
  CHECK(old->stretch == Stretch{kStart, kStart + 66 * kMinuteMs});
  CHECK(progress.count(*old, 66'000) == 65'300);
  CHECK(progress.next(now)->stretch.from_ms == kStart + 66 * kMinuteMs);
}

TEST_CASE("a minute that is not over waits for its end where minutes alone are kept") {
  Progress progress = progress_at(kStart);
  const auto part = progress.next(kStart + 20'000);
  REQUIRE(part);
  CHECK_FALSE(progress.fits(*part, {kStart, kStart + 40'000}));
  CHECK_FALSE(progress.next(kStart + 50'000));
  CHECK(progress.due_ms() == kStart + kMinuteMs + 5'000);
  CHECK(progress.next(kStart + kMinuteMs + 5'000)->kind == Kind::kSend);
}

TEST_CASE("time of which nothing is kept is skipped") {
  Progress progress = progress_at(kStart);
  const auto step = progress.next(kStart + 20'000);
  REQUIRE(step);
  CHECK(progress.fits(*step, {kStart, kStart}));
  progress.done(*step, 0);
  CHECK(progress.mark().until_ms == kStart + 15'000);
}

TEST_CASE("after the clock was set back it goes on from there") {
  Progress progress = progress_at(kStart + 60 * kMinuteMs, 12);
  CHECK_FALSE(progress.next(kStart));
  CHECK(progress.mark() == Mark{kStart, 0});
}

TEST_CASE("a mark outlasts the program, and what is none is refused") {
  const Mark mark{kStart, 12345};
  CHECK(parse_mark(to_text(mark)).value() == mark);
  for (const char* text : {"", "12", "12 ", "12 13", "12 13 14\n", "x 13\n", "-1 13\n", "12 -1\n", "12 13\n\n",
                           "99999999999999999999 1\n", "9999999999999999 1\n"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_mark(text));
  }
}

}  // namespace
}  // namespace flamed::push
