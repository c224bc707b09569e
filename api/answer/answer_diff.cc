// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "api/answer/answer_common.h"
#include "api/http/response.h"
#include "api/render/render_diff.h"
#include "api/render/render_summary.h"
#include "api/render/render_top.h"
#include "store/query/diff.h"
#include "store/query/query.h"

namespace flamed::api {

Response answer_diff(const AnswerContext& context) {
  const store::Detail detail = by_stack(context);
  auto question = prepare(context, detail);
  if (const auto* problem = std::get_if<Problem>(&question)) return problem_response(*problem);
  auto& ready = std::get<ReadyQuestion>(question);
  const auto base_window = base_window_of(context.parameters, context.moments, ready.selection.window);
  if (const auto* problem = std::get_if<Problem>(&base_window)) return problem_response(*problem);
  store::Selection base = base_selection_of(context.parameters, std::get<store::WallWindow>(base_window));
  const std::array<store::WallWindow, 2> windows{base.window, ready.selection.window};
  ready.snapshot = measured_snapshot(context.parameters,
                                     context.sources.with_history(context.sources.await_snapshot(), windows, detail));
  if (const auto problem = narrow_to_part(base, ready, context, "base_")) return problem_response(*problem);
  if (const auto problem = check_processes(base, ready.snapshot, context.sources, "base_"))
    return problem_response(*problem);

  const std::string_view format = context.parameters.choice("format");
  if (const auto problem = check_format(context, format)) return problem_response(*problem);
  const bool is_table = format == "top" || format == "top-text" || format == "summary";
  // Both sides are complete: nodes pruned on one side only would look like a change. The comparison is pruned
  // afterwards.
  store::ProfileOptions options = options_of(context.parameters);
  store::DiffOptions diff_options;
  diff_options.normalise =
      context.parameters.choice("normalise") == "time" ? store::Normalise::kTime : store::Normalise::kSamples;
  const std::size_t rows = options.max_nodes != 0 ? options.max_nodes : kDefaultTopRows;
  if (!is_table) {
    diff_options.min_percent = std::exchange(options.min_percent, 0);
    diff_options.max_nodes = options.max_nodes != 0 ? options.max_nodes : kDefaultMaxNodes;
  }
  options.min_percent = 0;
  options.max_nodes = 0;
  // Without a group in the query, functions of all processes are merged: pids differ between the sides.
  if (!options.group) options.group = store::Group::kNone;

  store::QueryBudget budget = budget_for(context.sources);
  Result<store::ProfileDiff> built =
      store::build_diff(ready.snapshot, base, ready.selection, options, diff_options, context.sources.namer(), budget);
  if (!built) return error_response(built.error());
  store::ProfileDiff& diff = *built;
  add_coverage(diff.before, {ready.snapshot, base}, context.sources);
  add_coverage(diff.after, ready, context.sources);
  look_further(diff.before, diff.before.total_samples, {ready.snapshot, base}, context, options, "base_");
  look_further(diff.after, diff.after.total_samples, ready, context, options);

  const double frequency_hz = context.sources.frequency_hz();
  Response response;
  if (format == "folded") {
    response = text_response(render_diff_folded(diff));
  } else if (format == "top-text") {
    response = text_response(render_diff_top_text(diff, rows));
  } else if (format == "summary") {
    response = text_response(render_diff_summary(diff, summary_facts_of(ready, options, context.sources)));
  } else if (format == "top") {
    response = json_response(render_diff_top_json(diff, frequency_hz, rows));
  } else if (format == "columns") {
    response = json_response(render_diff_columns(diff, frequency_hz, ColumnForm::kJson));
  } else if (format == "columns-binary") {
    response = {200, std::string(kBinaryColumnsType), render_diff_columns(diff, frequency_hz, ColumnForm::kBinary)};
  } else {
    response = json_response(render_diff_flamegraph(diff, frequency_hz));
  }
  const store::WallWindow later{{}, std::max(diff.before.used.to, diff.after.used.to)};
  return settle(std::move(response), later, context);
}

}  // namespace flamed::api
