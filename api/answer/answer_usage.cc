// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

#include "api/answer/answer_common.h"
#include "api/http/response.h"
#include "api/render/render_processes.h"
#include "api/render/render_threads.h"
#include "api/render/render_usage_text.h"
#include "store/query/usage.h"

namespace flamed::api {
namespace {

constexpr std::int64_t kOneStep = std::numeric_limits<std::int64_t>::max();

bool is_text(const AnswerContext& context) { return context.parameters.choice("format") == "text"; }

}  // namespace

Response answer_processes(const AnswerContext& context) {
  const auto question = prepare(context, by_process(context, kOneStep));
  if (const auto* problem = std::get_if<Problem>(&question)) return problem_response(*problem);
  const auto& ready = std::get<ReadyQuestion>(question);
  store::QueryBudget budget = budget_for(context.sources);
  if (const std::string_view group = context.parameters.choice("group"); group != "process") {
    auto usage = store::group_usage(ready.snapshot, ready.selection, group_of(group), budget);
    if (!usage) return error_response(usage.error());
    look_further(*usage, usage->total_samples, ready, context);
    return settle(is_text(context) ? text_response(render_process_groups_text(*usage))
                                   : json_response(render_process_groups(*usage, context.sources.frequency_hz())),
                  usage->used, context);
  }
  auto usage = store::process_usage(ready.snapshot, ready.selection, budget);
  if (!usage) return error_response(usage.error());
  look_further(*usage, usage->total_samples, ready, context);
  return settle(is_text(context) ? text_response(render_processes_text(*usage))
                                 : json_response(render_processes(*usage, context.sources.frequency_hz())),
                usage->used, context);
}

Response answer_threads(const AnswerContext& context) {
  const auto question = prepare(context, kOnlyMinutes);
  if (const auto* problem = std::get_if<Problem>(&question)) return problem_response(*problem);
  const auto& ready = std::get<ReadyQuestion>(question);
  store::QueryBudget budget = budget_for(context.sources);
  auto usage = store::thread_usage(ready.snapshot, ready.selection, budget);
  if (!usage) return error_response(usage.error());
  look_further(*usage, usage->total_samples, ready, context);
  return settle(is_text(context) ? text_response(render_threads_text(*usage))
                                 : json_response(render_threads(*usage, context.sources.frequency_hz())),
                usage->used, context);
}

}  // namespace flamed::api
