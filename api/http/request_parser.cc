// SPDX-License-Identifier: Apache-2.0
#include "api/http/request_parser.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "api/http/request_line.h"
#include "api/text/header_line.h"

namespace flamed::api {
namespace {

constexpr std::string_view kLineEnd = "\r\n";

constexpr std::array<std::pair<std::string_view, std::string Request::*>, 14> kFields{{
    {"accept", &Request::accept},
    {"accept-encoding", &Request::accept_encoding},
    {"authorization", &Request::authorization},
    {"content-encoding", &Request::content_encoding},
    {"content-type", &Request::content_type},
    {"host", &Request::host},
    {"if-none-match", &Request::if_none_match},
    {"mcp-method", &Request::mcp_method},
    {"mcp-name", &Request::mcp_name},
    {"mcp-protocol-version", &Request::mcp_protocol_version},
    {"origin", &Request::origin},
    {"sec-fetch-dest", &Request::sec_fetch_dest},
    {"sec-fetch-mode", &Request::sec_fetch_mode},
    {"sec-fetch-site", &Request::sec_fetch_site},
}};

void take(const HeaderLine& header, ParsedRequest& parsed) {
  if (is_named(header, "connection") && has_word(header.value, "close")) parsed.close = true;
  const auto field =
      std::find_if(kFields.begin(), kFields.end(), [&](const auto& known) { return is_named(header, known.first); });
  if (field == kFields.end()) return;
  std::string& value = parsed.request.*field->second;
  if (!value.empty()) value += ", ";
  value += header.value;
}

}  // namespace

ParsedRequest parse_request(std::string_view head, const Peer& peer) {
  ParsedRequest parsed;
  parsed.request.peer = peer;
  if (const auto line = parse_request_line(head)) {
    parsed.request.method = std::string(line->method);
    parsed.request.target = std::string(line->target);
    parsed.close = line->minor_version == 0;
  }
  head.remove_prefix(std::min(head.find(kLineEnd), head.size()));
  while (head.size() > kLineEnd.size()) {
    head.remove_prefix(kLineEnd.size());
    const std::size_t length = std::min(head.find(kLineEnd), head.size());
    if (const auto header = parse_header_line(head.substr(0, length))) take(*header, parsed);
    head.remove_prefix(length);
  }
  return parsed;
}

}  // namespace flamed::api
