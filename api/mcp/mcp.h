// SPDX-License-Identifier: Apache-2.0
//
// The Model Context Protocol (https://modelcontextprotocol.io/specification) over streamable HTTP: each message is a
// POST of its own and is answered by one JSON object. Two versions: 2026-07-28, in which each request says its version,
// and what its method and tool are in headers as well; and 2025-11-25, in which clients begin with `initialize`.
// Neither has sessions here, so no message depends on another.
//
// Any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "api/http/exchange.h"
#include "api/http/problem.h"
#include "api/mcp/message.h"
#include "api/mcp/tool_table.h"

namespace flamed::api {

/// Whether the target of a request, as sent, is the protocol's.
bool is_mcp(std::string_view target);

/// What is wrong with a request before its body is read; empty: nothing.
std::optional<Problem> check_mcp(const Request& request);

/// A call of a tool: its query is for the tool's route.
struct ToolCall {
  const ToolSpec* tool;
  ToolQuery query;
  std::string id;       ///< as JSON
  bool is_new = false;  ///< of version 2026-07-28
};

/// The answer to a request that check_mcp() took, or the call of a tool that is yet to be answered. `version` is
/// flamed's.
std::variant<Response, ToolCall> read_message(const Request& request, std::string_view version);

/// `answer` is that of the tool's route to the query.
Response tool_response(const ToolCall& call, const Response& answer, std::string_view version);

}  // namespace flamed::api
