// SPDX-License-Identifier: Apache-2.0
#include "api/routes.h"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>
#include <variant>

#include "api/assets.h"
#include "api/gzip.h"
#include "api/json_writer.h"
#include "api/render_flamegraph.h"
#include "api/render_folded.h"
#include "api/render_health.h"
#include "api/render_metrics.h"
#include "api/render_processes.h"
#include "api/request_target.h"
#include "store/query.h"

namespace flamed::api {
namespace {

constexpr std::string_view kJson = "application/json";
/// Below this a compressed answer needs as many packets as a plain one.
constexpr std::size_t kWorthCompressing = 1024;

constexpr std::array<std::string_view, 2> kFormats{"flamegraph", "folded"};

constexpr ParameterSpec kFrom{
    "from",
    ParameterType::kTime,
    "start of the window; default 15 minutes before its end, or when flamed began if that was later",
    {}};
constexpr ParameterSpec kTo{"to", ParameterType::kTime, "end of the window, itself not in it; default now", {}};
constexpr ParameterSpec kPid{
    "pid", ParameterType::kProcess, "one process, as 1234 or 1234@567890; default the whole machine", {}};
constexpr ParameterSpec kFormat{"format", ParameterType::kChoice, "how the profile is written", kFormats};

constexpr std::array kProfileParameters{kPid, kFrom, kTo, kFormat};
constexpr std::array kProcessesParameters{kFrom, kTo};

Response json_response(std::string body, int status = 200) {
  return {status, std::string(kJson), std::move(body), {{"Cache-Control", "no-store"}}};
}

Response problem_response(const Problem& problem) {
  return {problem.status, std::string(kProblemContentType), render_problem(problem), {{"Cache-Control", "no-store"}}};
}

/// Folded text has no room for anything but stacks, so what to know before trusting them stands in headers.
Response folded_response(const store::Profile& profile) {
  const store::Quality& quality = profile.quality;
  return {200,
          "text/plain; charset=utf-8",
          render_folded(profile),
          {{"Cache-Control", "no-store"},
           {"Flamed-Window", format_time(profile.used.from) + "/" + format_time(profile.used.to)},
           {"Flamed-Quality", "samples=" + std::to_string(profile.nodes.front().total_samples) +
                                  ", truncated=" + std::to_string(quality.truncated_total()) +
                                  ", lost=" + std::to_string(quality.lost_total())}}};
}

std::string describe(const store::ProcessSelector& process) {
  std::string text = "process " + std::to_string(process.pid);
  if (process.start_ticks) text += "@" + std::to_string(*process.start_ticks);
  return text;
}

/// The page and its files are stored compressed, so they are only ever decompressed.
Response asset_response(const Asset& asset, bool gzip_accepted) {
  Response response;
  response.content_type = asset.content_type;
  // The page names its files by their content's hash, so only the page itself must be asked for again.
  response.headers.emplace_back("Cache-Control",
                                asset.path == "/" ? "no-cache" : "public, max-age=31536000, immutable");
  response.headers.emplace_back("Vary", "Accept-Encoding");
  if (gzip_accepted) {
    response.body.assign(asset.gzip.begin(), asset.gzip.end());
    response.headers.emplace_back("Content-Encoding", "gzip");
    return response;
  }
  auto text = gunzip(asset.gzip);
  if (!text) return problem_response(internal_error(text.error().message()));
  response.body = std::move(*text);
  return response;
}

/// The window as the query gives it, or what is wrong with it. Who gives no start asks for what there is of the usual
/// one: of a daemon that has only just started, not for the time before.
std::variant<store::WallWindow, Problem> window_of(const Parameters& parameters, WallTime now,
                                                   const store::Snapshot& snapshot) {
  auto window = resolve_window(parameters.time("from"), parameters.time("to"), now);
  if (!window) return bad_parameter("from", window.error().message());
  if (!parameters.time("from")) {
    const auto retained = store::retained_window(snapshot);
    if (retained && retained->from < window->to) window->from = std::max(window->from, retained->from);
  }
  return *window;
}

}  // namespace

struct Router::Route {
  std::string_view path;
  std::span<const ParameterSpec> parameters;
  Response (Router::*handler)(const Parameters&);
};

std::span<const Router::Route> Router::table() {
  static constexpr std::array<Route, 6> kRoutes{{
      {"/profile", kProfileParameters, &Router::profile},
      {"/processes", kProcessesParameters, &Router::processes},
      {"/healthz", {}, &Router::healthz},
      {"/readyz", {}, &Router::readyz},
      {"/metrics", {}, &Router::metrics},
      {"/version", {}, &Router::version},
  }};
  return kRoutes;
}

Router::Router(Sources& sources, std::function<std::int64_t(WallTime)> local_offset_s)
    : sources_(sources), local_offset_s_(std::move(local_offset_s)) {}

Response Router::handle(const Request& request) {
  try {
    return finish(dispatch(request), &request);
  } catch (const std::exception& exception) {
    return refuse(internal_error(exception.what()));
  } catch (...) {
    return refuse(internal_error("unknown exception"));
  }
}

Response Router::refuse(const Problem& problem) { return finish(problem_response(problem), nullptr); }

std::uint64_t Router::answered() const {
  std::uint64_t sum = 0;
  for (const auto& count : answered_by_class_) sum += count.load(std::memory_order_relaxed);
  return sum;
}

std::vector<std::string_view> Router::paths() {
  std::vector<std::string_view> paths{"/"};
  for (const Route& route : table()) paths.push_back(route.path);
  return paths;
}

std::optional<std::span<const ParameterSpec>> Router::parameters_of(std::string_view path) {
  for (const Route& route : table()) {
    if (route.path == path) return route.parameters;
  }
  return std::nullopt;
}

Response Router::dispatch(const Request& request) {
  if (request.has_body) return problem_response(body_refused());
  const auto target = parse_request_target(request.target);
  if (!target) return problem_response(bad_request(target.error().message()));

  const auto route_table = table();
  const auto route = std::find_if(route_table.begin(), route_table.end(),
                                  [&](const Route& candidate) { return candidate.path == target->path; });
  const auto files = assets();
  const auto file =
      std::find_if(files.begin(), files.end(), [&](const Asset& candidate) { return candidate.path == target->path; });
  if (route == route_table.end() && file == files.end()) return problem_response(unknown_path(target->path, paths()));

  if (request.method != "GET" && request.method != "HEAD") {
    Response response = problem_response(method_not_allowed(request.method, target->path));
    response.headers.emplace_back("Allow", "GET, HEAD");
    return response;
  }
  // The page keeps its state in the query, so any query is right there.
  if (file != files.end()) return asset_response(*file, accepts_gzip(request.accept_encoding));

  const auto parameters = Parameters::parse(route->parameters, target->query, time_context());
  if (const auto* problem = std::get_if<Problem>(&parameters)) return problem_response(*problem);
  return (this->*route->handler)(std::get<Parameters>(parameters));
}

/// What all answers have in common.
Response Router::finish(Response response, const Request* request) {
  response.headers.emplace_back("X-Content-Type-Options", "nosniff");
  response.headers.emplace_back(
      "Content-Security-Policy",
      "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'");
  response.headers.emplace_back("Referrer-Policy", "no-referrer");
  response.headers.emplace_back("Cross-Origin-Resource-Policy", "same-origin");
  const bool encoded = std::any_of(response.headers.begin(), response.headers.end(),
                                   [](const auto& header) { return header.first == "Content-Encoding"; });
  if (!encoded && request != nullptr && response.body.size() >= kWorthCompressing) {
    response.headers.emplace_back("Vary", "Accept-Encoding");
    if (accepts_gzip(request->accept_encoding)) {
      if (auto compressed = gzip(response.body)) {
        response.body = std::move(*compressed);
        response.headers.emplace_back("Content-Encoding", "gzip");
      }
    }
  }
  const auto status_class = static_cast<std::size_t>(response.status) / 100;
  answered_by_class_[std::min(status_class, answered_by_class_.size() - 1)].fetch_add(1, std::memory_order_relaxed);
  return response;
}

/// Told by its start, a process that no sample names cannot be told from an earlier one with its pid.
bool Router::is_running(const store::ProcessSelector& process) const {
  return !process.start_ticks && sources_.is_running(process.pid);
}

TimeContext Router::time_context() const { return {sources_.clock().wall(), local_offset_s_}; }

Response Router::profile(const Parameters& parameters) {
  const store::Snapshot snapshot = sources_.snapshot();
  const auto window = window_of(parameters, sources_.clock().wall(), snapshot);
  if (const auto* problem = std::get_if<Problem>(&window)) return problem_response(*problem);
  store::Selection selection{std::get<store::WallWindow>(window)};
  const std::optional<store::ProcessSelector> process = parameters.process("pid");
  if (process) selection.processes.push_back(*process);

  if (process && !store::knows(snapshot, *process) && !is_running(*process)) {
    return problem_response(unknown_process("flamed has never seen " + describe(*process) +
                                            ", or no longer remembers it. /processes lists who used CPU in a window; "
                                            "leave pid out for the whole machine."));
  }
  const store::Profile profile = store::build_profile(snapshot, selection, sources_.namer());
  if (parameters.choice("format") == "folded") {
    return folded_response(profile);
  }
  return json_response(render_flamegraph(profile, sources_.frequency_hz()));
}

Response Router::processes(const Parameters& parameters) {
  const store::Snapshot snapshot = sources_.snapshot();
  const auto window = window_of(parameters, sources_.clock().wall(), snapshot);
  if (const auto* problem = std::get_if<Problem>(&window)) return problem_response(*problem);
  const auto& asked = std::get<store::WallWindow>(window);
  return json_response(render_processes(asked, store::process_usage(snapshot, asked), sources_.frequency_hz()));
}

Response Router::healthz(const Parameters&) {
  const Health health = sources_.health();
  return json_response(render_health(health), health.healthy ? 200 : 503);
}

Response Router::readyz(const Parameters&) {
  const Health health = sources_.health();
  return json_response(render_readiness(health), health.ready ? 200 : 503);
}

Response Router::metrics(const Parameters&) {
  std::vector<Metric> metrics = sources_.metrics();
  Metric requests{
      "flamed_http_requests_total", "Answers of the API by class of status code.", Metric::Type::kCounter, {}};
  for (std::size_t i = 2; i < answered_by_class_.size(); ++i) {
    requests.values.push_back({{{"code", std::to_string(i) + "xx"}},
                               static_cast<double>(answered_by_class_[i].load(std::memory_order_relaxed))});
  }
  metrics.push_back(std::move(requests));
  return {200, std::string(kMetricsContentType), render_metrics(metrics), {{"Cache-Control", "no-store"}}};
}

Response Router::version(const Parameters&) {
  std::string body;
  JsonWriter json(body);
  json.begin_object().key("name").string("flamed").key("version").string(sources_.version()).end_object();
  body += '\n';
  return json_response(std::move(body));
}

}  // namespace flamed::api
