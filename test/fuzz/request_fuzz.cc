// SPDX-License-Identifier: Apache-2.0
//
// Any bytes from a client, through the whole gate: in pieces into the reader, one request after the other, each with
// its first line, headers, target, parameters and body.
//
// The first byte is the length of the pieces.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "api/http/problem.h"
#include "api/http/request_parser.h"
#include "api/http/request_reader.h"
#include "api/http/request_target.h"
#include "api/question/mark_request.h"
#include "api/question/parameters.h"
#include "api/question/route_table.h"
#include "api/text/gzip.h"

namespace {

using namespace flamed;

void require(bool condition) {
  if (!condition) std::abort();
}

/// Parses any path by the route that has parameters of every type, or by its own.
std::span<const api::ParameterSpec> parameters_of(std::string_view path) {
  for (const api::RouteSpec& route : api::route_table()) {
    if (route.path == path) return route.parameters;
  }
  return api::route_table().front().parameters;
}

void ask(std::string_view text) {
  const auto target = api::parse_request_target(text);
  if (!target) return;
  const api::TimeContext context{WallTime{1769868330 * kNsPerSecond}, [](WallTime) { return std::int64_t{0}; }};
  const auto parsed = api::Parameters::parse(parameters_of(target->path), target->query, context);
  if (const auto* problem = std::get_if<api::Problem>(&parsed)) {
    require(problem->status == 400 && !api::render_problem(*problem).empty());
  }
}

void set_mark(std::string_view body) {
  const auto parsed = api::parse_mark(body);
  if (const auto* problem = std::get_if<api::Problem>(&parsed)) {
    require(problem->status == 400 && !api::render_problem(*problem).empty());
    return;
  }
  const auto& mark = std::get<api::MarkRequest>(parsed);
  require(!mark.text.empty() && mark.text.size() <= api::kMostMarkBytes);
  require(mark.text.find_first_of("\r\n") == std::string::npos && mark.text.find('\0') == std::string::npos);
}

/// A request that the reader accepted.
void take(const api::RequestReader& reader) {
  const std::string_view head = reader.head();
  require(head.size() <= api::kMaxHeadBytes && head.ends_with("\r\n\r\n"));
  require(head.find('\0') == std::string_view::npos);
  const api::Request request = api::parse_request(head, {}).request;
  require(!request.method.empty() && !request.target.empty());
  static_cast<void>(api::accepts_gzip(request.accept_encoding));
  ask(request.target);
  const std::size_t most = api::most_body_bytes(request.method, request.target);
  require(reader.body().size() <= most);
  if (most != 0) {
    require(!reader.has_body());
    set_mark(reader.body());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t piece_bytes = std::size_t{data[0]} + 1;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);

  api::RequestReader whole(api::most_body_bytes);
  whole.append(bytes);
  api::RequestReader pieces(api::most_body_bytes);
  for (std::size_t at = 0; at < bytes.size() && pieces.state() == api::HeadState::kIncomplete; at += piece_bytes) {
    pieces.append(bytes.substr(at, piece_bytes));
  }
  // The request is the same however it was split.
  require(whole.state() == pieces.state() && whole.fault() == pieces.fault());
  require(whole.has_body() == pieces.has_body());
  if (whole.state() == api::HeadState::kComplete) {
    require(whole.head() == pieces.head() && whole.body() == pieces.body());
  }

  while (whole.state() == api::HeadState::kComplete) {
    take(whole);
    whole.next();
  }
  require((whole.state() == api::HeadState::kMalformed) == !whole.fault().empty());
  require(whole.state() != api::HeadState::kIncomplete ||
          whole.head().size() <= api::kMaxHeadBytes + api::kMostMarkBodyBytes);
  // Most inputs are no head. Targets and bodies alone are useful inputs, too.
  ask(bytes);
  set_mark(bytes);
  return 0;
}
