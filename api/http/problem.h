// SPDX-License-Identifier: Apache-2.0
//
// Problem: an answer that says what went wrong and what to do about it (RFC 9457). A plain value; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace flamed::api {

struct Problem {
  int status = 500;
  std::string kind;       ///< short and stable, for programs: "bad-parameter"; shown as urn:flamed:problem:<kind>
  std::string title;      ///< the same for people, in a few words
  std::string detail;     ///< one or two sentences: what is wrong here and what to do
  std::string parameter;  ///< the parameter at fault, if there is one
  std::string allow{};    ///< with 405: the allowed methods
};

inline constexpr std::string_view kProblemContentType = "application/problem+json";

/// The body of the answer.
std::string render_problem(const Problem& problem);

Problem bad_parameter(std::string_view parameter, std::string detail);
Problem bad_request(std::string detail);
Problem malformed_request(std::string_view fault);
Problem unknown_process(std::string_view parameter, std::string detail);
Problem unknown_path(std::string_view path, const std::vector<std::string_view>& known_paths);
Problem too_costly(std::string detail);
Problem no_single_samples(std::string detail);
/// Waiting is not measured exactly: not now, or not on this machine.
Problem off_cpu_busy(std::string detail);
Problem off_cpu_unavailable(std::string detail);
/// There is nothing to answer with.
Problem off_cpu_ended();
Problem too_many_requests();
Problem too_many_clients();
/// For a request from another host without a token, or with a wrong one.
Problem token_needed();
Problem token_refused();
/// The token names a user whom this host does not have.
Problem token_without_user(std::string_view user);
/// The owner of the connection is unknown.
Problem unknown_user();
/// The data belong to another user than the connection.
Problem not_the_owner();
/// The request has a foreign host name, or comes from a page of another site.
Problem foreign_host(std::string_view host, std::string_view own_names);
Problem foreign_origin(std::string_view origin);
Problem method_not_allowed(std::string_view method, std::string_view path, bool takes_post = false);
/// A path that only takes POST.
Problem post_only(std::string_view method, std::string_view path);
Problem unimplemented(std::string detail);
/// The viewer may look, and may not set marks.
Problem may_not_mark();
Problem bad_mark(std::string detail);
/// The same of reports of flamed-push.
Problem may_not_report();
Problem bad_push_report(std::string detail);
Problem request_timeout();
Problem body_refused();
Problem length_required();
Problem body_too_large();
Problem not_json(std::string_view content_type);
/// A call's body is neither protocol buffers nor JSON.
Problem bad_content_type(std::string_view content_type);
Problem uri_too_long();
Problem headers_too_large();
Problem internal_error(std::string_view what);

}  // namespace flamed::api
