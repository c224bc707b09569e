// SPDX-License-Identifier: Apache-2.0
//
// The text of a route's answer as a tool's: cleaned, cut to what an assistant can take, and marked as data. Pure; any
// thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "api/http/exchange.h"
#include "api/mcp/tool_table.h"

namespace flamed::api {

/// Of the whole body of an answer to a tool's call.
inline constexpr std::size_t kMostToolAnswerBytes = 8192;

/// `answer` is of the tool's route. The text takes at most `most_bytes` as a JSON string. `mark` is what nobody who
/// chose a name can have known.
std::string tool_text(const ToolSpec& tool, const Response& answer, std::size_t skip, std::string_view mark,
                      std::size_t most_bytes);

}  // namespace flamed::api
