// SPDX-License-Identifier: Apache-2.0
//
// The API as an OpenAPI 3.1 document, generated from the table of routes. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

namespace flamed::api {

std::string render_openapi(std::string_view version);

}  // namespace flamed::api
