// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <utility>

#include "api/answer/answer_common.h"
#include "api/http/response.h"
#include "api/render/render_timeline.h"
#include "store/query/heatmap.h"
#include "store/query/query.h"
#include "store/query/timeline.h"

namespace flamed::api {
namespace {

constexpr std::int64_t kUsualSteps = 300;
constexpr std::uint32_t kUsualRows = 50;

/// A round step, such that a window has at most kUsualSteps of them.
std::int64_t usual_step_ns(const store::WallWindow& window) {
  constexpr std::array<std::int64_t, 12> kSeconds{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600};
  const std::int64_t length_s = (window.to.ns - window.from.ns) / kNsPerSecond;
  const auto fits = [&](std::int64_t seconds) { return length_s / seconds <= kUsualSteps; };
  const auto found = std::find_if(kSeconds.begin(), kSeconds.end(), fits);
  return (found == kSeconds.end() ? (length_s / kUsualSteps / 3600 + 1) * 3600 : *found) * kNsPerSecond;
}

}  // namespace

Response answer_timeline(const AnswerContext& context) {
  const auto question = prepare(context, by_process(context, context.parameters.duration_ns("step").value_or(0)));
  if (const auto* problem = std::get_if<Problem>(&question)) return problem_response(*problem);
  const auto& ready = std::get<ReadyQuestion>(question);
  store::WallWindow shown = ready.selection.window;
  if (const auto retained = store::retained_window(ready.snapshot)) {
    shown = {std::max(shown.from, retained->from), std::min(shown.to, retained->to)};
  }
  const std::int64_t step_ns = context.parameters.duration_ns("step").value_or(usual_step_ns(shown));
  const auto processes = static_cast<std::size_t>(context.parameters.integer("processes").value_or(0));
  store::QueryBudget budget = budget_for(context.sources);
  auto timeline = store::timeline(ready.snapshot, ready.selection, step_ns, processes, budget);
  if (!timeline) return error_response(timeline.error());
  add_coverage(*timeline, ready, context.sources);
  look_further(*timeline, timeline->quality.stored(), ready, context);
  return settle(context.parameters.choice("format") == "text"
                    ? text_response(render_timeline_text(*timeline))
                    : json_response(render_timeline(*timeline, context.sources.frequency_hz())),
                timeline->used, context);
}

Response answer_heatmap(const AnswerContext& context) {
  const auto question = prepare(context, kOnlyMinutes);
  if (const auto* problem = std::get_if<Problem>(&question)) return problem_response(*problem);
  const auto& ready = std::get<ReadyQuestion>(question);
  const auto rows = static_cast<std::uint32_t>(context.parameters.integer("rows").value_or(kUsualRows));
  store::QueryBudget budget = budget_for(context.sources);
  auto heatmap = store::heatmap(ready.snapshot, ready.selection, rows, budget);
  if (!heatmap) return error_response(heatmap.error());
  look_further(*heatmap, heatmap->total_samples, ready, context);
  return settle(json_response(render_heatmap(*heatmap, context.sources.frequency_hz())), heatmap->used, context);
}

}  // namespace flamed::api
