// SPDX-License-Identifier: Apache-2.0
//
// Files of the page as responses: in the smallest form that the client takes, kept by browsers for as long as is right,
// and with what the browser may let them do. Pure; any thread.
#pragma once

#include <string_view>

#include "api/http/assets.h"
#include "api/http/exchange.h"

namespace flamed::api {

/// What a browser may load and run in anything that flamed answers: what comes from flamed, in files of its own.
constexpr std::string_view kContentPolicy =
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'";

Response asset_response(const Asset& asset, std::string_view accept_encoding);

}  // namespace flamed::api
