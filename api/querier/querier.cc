// SPDX-License-Identifier: Apache-2.0
#include "api/querier/querier.h"

#include <array>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include "api/http/response.h"
#include "api/querier/call_request.h"
#include "api/querier/calls.h"
#include "api/text/gzip.h"
#include "api/text/header_line.h"
#include "api/text/json_writer.h"
#include "api/text/utf8.h"
#include "base/host.h"

namespace flamed::api {
namespace {

constexpr std::string_view kService = "/querier.v1.QuerierService/";
constexpr std::string_view kProtobufType = "application/proto";
constexpr std::string_view kJsonType = "application/json";

std::optional<CallMethod> method_of(std::string_view target) {
  target = target.substr(0, target.find('?'));
  return find_call_method(target.substr(kService.size()));
}

std::optional<CallEncoding> encoding_of(const Request& request) {
  const std::string type = media_type_of(request.content_type);
  if (type == kProtobufType) return CallEncoding::kProtobuf;
  return type == kJsonType ? std::optional(CallEncoding::kJson) : std::nullopt;
}

bool is_plain(const Request& request) {
  return request.content_encoding.empty() || request.content_encoding == "identity";
}

/// The body as it was before the client packed it.
std::variant<std::string, Problem> unpack(const Request& request) {
  if (is_plain(request)) return request.body;
  auto body =
      gunzip({reinterpret_cast<const unsigned char*>(request.body.data()), request.body.size()}, kMostCallBytes);
  if (body) return std::move(*body);
  return bad_request("Can't unpack the body: " + body.error().message() + ".");
}

struct CallStatus {
  int problem;  ///< status of a Problem
  int status;   ///< of the answer
  std::string_view code;
};

/// Codes and their status in the Connect protocol, and for HTTP's own errors the code that comes closest.
CallStatus status_of(int problem) {
  constexpr std::array<CallStatus, 8> kStatuses{{
      {400, 400, "invalid_argument"},
      {401, 401, "unauthenticated"},
      {403, 403, "permission_denied"},
      {405, 405, "unimplemented"},
      {415, 415, "invalid_argument"},
      {422, 429, "resource_exhausted"},
      {501, 501, "unimplemented"},
      {503, 503, "unavailable"},
  }};
  for (const CallStatus& row : kStatuses) {
    if (row.problem == problem) return row;
  }
  return {problem, 500, "internal"};
}

}  // namespace

bool is_call(std::string_view target) { return target.starts_with(kService); }

std::optional<Problem> check_call(const Request& request) {
  if (request.method != "POST") return post_only(request.method, request.target);
  if (!method_of(request.target)) {
    return unimplemented("flamed does not have this call. It has those that Grafana's data source makes.");
  }
  if (!encoding_of(request)) return bad_content_type(request.content_type);
  if (!is_plain(request) && request.content_encoding != "gzip") {
    return unimplemented("The body is packed in a way that flamed does not know: send it plain or as gzip.");
  }
  return std::nullopt;
}

Response answer_call(const Request& request, Sources& sources, WallTime now, store::QueryBudget& budget) {
  auto body = unpack(request);
  if (const auto* problem = std::get_if<Problem>(&body)) return call_problem(*problem);
  const CallMethod method = method_of(request.target).value();
  const CallEncoding encoding = encoding_of(request).value();
  const auto decoded = decode_call(method, encoding, std::get<std::string>(body));
  if (const auto* problem = std::get_if<Problem>(&decoded)) return call_problem(*problem);
  auto answer = answer_call(method, encoding, std::get<CallRequest>(decoded),
                            CallContext{sources, now, repair_utf8(host_name()), budget});
  if (const auto* problem = std::get_if<Problem>(&answer)) return call_problem(*problem);
  const std::string_view type = encoding == CallEncoding::kProtobuf ? kProtobufType : kJsonType;
  return {200, std::string(type), std::get<std::string>(std::move(answer))};
}

Response call_problem(const Problem& problem) {
  const CallStatus status = status_of(problem.status);
  std::string body;
  JsonWriter(body).begin_object().key("code").string(status.code).key("message").string(problem.detail).end_object();
  Response response{status.status, std::string(kJsonType), std::move(body)};
  if (!problem.allow.empty()) response.headers.emplace_back("Allow", problem.allow);
  return response;
}

}  // namespace flamed::api
