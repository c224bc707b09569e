// SPDX-License-Identifier: Apache-2.0
#include "push/verdict.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>

#include "api/text/header_line.h"
#include "base/protobuf_reader.h"

namespace flamed::push {
namespace {

constexpr std::int64_t kShortestPauseNs = kNsPerSecond;
constexpr std::int64_t kLongestPauseNs = kNsPerMinute;
/// A receiver that asks for more waits in vain: by then most of it is too old.
constexpr std::int64_t kLongestAskedNs = 60 * kNsPerMinute;

/// Seconds, or a date (RFC 9110, 10.2.3).
std::optional<std::int64_t> parse_retry_after(const std::string& text, WallTime now) {
  if (text.empty()) return std::nullopt;
  std::int64_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc{} || end != text.data() + text.size()) {
    std::tm date{};
    const char* const rest = ::strptime(text.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &date);
    if (rest == nullptr || *rest != '\0') return std::nullopt;
    seconds = ::timegm(&date) - now.ns / kNsPerSecond;
  }
  return std::clamp<std::int64_t>(seconds, 0, kLongestAskedNs / kNsPerSecond) * kNsPerSecond;
}

/// ExportProfilesServiceResponse { partial_success = 1 { rejected_profiles = 1 } }. Empty: it is none.
std::optional<std::uint64_t> rejected_in_protobuf(std::string_view body) {
  std::uint64_t rejected = 0;
  ProtobufReader reader(body);
  while (true) {
    const auto field = reader.next();
    if (!field.ok()) return std::nullopt;
    if (!field.value()) return rejected;
    if (field.value()->number != 1 || field.value()->type != WireType::kBytes) continue;
    ProtobufReader partial(field.value()->bytes);
    while (true) {
      const auto member = partial.next();
      if (!member.ok()) return std::nullopt;
      if (!member.value()) break;
      if (member.value()->number == 1 && member.value()->type == WireType::kVarint) {
        rejected = member.value()->value;
      }
    }
  }
}

/// {"partialSuccess": {"rejectedProfiles": "1"}}
std::optional<std::uint64_t> rejected_in_json(std::string_view body) {
  constexpr int kDeepest = 4;
  using Json = nlohmann::json;
  const auto is_shallow = [](int depth, Json::parse_event_t /*event*/, Json& /*parsed*/) { return depth <= kDeepest; };
  const Json json = Json::parse(body.begin(), body.end(), is_shallow, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  const auto partial = json.find("partialSuccess");
  if (partial == json.end() || !partial->is_object()) return 0;
  const auto rejected = partial->find("rejectedProfiles");
  if (rejected == partial->end()) return 0;
  if (rejected->is_number_unsigned()) return rejected->get<std::uint64_t>();
  if (!rejected->is_string()) return std::nullopt;
  const auto& text = rejected->get_ref<const std::string&>();
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

Verdict judge_success(Format format, const Answer& answer) {
  // It broke off, but its status had come: what was answered with 2xx is never sent again.
  const Verdict misunderstood{Verdict::Kind::kMisunderstood};
  if (!answer.fault.empty()) return misunderstood;
  const std::string type = api::media_type_of(answer.content_type);
  const bool is_protobuf =
      type == "application/proto" || type == "application/x-protobuf" || type == "application/protobuf";
  if (answer.body.empty()) return {type.starts_with("text/") ? misunderstood : Verdict{}};
  if (!is_protobuf && type != "application/json") return misunderstood;
  if (format == Format::kPyroscope) return {};
  const auto rejected = is_protobuf ? rejected_in_protobuf(answer.body) : rejected_in_json(answer.body);
  if (!rejected) return misunderstood;
  return *rejected == 0 ? Verdict{} : Verdict{Verdict::Kind::kPartly, *rejected};
}

}  // namespace

Verdict judge(Format format, const Answer& answer, WallTime now) {
  constexpr std::array<int, 5> kAgain{0, 429, 502, 503, 504};
  if (answer.status >= 200 && answer.status < 300) return judge_success(format, answer);
  if (std::find(kAgain.begin(), kAgain.end(), answer.status) == kAgain.end()) return {Verdict::Kind::kRefused};
  return {Verdict::Kind::kAgain, 0, parse_retry_after(answer.retry_after, now)};
}

std::int64_t Pauses::next_ns(double chance, std::optional<std::int64_t> asked_ns) {
  last_ns_ = std::clamp(2 * last_ns_, kShortestPauseNs, kLongestPauseNs);
  const auto varied = static_cast<std::int64_t>(static_cast<double>(last_ns_) * (0.75 + 0.5 * chance));
  return std::max(varied, asked_ns.value_or(0));
}

}  // namespace flamed::push
