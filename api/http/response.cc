// SPDX-License-Identifier: Apache-2.0
#include "api/http/response.h"

#include <cerrno>
#include <utility>

namespace flamed::api {

Response json_response(std::string body, int status) { return {status, "application/json", std::move(body)}; }

Response text_response(std::string body) { return {200, "text/plain; charset=utf-8", std::move(body)}; }

Response problem_response(const Problem& problem) {
  Response response{problem.status, std::string(kProblemContentType), render_problem(problem)};
  if (!problem.allow.empty()) response.headers.emplace_back("Allow", problem.allow);
  if (problem.status == 503) response.headers.emplace_back("Retry-After", "1");
  return response;
}

Response error_response(const Error& error) {
  switch (error.code()) {
    case E2BIG:
    case ETIMEDOUT:
      return problem_response(too_costly(error.message()));
    case ENODATA:
      return problem_response(no_single_samples(error.message()));
    default:
      return problem_response(internal_error(error.message()));
  }
}

}  // namespace flamed::api
