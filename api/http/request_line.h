// SPDX-License-Identifier: Apache-2.0
//
// RequestLine: the parsed first line of a request. Pure; any thread.
#pragma once

#include <optional>
#include <string_view>

namespace flamed::api {

struct RequestLine {
  std::string_view method;  ///< any token, not only methods that flamed knows
  std::string_view target;  ///< without blanks; RequestTarget checks the rest
  int minor_version = 1;    ///< of HTTP/1.0 or HTTP/1.1
};

/// The first line of `head`, or all of it if there is no line end. Exactly one blank on each side of the target (RFC
/// 9112, 3); empty for anything else. The parts point into `head`.
std::optional<RequestLine> parse_request_line(std::string_view head);

}  // namespace flamed::api
