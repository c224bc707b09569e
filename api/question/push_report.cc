// SPDX-License-Identifier: Apache-2.0
#include "api/question/push_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

namespace flamed::api {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kLargest = std::int64_t{1} << 53;
constexpr std::int64_t kLongestIntervalMs = 3'600'000;
constexpr std::int64_t kLargestStatus = 999;

Problem malformed(const std::string& what) {
  return bad_push_report("The report of flamed-push can't be used: " + what + ".");
}

constexpr std::array<std::pair<const char*, std::uint64_t PushStream::*>, 5> kCounters{{
    {"requests", &PushStream::requests},
    {"bytes", &PushStream::bytes},
    {"resent", &PushStream::resent},
    {"samples", &PushStream::samples},
    {"rejected", &PushStream::rejected},
}};

/// A whole number from 0 to `most`.
std::optional<std::int64_t> number_in(const Json& object, const char* key, std::int64_t most = kLargest) {
  const auto value = object.find(key);
  if (value == object.end() || !value->is_number_unsigned()) return std::nullopt;
  const auto number = value->get<std::uint64_t>();
  return number <= static_cast<std::uint64_t>(most) ? std::optional(static_cast<std::int64_t>(number)) : std::nullopt;
}

std::string text_in(const Json& object, const char* key) {
  const auto value = object.find(key);
  return value != object.end() && value->is_string() ? value->get<std::string>() : std::string();
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kMostReceiverNameBytes && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  });
}

std::optional<PushStream> stream_of(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  PushStream stream;
  stream.receiver = text_in(json, "name");
  stream.measure = text_in(json, "measure");
  if (!is_name(stream.receiver) || (stream.measure != "cpu" && stream.measure != "wait")) return std::nullopt;
  const auto* const outcome = std::find(kPushOutcomes.begin(), kPushOutcomes.end(), text_in(json, "outcome"));
  if (outcome == kPushOutcomes.end()) return std::nullopt;
  stream.outcome = static_cast<PushOutcome>(outcome - kPushOutcomes.begin());
  const auto status = number_in(json, "status", kLargestStatus);
  const auto until_ms = number_in(json, "until_ms", kLargest / 1024);
  if (!status || !until_ms) return std::nullopt;
  stream.status = static_cast<int>(*status);
  stream.until = WallTime{*until_ms * kNsPerMs};
  for (const auto& [key, member] : kCounters) {
    const auto number = number_in(json, key);
    if (!number) return std::nullopt;
    stream.*member = static_cast<std::uint64_t>(*number);
  }
  const auto dropped = json.find("dropped");
  if (dropped == json.end() || !dropped->is_array() || dropped->size() != kPushDrops.size()) return std::nullopt;
  for (std::size_t i = 0; i < kPushDrops.size(); ++i) {
    if (!(*dropped)[i].is_number_unsigned()) return std::nullopt;
    stream.dropped[i] = std::min((*dropped)[i].get<std::uint64_t>(), static_cast<std::uint64_t>(kLargest));
  }
  return stream;
}

}  // namespace

std::variant<PushReport, Problem> parse_push_report(std::string_view body) {
  constexpr int kDeepest = 4;
  const auto is_shallow = [](int depth, Json::parse_event_t /*event*/, Json& /*parsed*/) { return depth <= kDeepest; };
  const Json json = Json::parse(body.begin(), body.end(), is_shallow, /*allow_exceptions=*/false);
  if (!json.is_object()) return malformed("it is not a JSON object");
  PushReport report;
  const auto interval_ms = number_in(json, "interval_ms", kLongestIntervalMs);
  const auto cpu_ns = number_in(json, "cpu_ns");
  if (!interval_ms || !cpu_ns) return malformed("interval_ms or cpu_ns is missing or out of range");
  report.interval_ms = *interval_ms;
  report.cpu_ns = *cpu_ns;
  const auto receivers = json.find("receivers");
  if (receivers == json.end() || !receivers->is_array() || receivers->size() > kMostPushStreams) {
    return malformed("receivers is not a list of at most " + std::to_string(kMostPushStreams));
  }
  for (const Json& row : *receivers) {
    std::optional<PushStream> stream = stream_of(row);
    if (!stream) return malformed("a receiver lacks a member, or has one out of range");
    report.streams.push_back(std::move(*stream));
  }
  return report;
}

}  // namespace flamed::api
