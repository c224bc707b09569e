// SPDX-License-Identifier: Apache-2.0
//
// Calls over HTTP: unary calls of the Connect protocol (https://connectrpc.com/docs/protocol). The request's body is a
// message in protocol buffers or JSON, and so is the answer's; an error is JSON: {"code": "invalid_argument",
// "message": "..."}.
//
// Any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "api/http/exchange.h"
#include "api/http/problem.h"
#include "api/sources.h"
#include "base/clock.h"
#include "store/model/query_budget.h"

namespace flamed::api {

/// Of a request, packed and unpacked.
inline constexpr std::size_t kMostCallBytes = std::size_t{1} << 20;

/// Whether the target of a request, as sent, is a call's.
bool is_call(std::string_view target);

/// What is wrong with a call before it is known who asks; empty: nothing.
std::optional<Problem> check_call(const Request& request);

/// `sources` are the viewer's.
Response answer_call(const Request& request, Sources& sources, WallTime now, store::QueryBudget& budget);

/// Refuses a call.
Response call_problem(const Problem& problem);

}  // namespace flamed::api
