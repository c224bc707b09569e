// SPDX-License-Identifier: Apache-2.0
#include "api/question/mark_request.h"

#include <cstdint>
#include <nlohmann/json.hpp>

#include "api/text/utf8.h"

namespace flamed::api {
namespace {

constexpr std::int64_t kLatestMs = 7'258'118'400'000;  // 2200-01-01

constexpr std::string_view kForm =
    "Send {\"text\": \"deploy 1.2.3\"}, if need be with \"time_ms\" in unix milliseconds.";

Problem malformed(std::string_view what) { return bad_mark(std::string(what) + " " + std::string(kForm)); }

/// C0 and C1, and DEL (Unicode category Cc).
bool has_control(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x20 || byte == 0x7F) return true;
    if (byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0) return true;
  }
  return false;
}

}  // namespace

std::variant<MarkRequest, Problem> parse_mark(std::string_view body) {
  const auto json = nlohmann::json::parse(body.begin(), body.end(), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return malformed("The body is not JSON.");
  if (!json.is_object()) return malformed("The body is not a JSON object.");
  MarkRequest mark;
  for (const auto& [key, value] : json.items()) {
    if (key == "text") {
      if (!value.is_string()) return malformed("\"text\" is not a string.");
      mark.text = value.get<std::string>();
    } else if (key == "time_ms") {
      if (!value.is_number_integer()) return malformed("\"time_ms\" is not a whole number.");
      // Beyond the range of int64_t it is unsigned, and negative once converted.
      const auto ms = value.get<std::int64_t>();
      if (ms < 0 || ms >= kLatestMs) return malformed("\"time_ms\" is not a time from 1970 to 2199.");
      mark.time = WallTime{ms * kNsPerMs};
    } else {
      return malformed("A mark has only \"text\" and \"time_ms\".");
    }
  }
  if (mark.text.empty()) return malformed("A mark needs a \"text\".");
  if (mark.text.size() > kMostMarkBytes) {
    return bad_mark("The text has " + std::to_string(mark.text.size()) + " bytes, and may have " +
                    std::to_string(kMostMarkBytes) + ".");
  }
  if (!is_utf8(mark.text) || has_control(mark.text)) {
    return bad_mark("The text has control characters or is not UTF-8. It is one line for people.");
  }
  return mark;
}

}  // namespace flamed::api
