// SPDX-License-Identifier: Apache-2.0
//
// Request and Response: one exchange with a client, as plain values. What HTTP looks like on the wire is up to
// server.cc; what is answered is up to routes.cc, which needs no socket to be tested.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace flamed::api {

struct Request {
  std::string method = "GET";
  std::string target = "/";  ///< as sent: path and query, encoded
  std::string accept_encoding;
  bool has_body = false;
};

/// Complete but for Content-Length and what concerns the connection. To HEAD the body is measured, not sent.
struct Response {
  int status = 200;
  std::string content_type;
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
};

}  // namespace flamed::api
