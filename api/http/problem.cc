// SPDX-License-Identifier: Apache-2.0
#include "api/http/problem.h"

#include <cstdint>

#include "api/http/request_reader.h"
#include "api/text/json_writer.h"

namespace flamed::api {
namespace {

/// Only the beginning of long input is shown: an answer should not be larger than its request.
std::string excerpt(std::string_view text) {
  constexpr std::size_t kShown = 200;
  std::string out(text.substr(0, kShown));
  if (text.size() > kShown) out += "…";
  return out;
}

}  // namespace

std::string render_problem(const Problem& problem) {
  std::string body;
  JsonWriter json(body);
  json.begin_object();
  json.key("type").string("urn:flamed:problem:" + problem.kind);
  json.key("title").string(problem.title);
  json.key("status").number(std::int64_t{problem.status});
  json.key("detail").string(problem.detail);
  if (!problem.parameter.empty()) json.key("parameter").string(problem.parameter);
  json.end_object();
  body += '\n';
  return body;
}

Problem bad_parameter(std::string_view parameter, std::string detail) {
  return {400, "bad-parameter", "Bad parameter", std::move(detail), excerpt(parameter)};
}

Problem bad_request(std::string detail) { return {400, "bad-request", "Bad request", std::move(detail), {}}; }

Problem malformed_request(std::string_view fault) {
  return bad_request("This is not an HTTP/1.1 request that flamed understands: " + std::string(fault) +
                     ". Try: curl -i http://HOST:PORT/profile");
}

Problem unknown_process(std::string_view parameter, std::string detail) {
  return {404, "unknown-process", "Unknown process", std::move(detail), std::string(parameter)};
}

Problem unknown_path(std::string_view path, const std::vector<std::string_view>& known_paths) {
  std::string detail = "There is nothing at " + excerpt(path) + ". flamed answers at";
  std::string_view separator = " ";
  for (std::string_view known : known_paths) {
    detail += separator;
    detail += known;
    separator = ", ";
  }
  detail += '.';
  return {404, "unknown-path", "Nothing here", std::move(detail), {}};
}

Problem too_costly(std::string detail) {
  return {422, "too-costly", "The query costs too much", "No answer: " + std::move(detail) + ".", {}};
}

Problem no_single_samples(std::string detail) {
  return {422, "no-single-samples", "Samples are not kept one by one", "No answer: " + std::move(detail) + ".", {}};
}

Problem off_cpu_busy(std::string detail) {
  return {409, "off-cpu-busy", "Waiting is not measured now", "Not now: " + std::move(detail) + ".", {}};
}

Problem off_cpu_unavailable(std::string detail) {
  return {501,
          "off-cpu-unavailable",
          "Waiting can't be measured exactly",
          "Waiting is not measured exactly: " + std::move(detail) +
              ". /profile?measure=wait needs no program at the switch.",
          {}};
}

Problem off_cpu_ended() {
  return {409,
          "off-cpu-ended",
          "There is no measurement",
          "Nothing was measured for this request: only GET begins to measure.",
          {}};
}

Problem too_many_requests() {
  return {503,
          "too-many-requests",
          "Too many requests",
          "As many requests as possible wait to be answered. Try again in a second.",
          {}};
}

Problem too_many_clients() {
  return {503,
          "too-many-clients",
          "Too many connections",
          "As many connections as possible are open, and none of them can be closed for this one. Use fewer, or "
          "try again in a second.",
          {}};
}

Problem token_needed() {
  return {401,
          "token-needed",
          "Token needed",
          "flamed answers other hosts only with a token of its token_file: send the header Authorization: "
          "Bearer TOKEN, or ask on the host itself.",
          {}};
}

Problem token_refused() {
  return {401,
          "token-refused",
          "Token refused",
          "The token is not one of those in flamed's token_file, or that file cannot be used at the moment.",
          {}};
}

Problem token_without_user(std::string_view user) {
  return {401,
          "token-refused",
          "Token refused",
          "In flamed's token_file the token belongs to the user " + excerpt(user) + ", whom this host does not have.",
          {}};
}

Problem unknown_user() {
  return {403,
          "unknown-user",
          "Unknown user",
          "The kernel does not know who owns this connection, so only /healthz, /readyz, /metrics, /version and "
          "/openapi.json are open to it. Ask over flamed's Unix socket, or with a token.",
          {}};
}

Problem not_the_owner() {
  return {
      403,
      "not-the-owner",
      "Another user's file",
      "This flamed shows a file, to the user who opened it and to root. Open the file yourself: flamed --open FILE.",
      {}};
}

Problem foreign_host(std::string_view host, std::string_view own_names) {
  return {403,
          "foreign-host",
          "Not flamed's name",
          "The request's header Host is " + (host.empty() ? std::string("nobody") : "\"" + excerpt(host) + "\"") +
              ", which is not an address of flamed. Another site may be behind it (DNS rebinding). Here flamed is " +
              std::string(own_names) + ".",
          {}};
}

Problem foreign_origin(std::string_view origin) {
  return {403,
          "foreign-origin",
          "Request from another site",
          "A page of another site (" + excerpt(origin) +
              ") made the browser ask this. flamed answers its own page, and what is typed or pasted into the address "
              "bar.",
          {}};
}

Problem method_not_allowed(std::string_view method, std::string_view path, bool takes_post) {
  return {405,
          "method-not-allowed",
          "Method not allowed",
          excerpt(method) + " is not possible on " + excerpt(path) +
              (takes_post ? ". Use GET, HEAD or POST." : ". It is read-only: use GET or HEAD."),
          {},
          takes_post ? "GET, HEAD, POST" : "GET, HEAD"};
}

Problem post_only(std::string_view method, std::string_view path) {
  return {405,
          "method-not-allowed",
          "Method not allowed",
          excerpt(method) + " is not possible on " + excerpt(path) + ". Use POST.",
          {},
          "POST"};
}

Problem unimplemented(std::string detail) { return {501, "unimplemented", "Not implemented", std::move(detail), {}}; }

Problem may_not_mark() {
  return {403,
          "may-not-mark",
          "Not allowed to set marks",
          "A mark is shown to everybody who sees everything, so only they may set one: root, members of the group "
          "flamed, and clients with a token.",
          {}};
}

Problem bad_mark(std::string detail) { return {400, "bad-mark", "Bad mark", std::move(detail), {}}; }

Problem may_not_report() {
  return {
      403,
      "may-not-report",
      "Not allowed to report",
      "What flamed-push tells is shown to everybody, so only those who see everything may tell it: root, members of "
      "the group flamed, and clients with a token.",
      {}};
}

Problem bad_push_report(std::string detail) { return {400, "bad-report", "Bad report", std::move(detail), {}}; }

Problem request_timeout() {
  return {408,
          "request-timeout",
          "Request timeout",
          "The request did not arrive within 5 seconds. Send it in one piece.",
          {}};
}

Problem body_refused() {
  return {413,
          "body-refused",
          "Request body refused",
          "flamed takes no request body. Put parameters into the address, as in /profile?pid=1.",
          {}};
}

Problem length_required() {
  return {411,
          "length-required",
          "Length required",
          "The request has no Content-Length. Send the body in one piece with its length, not in chunks.",
          {}};
}

Problem body_too_large() {
  return {413, "body-too-large", "Request body too large", "The body is larger than this path takes. Shorten it.", {}};
}

Problem not_json(std::string_view content_type) {
  return {415,
          "not-json",
          "Not JSON",
          "The body must be sent with the header Content-Type: application/json, and this one came " +
              (content_type.empty() ? "without that header." : "as " + excerpt(content_type) + "."),
          {}};
}

Problem bad_content_type(std::string_view content_type) {
  return {
      415,
      "bad-content-type",
      "Unknown content type",
      "The body must be sent with the header Content-Type: application/proto or application/json, and this one came " +
          (content_type.empty() ? "without that header." : "as " + excerpt(content_type) + "."),
      {}};
}

Problem uri_too_long() {
  return {414,
          "uri-too-long",
          "Address too long",
          "The request line is longer than " + std::to_string(kMaxHeadBytes) + " bytes. Shorten the parameters.",
          {}};
}

Problem headers_too_large() {
  return {431,
          "headers-too-large",
          "Request headers too large",
          "Request line and headers are larger than " + std::to_string(kMaxHeadBytes) +
              " bytes. Send fewer headers: flamed needs no cookies.",
          {}};
}

Problem internal_error(std::string_view what) {
  return {500,
          "internal-error",
          "Internal error",
          "flamed could not answer: " + excerpt(what) +
              ". Sampling goes on. Try a shorter window; if it stays, please report it with the request and the log.",
          {}};
}

}  // namespace flamed::api
