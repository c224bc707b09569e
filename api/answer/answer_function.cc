// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "api/answer/answer_common.h"
#include "api/http/response.h"
#include "api/question/question.h"
#include "api/render/render_instructions.h"
#include "api/render/render_source.h"
#include "store/query/function_places.h"

namespace flamed::api {
namespace {

/// What the parameters function and module say.
std::variant<store::FunctionName, Problem> function_of(const Parameters& parameters) {
  const std::vector<std::string> names = parameters.texts("function");
  if (names.size() != 1) {
    return bad_parameter("function",
                         "This is about one function. Say which by its whole name, as "
                         "function=compute; /profile?format=top-text lists the functions that were sampled.");
  }
  const std::vector<std::string> modules = parameters.texts("module");
  if (modules.size() > 1) {
    return bad_parameter("module", "A function has one module. Leave module out for the function in any.");
  }
  store::FunctionName function{names.front()};
  if (!modules.empty()) function.module = modules.front();
  return function;
}

/// Answers a query about the places in a function by what `render` makes of them.
template <typename Render>
Response answer_function(const AnswerContext& context, Render render) {
  const auto function = function_of(context.parameters);
  if (const auto* problem = std::get_if<Problem>(&function)) return problem_response(*problem);
  const auto question = prepare(context);
  if (const auto* problem = std::get_if<Problem>(&question)) return problem_response(*problem);
  const auto& ready = std::get<ReadyQuestion>(question);
  const store::ProfileOptions options = options_of(context.parameters);
  store::QueryBudget budget = budget_for(context.sources);
  Result<store::FunctionPlaces> places =
      store::function_places(ready.snapshot, ready.selection, options, std::get<store::FunctionName>(function),
                             namer_of(context, ready), budget);
  if (!places) return error_response(places.error());
  look_further(*places, places->samples, ready, context, options);
  Response response = render(*places, context.parameters.choice("format") == "text");
  return settle(std::move(response), places->used, context);
}

}  // namespace

Response answer_instructions(const AnswerContext& context) {
  return answer_function(context, [&](const store::FunctionPlaces& places, bool is_text) {
    std::vector<MachineCode> codes;
    for (const CodeQuestion& question : code_questions(places)) codes.push_back(context.sources.code_at(question));
    const std::vector<CodePart> parts = code_parts(places, codes);
    if (is_text) return text_response(render_instructions_text(places, parts));
    return json_response(render_instructions_json(places, parts, context.sources.frequency_hz()));
  });
}

Response answer_source(const AnswerContext& context) {
  return answer_function(context, [&](const store::FunctionPlaces& places, bool is_text) {
    if (is_text) return text_response(render_source_text(places));
    return json_response(render_source_json(places, context.sources.frequency_hz()));
  });
}

}  // namespace flamed::api
