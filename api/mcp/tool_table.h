// SPDX-License-Identifier: Apache-2.0
//
// The table of tools: which route answers a tool, with which parameters. Constant.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "api/http/problem.h"
#include "api/http/request_target.h"

namespace flamed::api {

/// What a tool's text consists of.
enum class ToolText : std::uint8_t {
  kLines,   ///< lines that say what they are about
  kStacks,  ///< lines "outermost;...;innermost count", shown with most samples first
  kBare,    ///< lines whose window is only in the headers of the answer
};

struct ToolSpec {
  using Preset = std::pair<std::string_view, std::string_view>;

  std::string_view name;
  std::string_view title;
  std::string_view description;
  std::string_view path;                      ///< of the route
  std::span<const Preset> fixed;              ///< parameters that the tool always has
  std::span<const Preset> usual;              ///< and those that it has where none is given
  std::span<const std::string_view> choices;  ///< parameters that a call may have, besides `skip`
  ToolText text = ToolText::kLines;
  std::string_view narrower;  ///< how to ask for what a cut answer left out
};

std::span<const ToolSpec> tool_table();
/// Null if there is no such tool.
const ToolSpec* find_tool(std::string_view name);

/// A call of a tool as a query of its route.
struct ToolQuery {
  std::vector<QueryItem> items;
  std::size_t skip = 0;  ///< lines of the answer that are not to be sent
};
std::variant<ToolQuery, Problem> query_of(const ToolSpec& tool, std::vector<QueryItem> arguments);

/// The members "tools": [...] of an answer, with the parameters' types from the table of routes.
std::string render_tools();

}  // namespace flamed::api
