// SPDX-License-Identifier: Apache-2.0
//
// Request and Response: one exchange with a client, as plain values. server.cc has the wire format of HTTP; routes.cc
// makes the answers, and can be tested without a socket.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/http/peer.h"
#include "api/http/viewer.h"
#include "base/clock.h"

namespace flamed::api {

struct Request {
  std::string method = "GET";
  std::string target = "/";  ///< as sent: path and query, encoded
  std::string accept_encoding;
  bool has_body = false;
  std::string accept{};
  std::string if_none_match{};
  std::string content_type{};
  std::string content_encoding{};
  std::string body{};               ///< only on routes that take one
  std::optional<WallTime> asked{};  ///< when it arrived, if it has waited since for its samples; empty: now
  Peer peer{};
  // Headers about the sender; empty if there was none.
  std::string host{};
  std::string origin{};
  std::string sec_fetch_site{};
  std::string sec_fetch_mode{};
  std::string sec_fetch_dest{};
  std::string authorization{};
  // Headers of the Model Context Protocol.
  std::string mcp_protocol_version{};
  std::string mcp_method{};
  std::string mcp_name{};
};

/// Complete except Content-Length and headers of the connection. For HEAD the body is measured, not sent.
struct Response {
  int status = 200;
  std::string content_type;
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers{};
  /// The same request will most likely get the same answer: it gets an ETag. Others are never cached.
  bool settled = false;
  Viewer viewer{};  ///< the viewer of this answer: others get another answer to the same request
};

}  // namespace flamed::api
