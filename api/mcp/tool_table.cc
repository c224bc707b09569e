// SPDX-License-Identifier: Apache-2.0
#include "api/mcp/tool_table.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <set>

#include "api/question/route_table.h"
#include "api/text/json_writer.h"

namespace flamed::api {
namespace {

using Preset = ToolSpec::Preset;

constexpr std::string_view kSkip = "skip";
constexpr std::uint64_t kMostSkipped = 1'000'000;

constexpr std::array<Preset, 1> kSummary{{{"format", "summary"}}};
constexpr std::array<Preset, 1> kTopText{{{"format", "top-text"}}};
constexpr std::array<Preset, 1> kFolded{{{"format", "folded"}}};
constexpr std::array<Preset, 1> kPerfScript{{{"format", "perf-script"}}};
constexpr std::array<Preset, 1> kText{{{"format", "text"}}};
constexpr std::array<Preset, 2> kTextOfSource{{{"format", "text"}, {"text", "1"}}};
constexpr std::array<Preset, 1> kAFewSeconds{{{"from", "now-5s"}}};
constexpr std::array<Preset, 2> kWhole{{{"group", "none"}, {"max_nodes", "20000"}}};
constexpr std::array<Preset, 1> kByProgram{{{"group", "program"}}};

constexpr std::array<std::string_view, 9> kSummaryChoices{"from", "to",        "pid",   "tree", "exe",
                                                          "unit", "container", "group", "focus"};
constexpr std::array<std::string_view, 12> kFunctionChoices{"from", "to",        "pid",     "tid",  "comm",  "exe",
                                                            "unit", "container", "measure", "idle", "focus", "lines"};
constexpr std::array<std::string_view, 11> kStackChoices{"from", "to",        "pid",     "tid",  "comm", "exe",
                                                         "unit", "container", "measure", "idle", "focus"};
constexpr std::array<std::string_view, 11> kCompareChoices{"from",     "to",  "base_ago", "base_from", "base_to", "pid",
                                                           "base_pid", "exe", "unit",     "container", "focus"};
constexpr std::array<std::string_view, 8> kProcessChoices{"from", "to",        "tree",  "exe",
                                                          "unit", "container", "group", "measure"};
constexpr std::array<std::string_view, 9> kThreadChoices{"from", "to",        "pid",     "tid", "comm",
                                                         "unit", "container", "measure", "idle"};
constexpr std::array<std::string_view, 8> kTimelineChoices{"from", "to",        "pid",  "tid",
                                                           "unit", "container", "step", "measure"};
constexpr std::array<std::string_view, 5> kMarkChoices{"from", "to", "pid", "unit", "container"};
constexpr std::array<std::string_view, 9> kCodeChoices{"function", "module", "from",      "to",     "pid",
                                                       "exe",      "unit",   "container", "measure"};
constexpr std::array<std::string_view, 6> kSampleChoices{"from", "to", "pid", "tid", "comm", "unit"};

constexpr std::string_view kLess = "a shorter window, or less of the machine (pid, unit, container)";

constexpr std::array<ToolSpec, 11> kTools{{
    {"summary",
     "What used the CPU",
     "What used the CPU, in about a dozen sentences: how busy, which programs, which functions, and how far to trust "
     "it. Ask this first.",
     "/profile",
     kSummary,
     {},
     kSummaryChoices,
     ToolText::kLines,
     kLess},
    {"functions",
     "Hottest functions",
     "Functions with most time of their own (self) and with what they call (total). With measure=wait what threads "
     "waited for: [lock], [disk], [run_queue], and [held by NAME (TID)]. With lines=true by source line.",
     "/profile",
     kTopText,
     {},
     kFunctionChoices,
     ToolText::kLines,
     "focus with a function's name, or another selection"},
    {"stacks", "Hottest stacks",
     "Whole call stacks, those with most samples first, innermost function last: who calls the hot functions. With "
     "measure=wait how threads came to wait.",
     "/profile", kFolded, kWhole, kStackChoices, ToolText::kStacks,
     "focus with a function's name, or another selection"},
    {"compare",
     "What changed",
     "Two windows or selections compared: which functions changed by more than chance. By default with the same length "
     "of time just before; base_ago=7d is the same time last week.",
     "/diff",
     kSummary,
     {},
     kCompareChoices,
     ToolText::kLines,
     kLess},
    {"source",
     "Lines of a function",
     "Where in one function the time goes, by source line, with the line's text where the user may read it.",
     "/source",
     kTextOfSource,
     {},
     kCodeChoices,
     ToolText::kLines,
     kLess},
    {"instructions",
     "Instructions of a function",
     "Where in one function the time goes, by instruction.",
     "/instructions",
     kText,
     {},
     kCodeChoices,
     ToolText::kLines,
     kLess},
    {"processes", "Who used the CPU",
     "Programs by CPU time, most first; with group=process each process with its command line. With measure=wait by "
     "waiting time, with its reasons.",
     "/processes", kText, kByProgram, kProcessChoices, ToolText::kLines, kLess},
    {"threads",
     "Threads",
     "Threads by CPU time, most first. With measure=wait why each one waited, and who held the locks that it waited "
     "for: why something is slow.",
     "/threads",
     kText,
     {},
     kThreadChoices,
     ToolText::kLines,
     kLess},
    {"timeline",
     "CPU use over time",
     "CPUs in use, step by step: when something began or ended. With measure=wait how many threads waited, by reason.",
     "/timeline",
     kText,
     {},
     kTimelineChoices,
     ToolText::kLines,
     "a longer step, or a shorter window"},
    {"marks",
     "Restarts and deployments",
     "What happened: restarts of programs, minutes under pressure (too little CPU, disk or memory), and notes that "
     "people set.",
     "/marks",
     kText,
     {},
     kMarkChoices,
     ToolText::kLines,
     kLess},
    {"samples", "Single samples",
     "Each sample of a few recent seconds with its stack, in the order of time: what a thread did at a moment. The "
     "innermost function is first; times are unix seconds. By default of the last 5 s.",
     "/profile", kPerfScript, kAFewSeconds, kSampleChoices, ToolText::kBare, "a shorter window, or one tid"},
}};

const ParameterSpec& parameter_of(const ToolSpec& tool, std::string_view name) {
  for (const ParameterSpec& spec : find_route(tool.path)->parameters) {
    if (spec.name == name) return spec;
  }
  std::abort();  // the tables contradict each other
}

std::string_view json_type(ParameterType type) {
  switch (type) {
    case ParameterType::kFlag:
      return "boolean";
    case ParameterType::kInteger:
      return "integer";
    case ParameterType::kNumber:
      return "number";
    default:
      return "string";
  }
}

/// Shorter than those of the table of routes, or none: all tools are in an assistant's memory.
std::string_view description_of(const ParameterSpec& spec) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 19> kShort{{
      {"from", "default 15 min before to"},
      {"to", ""},
      {"pid", "as 1234 or 1234@567890"},
      {"function", "its whole name, as functions shows it"},
      {"module", "the function's, where several have one of that name"},
      {"tree", "a pid, with its descendants"},
      {"comm", "thread's name"},
      {"exe", "program's path or file name"},
      {"unit", ""},
      {"container", "id or name"},
      {"measure", "cpu time, waiting, or both"},
      {"idle", "show: with threads that wait for work"},
      {"lines", "by source line"},
      {"focus", "regular expression: only stacks with such a function"},
      {"base_pid", "pid to compare with"},
      {"base_ago", "the same window so long ago: 1h, 7d"},
      {"base_from", "start of the window to compare with"},
      {"base_to", "its end"},
      {"step", "as 10s"},
  }};
  for (const auto& [name, description] : kShort) {
    if (name == spec.name) return description;
  }
  return spec.choices.empty() ? spec.description : std::string_view();
}

/// What is wrong with a value is told by the answer. A list is as well taken where a string is told. `described` are
/// parameters of the tools before, which are not described again.
void append_schema(JsonWriter& json, const ParameterSpec& spec, std::set<std::string_view>& described) {
  json.key(spec.name).begin_object().key("type").string(json_type(spec.type));
  if (!spec.choices.empty()) {
    json.key("enum").begin_array();
    for (const std::string_view choice : spec.choices) json.string(choice);
    json.end_array();
  }
  const std::string_view description = description_of(spec);
  if (described.insert(spec.name).second && !description.empty()) json.key("description").string(description);
  json.end_object();
}

void append_tool(JsonWriter& json, const ToolSpec& tool, std::set<std::string_view>& described) {
  json.begin_object();
  json.key("name").string(tool.name).key("title").string(tool.title).key("description").string(tool.description);
  json.key("inputSchema").begin_object().key("type").string("object").key("properties").begin_object();
  for (const std::string_view name : tool.choices) append_schema(json, parameter_of(tool, name), described);
  json.key(kSkip).begin_object().key("type").string("integer").end_object();
  json.end_object().key("additionalProperties").boolean(false).end_object();
  json.key("annotations").begin_object();
  json.key("readOnlyHint").boolean(true).end_object();
  json.end_object();
}

}  // namespace

std::span<const ToolSpec> tool_table() { return kTools; }

const ToolSpec* find_tool(std::string_view name) {
  const auto* const tool =
      std::find_if(kTools.begin(), kTools.end(), [&](const ToolSpec& row) { return row.name == name; });
  return tool == kTools.end() ? nullptr : tool;
}

std::variant<ToolQuery, Problem> query_of(const ToolSpec& tool, std::vector<QueryItem> arguments) {
  ToolQuery query;
  for (const auto& [name, value] : tool.fixed) query.items.push_back({std::string(name), std::string(value)});
  for (const Preset& usual : tool.usual) {
    const bool is_given = std::any_of(arguments.begin(), arguments.end(),
                                      [&](const QueryItem& item) { return item.name == usual.first; });
    if (!is_given) query.items.push_back({std::string(usual.first), std::string(usual.second)});
  }
  for (QueryItem& item : arguments) {
    if (item.name == kSkip) {
      const char* const end = item.value.data() + item.value.size();
      const auto [stop, error] = std::from_chars(item.value.data(), end, query.skip);
      if (error != std::errc{} || stop != end || query.skip > kMostSkipped) {
        return bad_parameter(kSkip, "skip is a whole number from 0 to " + std::to_string(kMostSkipped) + ".");
      }
    } else if (std::find(tool.choices.begin(), tool.choices.end(), item.name) == tool.choices.end()) {
      std::string allowed;
      for (const std::string_view name : tool.choices) allowed.append(name).append(", ");
      return bad_parameter(item.name, "The tool " + std::string(tool.name) +
                                          " has no such argument. Allowed are: " + allowed + std::string(kSkip) + ".");
    } else {
      query.items.push_back(std::move(item));
    }
  }
  return query;
}

std::string render_tools() {
  std::string out;
  JsonWriter json(out);
  json.key("tools").begin_array();
  std::set<std::string_view> described;
  for (const ToolSpec& tool : kTools) append_tool(json, tool, described);
  json.end_array();
  return out;
}

}  // namespace flamed::api
