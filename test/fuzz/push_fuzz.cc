// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as an answer of a receiver to flamed-push, as its report to the daemon, and as a mark.
//
// The first byte chooses the format, the status and the content type.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <variant>

#include "api/question/push_report.h"
#include "push/progress.h"
#include "push/verdict.h"

namespace {

using namespace flamed;

void require(bool condition) {
  if (!condition) std::abort();
}

void judge(std::uint8_t choice, const std::string& body) {
  constexpr std::array<const char*, 4> kTypes{"application/x-protobuf", "application/json", "", "text/html"};
  const auto format = (choice & 1U) != 0 ? push::Format::kOtlp : push::Format::kPyroscope;
  push::Answer answer;
  answer.status = (choice & 2U) != 0 ? 200 : 503;
  answer.content_type = kTypes[(choice >> 2U) & 3U];
  answer.retry_after = body;
  answer.body = body;
  const push::Verdict verdict = push::judge(format, answer, WallTime{1769868330 * kNsPerSecond});
  // What was answered with 2xx is never sent again, and the other way round.
  require((verdict.kind == push::Verdict::Kind::kAgain) == (answer.status == 503));
  require(!verdict.pause_ns || (*verdict.pause_ns >= 0 && *verdict.pause_ns <= 60 * kNsPerMinute));
}

void report(std::string_view body) {
  const auto outcome = api::parse_push_report(body);
  if (const auto* problem = std::get_if<api::Problem>(&outcome)) {
    require(problem->status == 400);
    return;
  }
  const auto& parsed = std::get<api::PushReport>(outcome);
  require(parsed.interval_ms >= 0 && parsed.cpu_ns >= 0 && parsed.streams.size() <= api::kMostPushStreams);
  for (const api::PushStream& stream : parsed.streams) {
    require(!stream.receiver.empty() && stream.receiver.size() <= api::kMostReceiverNameBytes);
    require(stream.until.ns >= 0 && stream.status >= 0 && stream.status <= 999);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string body(reinterpret_cast<const char*>(data) + 1, size - 1);
  judge(data[0], body);
  report(body);
  const auto mark = push::parse_mark(body);
  if (mark) require(push::parse_mark(push::to_text(*mark)).value() == *mark);
  return 0;
}
