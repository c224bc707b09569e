// SPDX-License-Identifier: Apache-2.0
//
// What an answer begins with on the wire: status line and headers. Pure; any thread.
#pragma once

#include <cstddef>
#include <string>

#include "api/http/exchange.h"

namespace flamed::api {

/// Up to and including the empty line (RFC 9112). Headers are sorted by name, so that equal answers are equal bytes.
/// `close`: the connection ends after this answer. A header whose value has a line break is left out.
std::string response_head(const Response& response, std::size_t body_bytes, bool close);

}  // namespace flamed::api
