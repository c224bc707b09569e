// SPDX-License-Identifier: Apache-2.0
//
// Responses of the usual kinds. Pure; any thread.
#pragma once

#include <string>

#include "api/http/exchange.h"
#include "api/http/problem.h"
#include "base/result.h"

namespace flamed::api {

Response json_response(std::string body, int status = 200);
Response text_response(std::string body);
Response problem_response(const Problem& problem);

/// For an error of the store or a renderer, by its code: E2BIG and ETIMEDOUT, the query costs too much; ENODATA,
/// samples are not kept one by one for that window; anything else, a fault of flamed.
Response error_response(const Error& error);

}  // namespace flamed::api
