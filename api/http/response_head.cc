// SPDX-License-Identifier: Apache-2.0
#include "api/http/response_head.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace flamed::api {
namespace {

/// The phrases of RFC 9110. A status that is not among these has none.
std::string_view phrase_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 411:
      return "Length Required";
    case 413:
      return "Payload Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 422:
      return "Unprocessable Entity";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    default:
      return "";
  }
}

}  // namespace

std::string response_head(const Response& response, std::size_t body_bytes, bool close) {
  const std::string length = std::to_string(body_bytes);
  std::vector<std::pair<std::string_view, std::string_view>> headers(response.headers.begin(), response.headers.end());
  headers.emplace_back("Accept-Ranges", "none");
  headers.emplace_back("Content-Length", length);
  headers.emplace_back("Content-Type", response.content_type);
  if (close) headers.emplace_back("Connection", "close");
  std::sort(headers.begin(), headers.end());
  std::string head = "HTTP/1.1 " + std::to_string(response.status) + " ";
  head.append(phrase_of(response.status)).append("\r\n");
  for (const auto& [name, value] : headers) {
    if (value.find_first_of("\r\n") != std::string_view::npos) continue;
    head.append(name).append(": ").append(value).append("\r\n");
  }
  return head.append("\r\n");
}

}  // namespace flamed::api
