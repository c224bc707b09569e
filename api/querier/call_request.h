// SPDX-License-Identifier: Apache-2.0
//
// CallRequest: what a call asks, decoded from protocol buffers or JSON (querier.proto and types.proto of Pyroscope).
// Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/http/problem.h"

namespace flamed::api {

enum class CallMethod : std::uint8_t {
  kProfileTypes,
  kLabelNames,
  kLabelValues,
  kSeries,
  kSelectSeries,
  kSelectMergeStacktraces,
  kGetProfileStats,
};
/// By the last part of the path.
std::optional<CallMethod> find_call_method(std::string_view name);

enum class CallEncoding : std::uint8_t { kProtobuf, kJson };

/// Fields that a method's request does not have keep their defaults.
struct CallRequest {
  std::string profile_type{};
  std::string selector{};
  std::vector<std::string> matchers{};  ///< selectors; a series must fit one of them
  std::string label{};                  ///< whose values are asked for
  std::vector<std::string> labels{};    ///< to group by, or to tell
  std::int64_t start_ms = 0;            ///< unix time; 0: not given
  std::int64_t end_ms = 0;
  double step_s = 0;
  std::int64_t limit = 0;  ///< of series; 0: not given
  std::int64_t max_nodes = 0;
};

inline constexpr std::size_t kMostCallSelectors = 5;
inline constexpr std::size_t kMostCallLabels = 20;

/// Fails with status 400 on what can't be decoded, and with 501 on requests for what flamed does not have, such as a
/// selection of spans: without it, the answer would be about something else. Unknown fields are skipped.
std::variant<CallRequest, Problem> decode_call(CallMethod method, CallEncoding encoding, std::string_view body);

}  // namespace flamed::api
