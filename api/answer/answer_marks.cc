// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/answer/answer_common.h"
#include "api/http/response.h"
#include "api/question/mark_request.h"
#include "api/render/render_marks.h"
#include "api/text/header_line.h"
#include "api/text/time_expression.h"
#include "store/model/container_text.h"
#include "store/query/query.h"
#include "store/query/restarts.h"
#include "store/query/worst_waits.h"

namespace flamed::api {
namespace {

constexpr std::size_t kMostRestarts = 1000;
constexpr std::string_view kJson = "application/json";
constexpr std::size_t kMostPressed = 1000;
/// So many minutes have their waits told: a minute of a large host takes a millisecond.
constexpr std::size_t kMostExplained = 100;
constexpr std::size_t kMostWaits = 5;

/// "nginx.service", "container 3f5a9c0d1e2b"
std::string name_of(const store::Restart& restart) {
  if (store::split_container(restart.after.container).shown() != restart.what) return restart.what;
  constexpr std::size_t kIdLength = 64;
  constexpr std::size_t kShownLength = 12;
  return "container " + (restart.what.size() == kIdLength ? restart.what.substr(0, kShownLength) : restart.what);
}

/// "pressure: cpu 62 %, io 55 %"
std::string text_of(const PressedMinute& minute) {
  std::string text;
  for (std::size_t i = 0; i < kResources; ++i) {
    if (!minute.is_high[i]) continue;
    text += (text.empty() ? "pressure: " : ", ") + std::string(kResourceNames[i]) + " " +
            std::to_string(std::lround(100 * minute.shares[i])) + " %";
  }
  return text;
}

/// The newest minutes under pressure, and what threads waited for in the newest of these.
Result<std::vector<Mark>> pressure_marks(const AnswerContext& context, const store::Snapshot& snapshot,
                                         const store::Selection& selection) {
  std::vector<PressedMinute> minutes = context.sources.pressed_minutes(selection.window);
  if (minutes.size() > kMostPressed) minutes.erase(minutes.begin(), minutes.end() - kMostPressed);
  std::vector<Mark> marks;
  for (const PressedMinute& minute : minutes) {
    Mark mark{minute.start, text_of(minute)};
    mark.pressure.emplace(PressureMark{minute});
    marks.push_back(std::move(mark));
  }
  if (!store::knows_waits(snapshot)) return marks;
  const std::size_t first = minutes.size() - std::min(minutes.size(), kMostExplained);
  store::QueryBudget budget = budget_for(context.sources);
  auto waits = store::worst_waits(snapshot, selection, std::span(minutes).subspan(first), kMostWaits, budget);
  if (!waits) return waits.error();
  for (std::size_t i = 0; i < waits->size(); ++i) marks[first + i].pressure->waits = std::move((*waits)[i]);
  return marks;
}

Mark mark_of(const Note& note) { return {note.time, note.text, {}, true, note.uid}; }

}  // namespace

Response answer_marks(const AnswerContext& context, const Notes* notes) {
  const auto view = view_window(context);
  if (const auto* problem = std::get_if<Problem>(&view)) return problem_response(*problem);
  const store::Snapshot& snapshot = std::get<WindowView>(view).snapshot;
  const store::WallWindow& window = std::get<WindowView>(view).window;
  const store::Selection selection = selection_of(context.parameters, window);
  if (const auto problem = check_processes(selection, snapshot, context.sources)) return problem_response(*problem);

  std::vector<Mark> marks;
  const auto add = [&](Mark mark) {
    if (window.from <= mark.time && mark.time <= window.to) marks.push_back(std::move(mark));
  };
  add({context.sources.started(), "flamed started"});
  for (store::Restart& restart : store::restarts(snapshot, selection, kMostRestarts)) {
    const WallTime time = restart.after.started.value_or(window.from);
    std::string text = name_of(restart) + " restarted";
    add({time, std::move(text), std::move(restart)});
  }
  Result<std::vector<Mark>> pressed = pressure_marks(context, snapshot, selection);
  if (!pressed) return error_response(pressed.error());
  for (Mark& mark : *pressed) add(std::move(mark));
  if (notes != nullptr) {
    for (const Note& note : notes->in(window)) add(mark_of(note));
  }
  std::stable_sort(marks.begin(), marks.end(), [](const Mark& a, const Mark& b) { return a.time < b.time; });
  if (context.parameters.choice("format") == "text") {
    return text_response(render_marks_text(marks, window, store::only_user(snapshot)));
  }
  return json_response(render_marks(marks, window, store::only_user(snapshot)));
}

Response set_mark(const AnswerContext& context, const Request& request, Notes& notes) {
  if (media_type_of(request.content_type) != kJson) return problem_response(not_json(request.content_type));
  auto parsed = parse_mark(request.body);
  if (const auto* problem = std::get_if<Problem>(&parsed)) return problem_response(*problem);
  auto& mark = std::get<MarkRequest>(parsed);
  const WallTime now = context.moments.now;
  const WallTime time = mark.time.value_or(now);
  const auto retained = store::retained_window(context.sources.await_snapshot());
  const WallTime oldest = retained ? std::min(retained->from, now) : now;
  if (time > now || time < oldest) {
    return problem_response(bad_mark("\"time_ms\" is " + format_time(time) + ", and samples are kept from " +
                                     format_time(oldest) + " to " + format_time(now) + ": a mark must be among them."));
  }
  const Note note{time, std::move(mark.text), request.peer.uid};
  Response response = json_response(render_mark(mark_of(note)), 201);
  notes.add(note, oldest);
  return response;
}

}  // namespace flamed::api
