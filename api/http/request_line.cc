// SPDX-License-Identifier: Apache-2.0
#include "api/http/request_line.h"

#include <algorithm>

#include "api/text/header_line.h"

namespace flamed::api {

std::optional<RequestLine> parse_request_line(std::string_view head) {
  head = head.substr(0, head.find("\r\n"));
  const std::size_t method_end = head.find(' ');
  if (method_end == std::string_view::npos) return std::nullopt;
  RequestLine line;
  line.method = head.substr(0, method_end);
  head.remove_prefix(method_end + 1);
  const std::size_t target_end = head.find(' ');
  if (target_end == std::string_view::npos) return std::nullopt;
  line.target = head.substr(0, target_end);
  const std::string_view version = head.substr(target_end + 1);
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return std::nullopt;
  line.minor_version = version.back() - '0';
  if (!is_token(line.method) || line.target.empty()) return std::nullopt;
  if (line.target.find('\t') != std::string_view::npos) return std::nullopt;
  return line;
}

}  // namespace flamed::api
