// SPDX-License-Identifier: Apache-2.0
//
// Files of the page as responses: in the smallest coding that the client accepts, with the headers for caching and for
// the content policy. Pure; any thread.
#pragma once

#include <string_view>

#include "api/http/assets.h"
#include "api/http/exchange.h"

namespace flamed::api {

/// Browsers may load and run only flamed's own files.
constexpr std::string_view kContentPolicy =
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'";

Response asset_response(const Asset& asset, std::string_view accept_encoding);

}  // namespace flamed::api
