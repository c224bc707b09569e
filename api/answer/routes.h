// SPDX-License-Identifier: Apache-2.0
//
// Router: answers requests by the table of routes. A plain function from Request to Response, without sockets.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "api/access/access.h"
#include "api/answer/answers.h"
#include "api/answer/notes.h"
#include "api/answer/push_reports.h"
#include "api/answer/shared_answers.h"
#include "api/http/assets.h"
#include "api/http/exchange.h"
#include "api/http/problem.h"
#include "api/http/request_target.h"
#include "api/http/viewer.h"
#include "api/mcp/mcp.h"
#include "api/question/parameters.h"
#include "api/question/question.h"
#include "api/question/route_table.h"
#include "api/sources.h"

namespace flamed::api {

/// A request that a route answers from the daemon's data.
struct PlannedQuestion {
  const RouteSpec* route;  ///< a row of the table
  Viewer viewer;           ///< the user that it is answered for
  Parameters parameters;
  Moments moments;
};

/// A call of Grafana's data source, see querier.h.
struct PlannedCall {
  Viewer viewer;
  WallTime now;
};

/// A message of an assistant, see mcp.h: its answer, or the call of a tool and the query that answers it.
struct PlannedToolCall {
  ToolCall call;
  PlannedQuestion question;
};
struct PlannedMessage {
  std::variant<Response, PlannedToolCall> reply;
};

/// What to do with a request: refuse it, send a file of the page, answer a query, a call, or a message.
using Plan = std::variant<Problem, const Asset*, PlannedQuestion, PlannedCall, PlannedMessage>;

/// Any number of threads. `sources` and `access` must outlive it.
class Router {
 public:
  Router(Sources& sources, const Access& access,
         std::function<std::int64_t(WallTime)> local_offset_s = system_local_offset_s);

  /// Parses the request, sets its time, and checks the client's rights. Called once for each request: the three
  /// functions below use the plan.
  [[nodiscard]] Plan plan(const Request& request) const;

  /// How long the answer must wait for its samples, from the request's arrival on; empty if it need not wait, or has
  /// waited already.
  [[nodiscard]] static std::optional<std::int64_t> wait_ns(const Request& request, const Plan& plan);

  /// A request that waits, and arrived then: begins what has to begin now. The answer, if it is refused.
  std::optional<Response> begin_wait(const Request& request, const Plan& plan, WallTime asked);

  /// All that the answer depends on, if it may be shared with others who send the same request. Empty for requests that
  /// are refused or open to everybody, and for conditional ones (If-None-Match).
  [[nodiscard]] static std::optional<SharedAnswers::Question> shareable(const Request& request, const Plan& plan);

  /// Every request gets an answer: exceptions become a problem with status 500. `clients` is the number of clients that
  /// get it, all with the same request.
  Response answer(const Request& request, const Plan& plan, std::uint64_t clients = 1);
  /// For a request that neither waits nor shares.
  Response handle(const Request& request) { return answer(request, plan(request)); }

  /// Counts an answer that was shared with so many more clients.
  void count(int status, std::uint64_t clients);

  /// The answer to a request that is refused before it can be read whole.
  Response refuse(const Problem& problem);

  /// Adds to the daemon's own /metrics. Call it before the first request.
  void also_tell(std::function<void(std::vector<Metric>&)> figures) { figures_ = std::move(figures); }

  /// Adds a component to /healthz, which it can't make fail. Call it before the first request.
  void also_check(std::function<Component()> component) { component_ = std::move(component); }

  /// Answers so far.
  [[nodiscard]] std::uint64_t answered() const;

  /// The BodyLimit of requests.
  static std::size_t most_body_bytes(std::string_view method, std::string_view target);

  /// All paths but the page's files and those of calls.
  static std::vector<std::string_view> paths();
  /// The parameters of a path; empty if there is no such path.
  static std::optional<std::span<const ParameterSpec>> parameters_of(std::string_view path);

 private:
  /// What a path leads to: a row of the table, a file of the page, or neither.
  struct Goal {
    const RouteSpec* route = nullptr;
    const Asset* file = nullptr;
  };
  [[nodiscard]] static Goal goal_of(std::string_view path);
  /// The viewer that the request is answered for, or why it is refused.
  [[nodiscard]] std::variant<Viewer, Problem> judge(const Request& request, const Goal& goal) const;
  [[nodiscard]] Plan plan_or_throw(const Request& request) const;
  [[nodiscard]] Plan plan_call(const Request& request) const;
  [[nodiscard]] Plan plan_message(const Request& request) const;
  /// `parameters` are those that the route takes with the request's method.
  [[nodiscard]] std::variant<PlannedQuestion, Problem> plan_question(const RouteSpec& route,
                                                                     std::span<const ParameterSpec> parameters,
                                                                     std::span<const QueryItem> query,
                                                                     const Viewer& viewer,
                                                                     const Request& request) const;

  Response answer_plan(const Request& request, const Plan& plan);
  Response answer_question(const PlannedQuestion& question, const Request& request);
  Response marks(const AnswerContext& context, const Viewer& viewer, const Request& request);
  Response push(const Request& request);
  Response finish(Response response, const Request* request, std::uint64_t clients);
  /// In whole milliseconds, as in answers: a query for an answer's window gets the same samples.
  [[nodiscard]] WallTime now() const;

  [[nodiscard]] Health health() const;
  Response healthz();
  Response readyz();
  Response metrics();
  Response version();

  Sources& sources_;
  const Access& access_;
  const std::function<std::int64_t(WallTime)> local_offset_s_;
  std::function<void(std::vector<Metric>&)> figures_;
  std::function<Component()> component_;
  Notes notes_;
  PushReports push_reports_;
  std::array<std::atomic<std::uint64_t>, 6> answered_by_class_{};  ///< index: status / 100
};

}  // namespace flamed::api
