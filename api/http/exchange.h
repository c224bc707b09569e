// SPDX-License-Identifier: Apache-2.0
//
// Request and Response: one exchange with a client, as plain values. What HTTP looks like on the wire is up to
// server.cc; what is answered is up to routes.cc, which needs no socket to be tested.
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
  std::optional<WallTime> asked{};  ///< when it came, where that is not now: it waited for what it asks for
  Peer peer{};
  // Headers that say from where and in whose name it was sent; empty where there was none.
  std::string host{};
  std::string origin{};
  std::string sec_fetch_site{};
  std::string sec_fetch_mode{};
  std::string sec_fetch_dest{};
  std::string authorization{};
};

/// Complete but for Content-Length and what concerns the connection. To HEAD the body is measured, not sent.
struct Response {
  int status = 200;
  std::string content_type;
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers{};
  /// The same question will most likely get the same answer: it gets an entity tag. Others are never kept.
  bool settled = false;
  Viewer viewer{};  ///< whose answer it is: the same question of another viewer has another
};

}  // namespace flamed::api
