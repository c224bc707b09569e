// SPDX-License-Identifier: Apache-2.0
#include "push/verdict.h"

#include <string>

#include "test/catch.h"

namespace flamed::push {
namespace {

using Kind = Verdict::Kind;

/// 2026-01-31T14:05:30Z
constexpr WallTime kNow{1769868330 * kNsPerSecond};

Answer answer(int status, const std::string& type = "", const std::string& body = "") {
  return {status, type, "", body, ""};
}

TEST_CASE("an answer of 2xx is accepted if such a receiver gives it") {
  for (const Format format : {Format::kPyroscope, Format::kOtlp}) {
    CHECK(judge(format, answer(200), kNow).kind == Kind::kAccepted);
    CHECK(judge(format, answer(204), kNow).kind == Kind::kAccepted);
    CHECK(judge(format, answer(200, "application/json", "{}"), kNow).kind == Kind::kAccepted);
    CHECK(judge(format, answer(200, "text/html", "<html>"), kNow).kind == Kind::kMisunderstood);
    CHECK(judge(format, answer(200, "text/html"), kNow).kind == Kind::kMisunderstood);
    CHECK(judge(format, answer(200, "", "hello"), kNow).kind == Kind::kMisunderstood);
  }
  CHECK(judge(Format::kPyroscope, answer(200, "application/proto"), kNow).kind == Kind::kAccepted);
  CHECK(judge(Format::kOtlp, answer(200, "application/x-protobuf; charset=x", std::string("\x0a\x00", 2)), kNow).kind ==
        Kind::kAccepted);
}

TEST_CASE("an answer of 2xx that broke off was accepted all the same, and is not sent again") {
  Answer broken = answer(200, "application/x-protobuf");
  broken.fault = "the answer is too large";
  CHECK(judge(Format::kOtlp, broken, kNow).kind == Kind::kMisunderstood);
}

TEST_CASE("profiles that were rejected are counted") {
  const Verdict protobuf = judge(Format::kOtlp,
                                 answer(200, "application/x-protobuf",
                                        "\x0a\x07\x08\x03\x12\x03"
                                        "bad"),
                                 kNow);
  CHECK(protobuf.kind == Kind::kPartly);
  CHECK(protobuf.rejected == 3);
  for (const char* number : {"3", "\"3\""}) {
    const std::string body = std::string(R"({"partialSuccess":{"rejectedProfiles":)") + number + "}}";
    CHECK(judge(Format::kOtlp, answer(200, "application/json", body), kNow).rejected == 3);
  }
  CHECK(judge(Format::kOtlp, answer(200, "application/json", R"({"partialSuccess":{}})"), kNow).kind ==
        Kind::kAccepted);
  CHECK(judge(Format::kOtlp, answer(200, "application/x-protobuf", "\x0a\x7f"), kNow).kind == Kind::kMisunderstood);
  CHECK(judge(Format::kOtlp, answer(200, "application/json", "[["), kNow).kind == Kind::kMisunderstood);
}

TEST_CASE("some answers ask to come again, every other one won't change") {
  for (const int status : {0, 429, 502, 503, 504})
    CHECK(judge(Format::kOtlp, answer(status), kNow).kind == Kind::kAgain);
  for (const int status : {100, 301, 302, 307, 308, 400, 401, 403, 404, 413, 415, 500, 501, 505}) {
    CHECK(judge(Format::kOtlp, answer(status), kNow).kind == Kind::kRefused);
  }
}

TEST_CASE("Retry-After is seconds or a date, and at most an hour") {
  const auto pause = [](const std::string& text) {
    Answer busy = answer(503);
    busy.retry_after = text;
    return judge(Format::kOtlp, busy, kNow).pause_ns;
  };
  CHECK(pause("120") == 120 * kNsPerSecond);
  CHECK(pause("Sat, 31 Jan 2026 14:06:00 GMT") == 30 * kNsPerSecond);
  CHECK(pause("Sat, 31 Jan 2026 14:00:00 GMT") == 0);
  CHECK(pause("1000000") == 60 * kNsPerMinute);
  CHECK_FALSE(pause(""));
  CHECK_FALSE(pause("soon"));
  CHECK_FALSE(pause("99999999999999999999999"));
}

TEST_CASE("pauses double from a second to a minute, vary, and are not shorter than asked for") {
  Pauses pauses;
  for (const std::int64_t seconds : {1, 2, 4, 8, 16, 32, 60, 60}) CHECK(pauses.next_ns(0.5) == seconds * kNsPerSecond);
  CHECK(pauses.next_ns(0) == 45 * kNsPerSecond);
  CHECK(pauses.next_ns(1) == 75 * kNsPerSecond);
  CHECK(pauses.next_ns(0.5, 600 * kNsPerSecond) == 600 * kNsPerSecond);
  pauses.reset();
  CHECK(pauses.next_ns(0.5) == kNsPerSecond);
}

}  // namespace
}  // namespace flamed::push
