// SPDX-License-Identifier: Apache-2.0
//
// The table of what flamed answers: paths, what each takes, what comes back. The parser, the error texts and
// /openapi.json are made of it, so that none can say something else than the others. Constant.
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
  /// It says nothing of any process: everybody on the host may ask. All others are answered by what their viewer may
  /// see.
  bool is_open = false;
};

std::span<const RouteSpec> route_table();

}  // namespace flamed::api
