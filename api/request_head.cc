// SPDX-License-Identifier: Apache-2.0
#include "api/request_head.h"

#include <algorithm>
#include <array>

namespace flamed::api {
namespace {

constexpr std::string_view kLineEnd = "\r\n";
constexpr std::size_t kMaxLeadingBytes = 2 * kLineEnd.size();

bool equals_ignoring_case(std::string_view text, std::string_view lower) {
  return std::equal(text.begin(), text.end(), lower.begin(), lower.end(),
                    [](char a, char b) { return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b; });
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::string_view name_of_header(std::string_view line) { return trim(line.substr(0, line.find(':'))); }

bool announces_body(std::string_view header_line) {
  const std::size_t colon = header_line.find(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view name = name_of_header(header_line);
  if (equals_ignoring_case(name, "transfer-encoding")) return true;
  return equals_ignoring_case(name, "content-length") && trim(header_line.substr(colon + 1)) != "0";
}

template <typename Visit>
void for_each_line(std::string_view text, Visit visit) {
  while (!text.empty()) {
    const std::size_t length = text.find(kLineEnd);
    visit(text.substr(0, length));
    if (length == std::string_view::npos) return;
    text.remove_prefix(length + kLineEnd.size());
  }
}

/// A line feed without its carriage return, or a NUL: two parsers could read such a head differently.
bool is_malformed(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\0') return true;
    if (text[i] == '\n' && (i == 0 || text[i - 1] != '\r')) return true;
  }
  return false;
}

}  // namespace

RequestHead scan_request_head(std::string_view received) {
  RequestHead head;
  while (received.substr(head.begin, kLineEnd.size()) == kLineEnd && head.begin < kMaxLeadingBytes) {
    head.begin += kLineEnd.size();
  }
  const std::size_t line_end = received.find(kLineEnd, head.begin);
  std::string_view request_line = received.substr(0, line_end).substr(head.begin);
  if (line_end == std::string_view::npos && !request_line.empty() && request_line.back() == '\r')
    request_line.remove_suffix(1);
  if (request_line.size() + kLineEnd.size() > kMaxRequestLineBytes) {
    head.state = HeadState::kUriTooLong;
    return head;
  }
  const std::size_t headers = line_end == std::string_view::npos ? received.size() : line_end + kLineEnd.size();
  // Where no header follows, the request line's own line end is the first half of the empty line.
  const std::size_t end =
      line_end == std::string_view::npos ? std::string_view::npos : received.find("\r\n\r\n", line_end);
  if (is_malformed(received.substr(0, end))) {
    head.state = HeadState::kMalformed;
    return head;
  }
  const std::size_t header_bytes =
      end == std::string_view::npos ? received.size() - headers : end + kLineEnd.size() - headers;
  if (header_bytes > kMaxHeaderBytes) {
    head.state = HeadState::kHeadersTooLarge;
    return head;
  }
  if (end == std::string_view::npos) return head;

  head.state = HeadState::kComplete;
  head.end = end + 2 * kLineEnd.size();
  for_each_line(received.substr(headers, header_bytes), [&](std::string_view line) {
    if (announces_body(line)) head.has_body = true;
  });
  return head;
}

std::string keep_known_headers(std::string_view head) {
  constexpr std::array<std::string_view, 8> kKnown{"host",          "connection", "accept-encoding", "accept",
                                                   "if-none-match", "origin",     "sec-fetch-site",  "authorization"};
  std::string kept;
  bool is_request_line = true;
  for_each_line(head, [&](std::string_view line) {
    const std::string_view name = name_of_header(line);
    const bool known = std::any_of(kKnown.begin(), kKnown.end(),
                                   [&](std::string_view candidate) { return equals_ignoring_case(name, candidate); });
    if (is_request_line || known || line.empty()) {
      kept += line;
      kept += kLineEnd;
    }
    is_request_line = false;
  });
  return kept;
}

}  // namespace flamed::api
