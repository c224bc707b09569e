// SPDX-License-Identifier: Apache-2.0
#include "api/answer/routes.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <utility>
#include <variant>

#include "api/access/viewer_sources.h"
#include "api/answer/answer_common.h"
#include "api/answer/answers.h"
#include "api/http/asset_response.h"
#include "api/http/assets.h"
#include "api/http/request_target.h"
#include "api/http/response.h"
#include "api/querier/querier.h"
#include "api/question/openapi.h"
#include "api/render/column_writer.h"
#include "api/render/render_health.h"
#include "api/render/render_metrics.h"
#include "api/text/gzip.h"
#include "api/text/header_line.h"
#include "api/text/json_writer.h"

namespace flamed::api {
namespace {

/// Below this a compressed answer needs as many packets as a plain one.
constexpr std::size_t kWorthCompressing = 1024;

/// Does the path take POST? An unreadable target does not.
bool takes_post(std::string_view target) {
  const auto parsed = parse_request_target(target);
  const RouteSpec* const route = parsed ? find_route(parsed->path) : nullptr;
  return route != nullptr && route->post != nullptr;
}

/// Binary columns are for clients in a hurry. Packing and unpacking 2.4 MB takes 45 ms, sending them to a client on the
/// same host 2 ms. Nor is a cached copy worth it: a browser that may keep one takes 15 ms longer.
bool is_cheaper_anew(const Response& response, const Request& request) {
  return response.content_type == kBinaryColumnsType && request.peer.transport != Peer::Transport::kRemote;
}

/// Of the uncompressed answer and its viewer: a weak tag, since the answer may be sent compressed. FNV-1a, 64 bits: a
/// user gains nothing if two of their own answers collide.
std::string entity_tag(std::string_view body, const Viewer& viewer) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  const auto add = [&](std::string_view bytes) {
    for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  };
  add(viewer.sees == Viewer::Sees::kEverything ? std::string("everything") : std::to_string(viewer.uid));
  add(body);
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "W/\"%016llx\"", static_cast<unsigned long long>(hash));
  return text.data();
}

}  // namespace

Router::Router(Sources& sources, const Access& access, std::function<std::int64_t(WallTime)> local_offset_s)
    : sources_(sources), access_(access), local_offset_s_(std::move(local_offset_s)) {}

Response Router::answer(const Request& request, const Plan& plan, std::uint64_t clients) {
  try {
    return finish(answer_plan(request, plan), &request, clients);
  } catch (const std::exception& exception) {
    return finish(problem_response(internal_error(exception.what())), nullptr, clients);
  } catch (...) {
    return finish(problem_response(internal_error("unknown exception")), nullptr, clients);
  }
}

Response Router::refuse(const Problem& problem) { return finish(problem_response(problem), nullptr, 1); }

std::uint64_t Router::answered() const {
  std::uint64_t sum = 0;
  for (const auto& count : answered_by_class_) sum += count.load(std::memory_order_relaxed);
  return sum;
}

std::size_t Router::most_body_bytes(std::string_view method, std::string_view target) {
  if (method == "POST" && is_call(target)) return kMostCallBytes;
  if (method == "POST" && is_mcp(target)) return kMostMessageBytes;
  return api::most_body_bytes(method, target);
}

std::vector<std::string_view> Router::paths() {
  std::vector<std::string_view> paths{"/"};
  for (const RouteSpec& route : route_table()) paths.push_back(route.path);
  return paths;
}

std::optional<std::span<const ParameterSpec>> Router::parameters_of(std::string_view path) {
  const RouteSpec* const route = find_route(path);
  if (route == nullptr) return std::nullopt;
  return route->parameters;
}

Router::Goal Router::goal_of(std::string_view path) {
  const auto files = assets();
  const auto file =
      std::find_if(files.begin(), files.end(), [&](const Asset& candidate) { return candidate.path == path; });
  return {find_route(path), file == files.end() ? nullptr : &*file};
}

std::variant<Viewer, Problem> Router::judge(const Request& request, const Goal& goal) const {
  const bool is_page = goal.file != nullptr && goal.file->content_type.starts_with("text/html");
  std::variant<Viewer, Problem> judged = access_.judge(request, is_page);
  if (const auto* viewer = std::get_if<Viewer>(&judged); viewer != nullptr && goal.route != nullptr) {
    if (goal.route->is_open) return judged;
    if (auto problem = check_viewer(*viewer)) return std::move(*problem);
  }
  return judged;
}

Plan Router::plan(const Request& request) const {
  try {
    return plan_or_throw(request);
  } catch (const std::exception& exception) {
    return internal_error(exception.what());
  } catch (...) {
    return internal_error("unknown exception");
  }
}

Plan Router::plan_or_throw(const Request& request) const {
  if (request.has_body) return body_refused();
  if (is_call(request.target)) return plan_call(request);
  if (is_mcp(request.target)) return plan_message(request);
  const bool is_post = request.method == "POST";
  if (request.method != "GET" && request.method != "HEAD") {
    const bool may_post = takes_post(request.target);
    if (!is_post || !may_post) return method_not_allowed(request.method, request.target, may_post);
  }
  const auto target = parse_request_target(request.target);
  if (!target) return bad_request(target.error().message());

  const Goal goal = goal_of(target->path);
  auto judged = judge(request, goal);
  if (auto* problem = std::get_if<Problem>(&judged)) return std::move(*problem);
  if (goal.route == nullptr && goal.file == nullptr) return unknown_path(target->path, paths());
  // The page keeps its state in the query, so any query is valid there.
  if (goal.file != nullptr) return goal.file;

  const auto& viewer = std::get<Viewer>(judged);
  if (is_post && viewer.sees != Viewer::Sees::kEverything) {
    return goal.route->id == RouteId::kPush ? may_not_report() : may_not_mark();
  }
  const auto parameters = is_post ? std::span<const ParameterSpec>() : goal.route->parameters;
  auto planned = plan_question(*goal.route, parameters, target->query, viewer, request);
  if (auto* problem = std::get_if<Problem>(&planned)) return std::move(*problem);
  return std::get<PlannedQuestion>(std::move(planned));
}

std::variant<PlannedQuestion, Problem> Router::plan_question(const RouteSpec& route,
                                                             std::span<const ParameterSpec> allowed,
                                                             std::span<const QueryItem> query, const Viewer& viewer,
                                                             const Request& request) const {
  const WallTime now = this->now();
  auto parameters = Parameters::parse(allowed, query, TimeContext{now, local_offset_s_});
  if (auto* problem = std::get_if<Problem>(&parameters)) return std::move(*problem);
  if (api::wait_ns(std::get<Parameters>(parameters)) && sources_.file()) {
    return bad_parameter("seconds",
                         "Nothing comes after the end of a file. Ask for the time before with from, such as "
                         "from=now-1h: now is the file's end.");
  }
  return PlannedQuestion{
      &route, viewer, std::get<Parameters>(std::move(parameters)), {request.asked.value_or(now), now}};
}

Plan Router::plan_call(const Request& request) const {
  auto judged = judge(request, {});
  if (auto* problem = std::get_if<Problem>(&judged)) return std::move(*problem);
  const auto& viewer = std::get<Viewer>(judged);
  if (auto problem = check_viewer(viewer)) return std::move(*problem);
  if (auto problem = check_call(request)) return std::move(*problem);
  return PlannedCall{viewer, now()};
}

Plan Router::plan_message(const Request& request) const {
  auto judged = judge(request, {});
  if (auto* problem = std::get_if<Problem>(&judged)) return std::move(*problem);
  const auto& viewer = std::get<Viewer>(judged);
  if (auto problem = check_viewer(viewer)) return std::move(*problem);
  if (auto problem = check_mcp(request)) return std::move(*problem);
  auto read = read_message(request, sources_.version());
  if (auto* response = std::get_if<Response>(&read)) return PlannedMessage{std::move(*response)};
  auto& call = std::get<ToolCall>(read);
  const RouteSpec& route = *find_route(call.tool->path);
  auto planned = plan_question(route, route.parameters, call.query.items, viewer, request);
  // An assistant can mend its arguments: what is wrong with them is the tool's answer.
  if (const auto* problem = std::get_if<Problem>(&planned)) {
    return PlannedMessage{tool_response(call, problem_response(*problem), sources_.version())};
  }
  return PlannedMessage{PlannedToolCall{std::move(call), std::get<PlannedQuestion>(std::move(planned))}};
}

std::optional<std::int64_t> Router::wait_ns(const Request& request, const Plan& plan) {
  const auto* question = std::get_if<PlannedQuestion>(&plan);
  if (question == nullptr || request.method != "GET" || request.asked) return std::nullopt;
  return api::wait_ns(question->parameters);
}

std::optional<Response> Router::begin_wait(const Request& request, const Plan& plan, WallTime asked) {
  const auto* question = std::get_if<PlannedQuestion>(&plan);
  if (question == nullptr || question->route->id != RouteId::kOffCpu) return std::nullopt;
  ViewerSources sources(sources_, question->viewer);
  try {
    const auto problem = api::begin_off_cpu({sources, question->parameters, {asked, asked}, request.accept});
    if (!problem) return std::nullopt;
    return finish(problem_response(*problem), &request, 1);
  } catch (const std::exception& exception) {
    return finish(problem_response(internal_error(exception.what())), nullptr, 1);
  }
}

std::optional<SharedAnswers::Question> Router::shareable(const Request& request, const Plan& plan) {
  const auto* question = std::get_if<PlannedQuestion>(&plan);
  if (question == nullptr || request.asked || !request.if_none_match.empty()) return std::nullopt;
  const RouteId id = question->route->id;
  // A new note is no new sample: an answer that is kept would lack it.
  if (question->route->is_open || id == RouteId::kPprof || id == RouteId::kOffCpu || id == RouteId::kMarks ||
      id == RouteId::kPush)
    return std::nullopt;
  return SharedAnswers::Question{key_of(request.peer),
                                 question->viewer,
                                 request.target,
                                 request.accept,
                                 accepts_gzip(request.accept_encoding),
                                 request.peer.transport == Peer::Transport::kRemote};
}

Response Router::answer_plan(const Request& request, const Plan& plan) {
  if (const auto* problem = std::get_if<Problem>(&plan)) {
    Response response = is_call(request.target) ? call_problem(*problem) : problem_response(*problem);
    if (problem->status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"flamed\"");
    return response;
  }
  if (const auto* file = std::get_if<const Asset*>(&plan)) return asset_response(**file, request.accept_encoding);
  if (const auto* call = std::get_if<PlannedCall>(&plan)) {
    ViewerSources sources(sources_, call->viewer);
    store::QueryBudget budget = budget_for(sources);
    return answer_call(request, sources, call->now, budget);
  }
  if (const auto* message = std::get_if<PlannedMessage>(&plan)) {
    if (const auto* response = std::get_if<Response>(&message->reply)) return *response;
    const auto& [call, question] = std::get<PlannedToolCall>(message->reply);
    // Tools only read, whatever the method of the message.
    return tool_response(call, answer_question(question, Request{}), sources_.version());
  }
  const auto& question = std::get<PlannedQuestion>(plan);
  Response response = answer_question(question, request);
  response.viewer = question.viewer;
  return response;
}

/// Adds the headers common to all answers.
Response Router::finish(Response response, const Request* request, std::uint64_t clients) {
  const auto has = [&](std::string_view name) {
    return std::any_of(response.headers.begin(), response.headers.end(),
                       [&](const auto& header) { return header.first == name; });
  };
  response.headers.emplace_back("X-Content-Type-Options", "nosniff");
  if (!has("Content-Security-Policy")) response.headers.emplace_back("Content-Security-Policy", kContentPolicy);
  response.headers.emplace_back("Referrer-Policy", "no-referrer");
  response.headers.emplace_back("Cross-Origin-Resource-Policy", "same-origin");
  response.headers.emplace_back("Cross-Origin-Opener-Policy", "same-origin");
  const bool is_cheap = request != nullptr && is_cheaper_anew(response, *request);
  if (response.settled && response.status == 200 && !is_cheap) {
    // Cached, but revalidated before each use: names may have been found since, or samples dropped.
    response.headers.emplace_back("Cache-Control", "private, no-cache");
    response.headers.emplace_back("Vary", "Accept, Accept-Encoding, Authorization");
    const std::string tag = entity_tag(response.body, response.viewer);
    response.headers.emplace_back("ETag", tag);
    if (request != nullptr && request->if_none_match.find(tag) != std::string::npos) {
      response.status = 304;
      response.body.clear();
    }
  } else if (!has("Cache-Control")) {
    response.headers.emplace_back("Cache-Control", "no-store");
  }
  const bool is_packed = response.content_type == "application/octet-stream";
  if (!has("Content-Encoding") && !is_packed && !is_cheap && request != nullptr &&
      response.body.size() >= kWorthCompressing) {
    if (!has("Vary")) response.headers.emplace_back("Vary", "Accept-Encoding");
    if (accepts_gzip(request->accept_encoding)) {
      if (auto compressed = gzip(response.body)) {
        response.body = std::move(*compressed);
        response.headers.emplace_back("Content-Encoding", "gzip");
      }
    }
  }
  count(response.status, clients);
  return response;
}

void Router::count(int status, std::uint64_t clients) {
  const auto status_class = static_cast<std::size_t>(status) / 100;
  answered_by_class_[std::min(status_class, answered_by_class_.size() - 1)].fetch_add(clients,
                                                                                      std::memory_order_relaxed);
}

WallTime Router::now() const {
  const std::int64_t ns = sources_.clock().wall().ns;
  return {ns - ns % kNsPerMs};
}

Response Router::answer_question(const PlannedQuestion& question, const Request& request) {
  ViewerSources sources(sources_, question.viewer);
  const AnswerContext context{sources, question.parameters, question.moments, request.accept};
  switch (question.route->id) {
    case RouteId::kProfile:
      return answer_profile(context);
    case RouteId::kDiff:
      return answer_diff(context);
    case RouteId::kProcesses:
      return answer_processes(context);
    case RouteId::kThreads:
      return answer_threads(context);
    case RouteId::kTimeline:
      return answer_timeline(context);
    case RouteId::kHeatmap:
      return answer_heatmap(context);
    case RouteId::kMarks:
      return marks(context, question.viewer, request);
    case RouteId::kPprof:
      return answer_pprof(context);
    case RouteId::kOffCpu:
      return request.asked ? answer_off_cpu(context) : problem_response(off_cpu_ended());
    case RouteId::kInstructions:
      return answer_instructions(context);
    case RouteId::kSource:
      return answer_source(context);
    case RouteId::kPush:
      return push(request);
    case RouteId::kHealthz:
      return healthz();
    case RouteId::kReadyz:
      return readyz();
    case RouteId::kMetrics:
      return metrics();
    case RouteId::kOpenApi:
      return json_response(render_openapi(sources_.version()));
    case RouteId::kVersion:
      return version();
  }
  std::abort();
}

Response Router::marks(const AnswerContext& context, const Viewer& viewer, const Request& request) {
  if (request.method == "POST") return set_mark(context, request, notes_);
  // Their authors see everything, and may write about anything that they see.
  return answer_marks(context, viewer.sees == Viewer::Sees::kEverything ? &notes_ : nullptr);
}

Response Router::push(const Request& request) {
  if (request.method != "POST") return json_response(push_reports_.render());
  if (media_type_of(request.content_type) != "application/json")
    return problem_response(not_json(request.content_type));
  auto report = parse_push_report(request.body);
  if (const auto* problem = std::get_if<Problem>(&report)) return problem_response(*problem);
  sources_.spend(push_reports_.take(std::get<PushReport>(std::move(report)), sources_.clock().monotonic()));
  return json_response(push_reports_.render(), 201);
}

Health Router::health() const {
  Health health = sources_.health();
  if (auto push = push_reports_.component(sources_.clock().monotonic())) health.components.push_back(std::move(*push));
  if (component_) health.components.push_back(component_());
  return health;
}

Response Router::healthz() {
  const Health health = this->health();
  return json_response(render_health(health, sources_.file()), health.healthy ? 200 : 503);
}

Response Router::readyz() {
  const Health health = this->health();
  return json_response(render_readiness(health), health.ready ? 200 : 503);
}

Response Router::metrics() {
  std::vector<Metric> metrics = sources_.metrics();
  Metric requests{
      "flamed_http_requests_total", "Answers of the API by class of status code.", Metric::Type::kCounter, {}};
  for (std::size_t i = 2; i < answered_by_class_.size(); ++i) {
    requests.values.push_back({{{"code", std::to_string(i) + "xx"}},
                               static_cast<double>(answered_by_class_[i].load(std::memory_order_relaxed))});
  }
  metrics.push_back(std::move(requests));
  push_reports_.append_metrics(metrics);
  if (figures_) figures_(metrics);
  return {200, std::string(kMetricsContentType), render_metrics(metrics)};
}

Response Router::version() {
  std::string body;
  JsonWriter json(body);
  json.begin_object().key("name").string("flamed").key("version").string(sources_.version()).end_object();
  body += '\n';
  return json_response(std::move(body));
}

}  // namespace flamed::api
