// SPDX-License-Identifier: Apache-2.0
//
// Any bytes that a client may send: the head of a request, its target, its parameters.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "api/gzip.h"
#include "api/parameters.h"
#include "api/problem.h"
#include "api/request_head.h"
#include "api/request_target.h"
#include "api/route_table.h"

namespace {

/// Whatever path is asked for, by the row that has parameters of every type, or by its own.
std::span<const flamed::api::ParameterSpec> parameters_of(std::string_view path) {
  for (const flamed::api::RouteSpec& route : flamed::api::route_table()) {
    if (route.path == path) return route.parameters;
  }
  return flamed::api::route_table().front().parameters;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace flamed;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);

  const api::RequestHead head = api::scan_request_head(bytes);
  if (head.state == api::HeadState::kComplete) {
    if (head.begin >= head.end || head.end > size) std::abort();
    const std::string kept = api::keep_known_headers(bytes.substr(head.begin, head.end - head.begin));
    if (!kept.ends_with("\r\n\r\n")) std::abort();
  }
  static_cast<void>(api::accepts_gzip(bytes));

  if (const auto target = api::parse_request_target(bytes)) {
    const api::TimeContext context{WallTime{1769868330 * kNsPerSecond}, [](WallTime) { return std::int64_t{0}; }};
    const auto parsed = api::Parameters::parse(parameters_of(target->path), target->query, context);
    if (const auto* problem = std::get_if<api::Problem>(&parsed)) {
      if (problem->status != 400 || api::render_problem(*problem).empty()) std::abort();
    }
  }
  return 0;
}
