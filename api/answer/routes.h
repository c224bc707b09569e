// SPDX-License-Identifier: Apache-2.0
//
// Router: what flamed answers, by the table of routes. A plain function from Request to Response, without sockets.
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
#include "api/answer/shared_answers.h"
#include "api/http/assets.h"
#include "api/http/exchange.h"
#include "api/http/problem.h"
#include "api/http/request_target.h"
#include "api/http/viewer.h"
#include "api/question/parameters.h"
#include "api/question/question.h"
#include "api/question/route_table.h"
#include "api/sources.h"

namespace flamed::api {

/// A request that is to be answered from what is stored or known.
struct PlannedQuestion {
  const RouteSpec* route;  ///< a row of the table
  Viewer viewer;           ///< with whose eyes it is answered
  Parameters parameters;
  Moments moments;
};

/// What becomes of a request: it is refused, gets a file of the page, or is a question.
using Plan = std::variant<Problem, const Asset*, PlannedQuestion>;

/// Any number of threads. `sources` and `access` must outlive it.
class Router {
 public:
  Router(Sources& sources, const Access& access,
         std::function<std::int64_t(WallTime)> local_offset_s = system_local_offset_s);

  /// Parses the request, dates it, and judges who asks. Once for each: the three functions below go by the plan.
  [[nodiscard]] Plan plan(const Request& request) const;

  /// How long the answer must wait, from the request's arrival on, for the samples that it asks for; empty where it
  /// need not or has waited already.
  [[nodiscard]] static std::optional<std::int64_t> wait_ns(const Request& request, const Plan& plan);

  /// What the answer depends on, where others who ask the same may be given it, too. Empty for what is refused or open
  /// to everybody, and for what a client has an answer to already: whether it is still right is known in the end.
  [[nodiscard]] static std::optional<SharedAnswers::Question> shareable(const Request& request, const Plan& plan);

  /// Every request gets an answer: exceptions of what it calls become a problem with status 500.
  /// `clients` is how many get it, all of whom sent the very same.
  Response answer(const Request& request, const Plan& plan, std::uint64_t clients = 1);
  /// For one who neither waits nor shares.
  Response handle(const Request& request) { return answer(request, plan(request)); }

  /// Of answers that were handed on to so many more clients.
  void count(int status, std::uint64_t clients);

  /// The answer to a request that is refused before it can be read whole.
  Response refuse(const Problem& problem);

  /// For /metrics, beside the daemon's own. Before the first request.
  void also_tell(std::function<void(std::vector<Metric>&)> figures) { figures_ = std::move(figures); }

  /// For /healthz, beside the daemon's own; it does not make it fail. Before the first request.
  void also_check(std::function<Component()> component) { component_ = std::move(component); }

  /// Answers so far.
  [[nodiscard]] std::uint64_t answered() const;

  /// Where flamed answers, without the page's files.
  static std::vector<std::string_view> paths();
  /// What a path takes; empty where there is no such path.
  static std::optional<std::span<const ParameterSpec>> parameters_of(std::string_view path);

 private:
  /// What a path leads to: a row of the table, a file of the page, or neither.
  struct Goal {
    const RouteSpec* route = nullptr;
    const Asset* file = nullptr;
  };
  [[nodiscard]] static Goal goal_of(std::string_view path);
  /// With whose eyes the request is answered, or why it is not.
  [[nodiscard]] std::variant<Viewer, Problem> judge(const Request& request, const Goal& goal) const;
  [[nodiscard]] Plan plan_or_throw(const Request& request) const;

  Response answer_plan(const Request& request, const Plan& plan);
  Response answer_question(const PlannedQuestion& question, const Request& request);
  Response finish(Response response, const Request* request, std::uint64_t clients);
  /// In whole milliseconds, as answers tell their windows: who asks again for such a window gets the same samples.
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
  std::array<std::atomic<std::uint64_t>, 6> answered_by_class_{};  ///< index: status / 100
};

}  // namespace flamed::api
