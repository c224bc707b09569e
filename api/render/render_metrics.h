// SPDX-License-Identifier: Apache-2.0
//
// Metrics in the Prometheus text format 0.0.4. Pure; any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "api/sources.h"

namespace flamed::api {

inline constexpr std::string_view kMetricsContentType = "text/plain; version=0.0.4; charset=utf-8";

std::string render_metrics(std::span<const Metric> metrics);

}  // namespace flamed::api
