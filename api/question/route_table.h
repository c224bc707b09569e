// SPDX-License-Identifier: Apache-2.0
//
// The table of routes: paths, parameters, content types. The parser, the error texts and /openapi.json are made from
// it, so they can't contradict each other. Constant.
#pragma once

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
  kPprof,
  kHealthz,
  kReadyz,
  kMetrics,
  kOpenApi,
  kVersion,
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
};

std::span<const RouteSpec> route_table();

}  // namespace flamed::api
