// SPDX-License-Identifier: Apache-2.0
//
// The body of POST /marks. Pure; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "api/http/problem.h"
#include "base/clock.h"

namespace flamed::api {

inline constexpr std::size_t kMostMarkBodyBytes = 4096;
inline constexpr std::size_t kMostMarkBytes = 200;

struct MarkRequest {
  std::string text;                ///< 1 to kMostMarkBytes of UTF-8 without control characters
  std::optional<WallTime> time{};  ///< from 1970 to 2200; empty: now
};

/// {"text": "deploy 1.2.3", "time_ms": 1769868310000}, and nothing else.
std::variant<MarkRequest, Problem> parse_mark(std::string_view body);

}  // namespace flamed::api
