// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "api/answer/answer_common.h"
#include "api/http/response.h"
#include "api/question/question.h"
#include "api/render/render_instructions.h"
#include "api/render/render_source.h"
#include "api/render/source_excerpt.h"
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
Response answer_function(const AnswerContext& context, bool with_files, Render render) {
  auto function = function_of(context.parameters);
  if (const auto* problem = std::get_if<Problem>(&function)) return problem_response(*problem);
  std::get<store::FunctionName>(function).with_files = with_files;
  const auto question = prepare(context, by_stack(context));
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

/// Text is read for so many files of an answer, and for each is looked for in so many processes.
constexpr std::size_t kMostFiles = 16;
constexpr std::size_t kMostUses = 8;
constexpr std::int64_t kMostReadingNs = 5 * kNsPerSecond;

/// Node.js has URLs of modules.
std::string path_of(const std::string& file) {
  constexpr std::string_view kUrl = "file://";
  return file.starts_with("file:///") ? file.substr(kUrl.size()) : file;
}

/// Of the numbers of lines that a file's places have, ascending.
std::vector<std::uint32_t> lines_of(const store::FilePlace& file, const store::FunctionPlaces& places) {
  std::vector<std::uint32_t> numbers;
  for (const store::LinePlace& line : places.lines) {
    if (line.module == file.module && line.file == file.file && line.line != 0) numbers.push_back(line.line);
  }
  return numbers;
}

std::vector<SourceExcerpt> excerpts_of(const store::FunctionPlaces& places, Sources& sources) {
  std::vector<SourceExcerpt> excerpts;
  std::size_t room = kMostExcerptBytes;
  const std::int64_t until_ns = sources.clock().monotonic().ns + kMostReadingNs;
  for (const store::FilePlace& file : places.files) {
    SourceExcerpt& excerpt = excerpts.emplace_back(SourceExcerpt{file.module, file.file});
    if (excerpts.size() > kMostFiles) {
      excerpt.reason = "the function has too many files for one answer";
      continue;
    }
    const std::vector<std::uint32_t> wanted = lines_of(file, places);
    if (wanted.empty()) {
      excerpt.reason = "no line of it is known";
      continue;
    }
    excerpt.reason = "reading sources takes too long: ask again, for fewer processes";
    bool is_first = true;
    for (const auto& [process, started, code] : std::span(file.uses).first(std::min(file.uses.size(), kMostUses))) {
      if (sources.clock().monotonic().ns >= until_ns) break;
      SourceFile found = sources.source_file({process, started, code, path_of(file.file)});
      if (!found.reason.empty()) {
        // That of the process with the most samples, if no other one helps.
        if (std::exchange(is_first, false)) excerpt.reason = std::move(found.reason);
        continue;
      }
      excerpt.reason.clear();
      excerpt.is_newer = found.is_newer;
      add_lines(found.text, wanted, room, excerpt);
      break;
    }
  }
  return excerpts;
}

}  // namespace

Response answer_instructions(const AnswerContext& context) {
  return answer_function(context, false, [&](const store::FunctionPlaces& places, bool is_text) {
    std::vector<MachineCode> codes;
    for (const CodeQuestion& question : code_questions(places)) codes.push_back(context.sources.code_at(question));
    const std::vector<CodePart> parts = code_parts(places, codes);
    if (is_text) return text_response(render_instructions_text(places, parts));
    return json_response(render_instructions_json(places, parts, context.sources.frequency_hz()));
  });
}

Response answer_source(const AnswerContext& context) {
  const bool with_text = context.parameters.flag("text");
  return answer_function(context, with_text, [&](const store::FunctionPlaces& places, bool is_text) {
    std::vector<SourceExcerpt> excerpts;
    if (with_text) excerpts = excerpts_of(places, context.sources);
    if (is_text) return text_response(render_source_text(places, excerpts));
    return json_response(render_source_json(places, context.sources.frequency_hz(), with_text ? &excerpts : nullptr));
  });
}

}  // namespace flamed::api
