// SPDX-License-Identifier: Apache-2.0
//
// The table of routes: paths, parameters, content types. The parser, the error texts and /openapi.json are made from
// it, so they can't contradict each other. Constant.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "api/question/parameters.h"

namespace flamed::api {

enum class RouteId : std::uint8_t {
  kProfile,
  kDiff,
  kProcesses,
  kThreads,
  kTimeline,
  kHeatmap,
  kMarks,
  kPprof,
  kOffCpu,
  kInstructions,
  kSource,
  kPush,
  kHealthz,
  kReadyz,
  kMetrics,
  kOpenApi,
  kVersion,
};

/// What POST does on a route that takes it, with a body of JSON.
struct PostSpec {
  std::string_view summary;
  std::size_t most_body_bytes;
  std::string_view schema;  ///< of the body, as JSON
};

struct RouteSpec {
  RouteId id;
  std::string_view path;
  std::string_view summary;
  std::span<const ParameterSpec> parameters;
  std::span<const std::string_view> content_types;  ///< of answers with status 200
  /// The answer says nothing about processes: everybody on the host may ask. Answers of other routes depend on the
  /// viewer.
  bool is_open = false;
  const PostSpec* post = nullptr;  ///< null: GET and HEAD alone
};

std::span<const RouteSpec> route_table();
/// Null if there is no such path.
const RouteSpec* find_route(std::string_view path);

/// The BodyLimit of the table.
std::size_t most_body_bytes(std::string_view method, std::string_view target);

}  // namespace flamed::api
