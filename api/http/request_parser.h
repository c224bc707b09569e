// SPDX-License-Identifier: Apache-2.0
//
// From the head of a request to a Request. Pure; any thread.
#pragma once

#include <string_view>

#include "api/http/exchange.h"
#include "api/http/peer.h"

namespace flamed::api {

struct ParsedRequest {
  Request request;
  bool close = false;  ///< the client wants no further request on the connection: HTTP/1.0, or "Connection: close"
};

/// A RequestReader has checked `head`. The values of a repeated header are joined by commas (RFC 9110, 5.3). Headers
/// that flamed does not read are left out.
ParsedRequest parse_request(std::string_view head, const Peer& peer);

}  // namespace flamed::api
