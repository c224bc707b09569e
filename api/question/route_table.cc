// SPDX-License-Identifier: Apache-2.0
#include "api/question/route_table.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "api/question/mark_request.h"
#include "api/question/push_report.h"
#include "api/render/column_writer.h"

namespace flamed::api {
namespace {

using enum ParameterType;

constexpr std::string_view kJson = "application/json";
constexpr std::string_view kText = "text/plain; charset=utf-8";
constexpr std::string_view kProtobuf = "application/octet-stream";

constexpr std::array<std::string_view, 14> kProfileFormats{
    "flamegraph", "columns", "columns-binary", "folded",    "pprof", "speedscope", "perf-script",
    "samples",    "top",     "top-text",       "pyroscope", "otlp",  "otlp-1.9",   "summary"};
constexpr std::array<std::string_view, 7> kDiffFormats{"flamegraph", "columns",  "columns-binary", "folded",
                                                       "top",        "top-text", "summary"};
constexpr std::array<std::string_view, 3> kSides{"both", "user", "kernel"};
constexpr std::array<std::string_view, 10> kGroups{"process", "thread",    "comm", "program", "exe",
                                                   "unit",    "container", "user", "tree",    "none"};
constexpr std::array<std::string_view, 7> kProcessGroups{"process",   "program", "exe", "unit",
                                                         "container", "user",    "tree"};
constexpr std::array<std::string_view, 2> kNames{"short", "full"};
constexpr std::array<std::string_view, 2> kNormalise{"samples", "time"};
constexpr std::array<std::string_view, 3> kMeasures{"cpu", "wait", "wall"};
constexpr std::array<std::string_view, 2> kIdle{"hide", "show"};
constexpr std::array<std::string_view, 2> kNaming{"all", "quick"};

constexpr double kLargestId = 2147483647;
constexpr double kLargestUid = 4294967294;
constexpr double kLongestWait = 3600;
constexpr double kLongestOffCpu = 60;
constexpr double kLongestAgo = 3660.0 * 86400;  // as history_age

constexpr std::array<ParameterSpec, 4> kWindow{{
    {"from", kTime, "start of the window; default 15 minutes before its end, or when flamed began if that was later"},
    {"to", kTime, "end of the window, exclusive; default now; a time in the future is now"},
    {"offset_from", kNumber, "only the part of each second that begins so many milliseconds into it", {}, 0, 1000},
    {"offset_to", kNumber, "end of that part, exclusive; default 1000", {}, 0, 1000},
}};

constexpr std::array<ParameterSpec, 10> kSelection{{
    {"pid", kProcesses, "processes, as 1234 or 1234@567890 (pid and start, as in /processes)"},
    {"tid", kIntegers, "threads", {}, 1, kLargestId},
    {"comm", kTexts, "names of threads"},
    {"exe", kTexts, "programs, by path or by file name"},
    {"unit", kTexts, "systemd units; .service may be left out"},
    {"container", kTexts,
     "containers, by name, id or its first 12 digits, a pod's id, or what runs them (docker, podman)"},
    {"cgroup", kTexts, "control groups by path, with all below them"},
    {"uid", kIntegers, "effective users", {}, 0, kLargestUid},
    {"tree", kProcesses, "processes with their children, at any depth"},
    {"side", kChoice, "which part of the stacks", kSides, 0, 0, "both"},
}};

constexpr std::array<ParameterSpec, 10> kBaseSelection{{
    {"base_pid", kProcesses, "pid, of the side to compare with"},
    {"base_tid", kIntegers, "tid, of the side to compare with", {}, 1, kLargestId},
    {"base_comm", kTexts, "comm, of the side to compare with"},
    {"base_exe", kTexts, "exe, of the side to compare with"},
    {"base_unit", kTexts, "unit, of the side to compare with"},
    {"base_container", kTexts, "container, of the side to compare with"},
    {"base_cgroup", kTexts, "cgroup, of the side to compare with"},
    {"base_uid", kIntegers, "uid, of the side to compare with", {}, 0, kLargestUid},
    {"base_tree", kProcesses, "tree, of the side to compare with"},
    {"base_side", kChoice, "side, of the side to compare with", kSides, 0, 0, "both"},
}};

constexpr std::array<std::string_view, 2> kInterpreter{"hide", "show"};

constexpr std::array<ParameterSpec, 5> kBaseWindow{{
    {"base_ago", kDuration, "compare with the same window so long ago, as 1h, 1d or 7d", {}, 1, kLongestAgo},
    {"base_from", kTime, "start of the window to compare with; default as long before base_to as from is before to"},
    {"base_to", kTime, "end of the window to compare with; default from"},
    {"base_offset_from", kNumber, "offset_from, of the side to compare with; default whole seconds", {}, 0, 1000},
    {"base_offset_to", kNumber, "offset_to, of the side to compare with", {}, 0, 1000},
}};

constexpr std::array<ParameterSpec, 2> kMeasure{{
    {"measure", kChoice, "cpu: time on a CPU; wait: time in which threads waited; wall: both", kMeasures, 0, 0, "cpu"},
    {"idle", kChoice, "show: also threads that wait for work, as in poll() and accept()", kIdle, 0, 0, "hide"},
}};

/// How a tree is shown.
constexpr std::array<ParameterSpec, 13> kShape{{
    {"group", kChoice, "first level below the root; default none for a single pid, else process", kGroups},
    {"delimited", kFlag, "a frame -- between user and kernel frames", {}, 0, 0, "0"},
    {"annotate", kFlag, "_[k], _[i] and _[j] behind names of kernel, inlined and JIT functions", {}, 0, 0, "0"},
    {"lines", kFlag, "file:line behind names; functions are told apart by line", {}, 0, 0, "0"},
    {"inlines", kFlag, "inlined functions as frames of their own", {}, 0, 0, "1"},
    {"interpreter", kChoice, "show: with the frames of a runtime's interpreter", kInterpreter, 0, 0, "hide"},
    {"names", kChoice, "full: with template arguments and parameters", kNames, 0, 0, "short"},
    {"focus", kPattern, "only stacks in which a frame matches"},
    {"ignore", kPattern, "only stacks in which no frame matches"},
    {"hide", kPattern, "without frames that match; their callees are attached to their caller"},
    {"root", kTexts, "only the subtree below these names, from the root's child on, one per parameter"},
    {"min_percent", kNumber, "only nodes of at least this share of the whole", {}, 0, 100, "0"},
    {"max_nodes", kInteger, "number of nodes, the largest ones", {}, 1, 1'000'000, "200000"},
}};

constexpr std::array<ParameterSpec, 4> kProfileOwn{{
    {"seconds",
     kDuration,
     "without from: waits for the next so many seconds; with it: the length of the window",
     {},
     1,
     kLongestWait},
    {"format", kChoice, "format of the profile; without it the header Accept decides", kProfileFormats, 0, 0,
     "flamegraph"},
    {"label", kTexts, "name=value: a label of every service, with the formats pyroscope and otlp"},
    {"naming", kChoice,
     "quick: inlined calls and lines only where they are known already, with the formats pyroscope and otlp", kNaming,
     0, 0, "all"},
}};

constexpr std::array<ParameterSpec, 2> kFunction{{
    {"function", kTexts, "one function, by its whole name as /profile shows it; needed"},
    {"module", kTexts, "the function's module, by its file name as /profile shows it; default any"},
}};

constexpr std::array<ParameterSpec, 1> kSourceOwn{{
    {"text", kFlag, "also the text of the lines, where you may read the source", {}, 0, 0, "0"},
}};

constexpr std::array<ParameterSpec, 2> kDiffOwn{{
    {"normalise", kChoice, "samples: shares of each side; time: CPU time per time", kNormalise, 0, 0, "samples"},
    {"format", kChoice, "format of the comparison", kDiffFormats, 0, 0, "flamegraph"},
}};

constexpr std::array<std::string_view, 2> kTableFormats{"json", "text"};

constexpr std::array<ParameterSpec, 1> kTableFormat{{
    {"format", kChoice, "text: a table for reading", kTableFormats, 0, 0, "json"},
}};

constexpr std::array<ParameterSpec, 1> kProcessesOwn{{
    {"group", kChoice, "one row for all processes of a program, unit, container, user or tree", kProcessGroups, 0, 0,
     "process"},
}};

constexpr std::array<ParameterSpec, 2> kTimelineOwn{{
    {"step", kDuration, "length of a step; default such that there are at most 300", {}, 1, 86400},
    {"processes", kInteger, "number of processes, the busiest ones, with steps of their own", {}, 0, 64, "0"},
}};

/// Processes and a window; marks are not about threads.
constexpr std::array<ParameterSpec, 10> kMarksParameters{{kSelection[0], kSelection[3], kSelection[4], kSelection[5],
                                                          kSelection[6], kSelection[7], kSelection[8], kWindow[0],
                                                          kWindow[1], kTableFormat[0]}};

constexpr PostSpec kSetMark{
    "Sets a mark, such as a deployment, for all who see everything; only they may set one", kMostMarkBodyBytes,
    R"({"type":"object","required":["text"],"additionalProperties":false,"properties":{)"
    R"("text":{"type":"string","minLength":1,"maxLength":200,"description":"One line, at most 200 bytes"},)"
    R"("time_ms":{"type":"integer","description":"Unix milliseconds, within the retained time; default now"}}})"};

constexpr PostSpec kReportPush{
    "What flamed-push has sent; only those who see everything may tell it", kMostPushReportBytes,
    R"({"type":"object","required":["interval_ms","cpu_ns","receivers"],"additionalProperties":false,"properties":{)"
    R"("interval_ms":{"type":"integer","description":"Until the next report"},)"
    R"("cpu_ns":{"type":"integer","description":"CPU time of the program since it began"},)"
    R"("receivers":{"type":"array","maxItems":16,"items":{"type":"object"}}}})"};

constexpr std::array<ParameterSpec, 1> kHeatmapOwn{{
    {"rows", kInteger, "number of parts of a second", {}, 1, 1000, "50"},
}};

/// What of kShape is not about trees, and how long to wait.
constexpr std::array<ParameterSpec, 7> kFunctionShape{
    {kShape[4], kShape[5], kShape[6], kShape[7], kShape[8], kShape[9], kProfileOwn[0]}};

constexpr std::array<ParameterSpec, 7> kPprofShape{{
    kShape[4],
    kShape[5],
    kShape[6],
    kShape[7],
    kShape[8],
    kShape[9],
    {"seconds",
     kDuration,
     "without from: waits for the next so many seconds; with it: the length of the window",
     {},
     1,
     kLongestWait,
     "30"},
}};

constexpr std::array<std::string_view, 8> kOffCpuFormats{"flamegraph", "columns", "columns-binary", "folded", "pprof",
                                                         "speedscope", "top",     "top-text"};

constexpr std::array<ParameterSpec, 4> kOffCpuSelection{{
    {"pid", kProcesses, "the processes to measure, as 1234; at least one, at most 64"},
    kSelection[1],
    kSelection[2],
    kSelection[9],
}};

constexpr std::array<ParameterSpec, 4> kOffCpuOwn{{
    {"seconds", kDuration, "measures for so many seconds, then answers", {}, 1, kLongestOffCpu, "10"},
    {"idle", kChoice, "show: also threads that wait for work, as in poll() and accept()", kIdle, 0, 0, "hide"},
    {"wakers", kChoice, "show: also who ended the waits, which costs a little at each wake-up", kIdle, 0, 0, "hide"},
    {"format", kChoice, "format of the profile; without it the header Accept decides", kOffCpuFormats, 0, 0,
     "flamegraph"},
}};

template <std::size_t... kSizes>
constexpr auto joined(const std::array<ParameterSpec, kSizes>&... parts) {
  std::array<ParameterSpec, (kSizes + ...)> all{};
  std::size_t next = 0;
  const auto append = [&](const auto& part) {
    for (const ParameterSpec& spec : part) all[next++] = spec;
  };
  (append(parts), ...);
  return all;
}

constexpr auto kProfileParameters = joined(kSelection, kWindow, kMeasure, kProfileOwn, kShape);
constexpr auto kDiffParameters = joined(kSelection, kWindow, kMeasure, kBaseSelection, kBaseWindow, kDiffOwn, kShape);
constexpr auto kProcessesParameters = joined(kSelection, kWindow, kMeasure, kProcessesOwn, kTableFormat);
constexpr auto kUsageParameters = joined(kSelection, kWindow, kMeasure, kTableFormat);
constexpr auto kTimelineParameters = joined(kSelection, kWindow, kMeasure, kTimelineOwn, kTableFormat);
constexpr auto kHeatmapParameters = joined(kSelection, kWindow, kMeasure, kHeatmapOwn);
constexpr auto kPprofParameters = joined(kSelection, kWindow, kPprofShape);
constexpr auto kFunctionParameters = joined(kFunction, kSelection, kWindow, kMeasure, kFunctionShape, kTableFormat);
constexpr auto kSourceParameters =
    joined(kFunction, kSourceOwn, kSelection, kWindow, kMeasure, kFunctionShape, kTableFormat);
constexpr auto kOffCpuParameters = joined(kOffCpuSelection, kOffCpuOwn, kShape);

constexpr std::array<std::string_view, 4> kProfileTypes{kJson, kText, kProtobuf, kBinaryColumnsType};
constexpr std::array<std::string_view, 3> kDiffTypes{kJson, kText, kBinaryColumnsType};
constexpr std::array<std::string_view, 2> kTableTypes{kJson, kText};
constexpr std::array<std::string_view, 1> kJsonOnly{kJson};
constexpr std::array<std::string_view, 1> kProtobufOnly{kProtobuf};
constexpr std::array<std::string_view, 1> kPrometheus{"text/plain; version=0.0.4; charset=utf-8"};

constexpr std::array<RouteSpec, 17> kRoutes{{
    {RouteId::kProfile, "/profile", "What the CPU was doing: a flame graph of any selection in any window",
     kProfileParameters, kProfileTypes},
    {RouteId::kDiff, "/diff", "Two selections or windows compared, with a mark on what changed by more than chance",
     kDiffParameters, kDiffTypes},
    {RouteId::kProcesses, "/processes", "Processes that used CPU in a window", kProcessesParameters, kTableTypes},
    {RouteId::kThreads, "/threads", "Threads that used CPU in a window", kUsageParameters, kTableTypes},
    {RouteId::kTimeline, "/timeline", "CPU use over time", kTimelineParameters, kTableTypes},
    {RouteId::kHeatmap, "/heatmap", "Samples, or waiting time, by second and part of the second", kHeatmapParameters,
     kJsonOnly},
    {RouteId::kMarks, "/marks", "Restarts of programs, minutes under pressure, and marks set by people",
     kMarksParameters, kTableTypes, false, &kSetMark},
    {RouteId::kPprof, "/debug/pprof/profile", "The next seconds, or a window, as Go's net/http/pprof answers",
     kPprofParameters, kProtobufOnly},
    {RouteId::kOffCpu, "/off_cpu", "Measures the waits of some processes exactly, for some seconds", kOffCpuParameters,
     kProfileTypes},
    {RouteId::kInstructions, "/instructions", "Where in one function the samples are, by instruction",
     kFunctionParameters, kTableTypes},
    {RouteId::kSource, "/source", "Where in one function the samples are, by source line", kSourceParameters,
     kTableTypes},
    {RouteId::kPush, "/push", "What flamed-push has told of its receivers", {}, kJsonOnly, false, &kReportPush},
    {RouteId::kHealthz, "/healthz", "200 while sampling works, 503 when it does not", {}, kJsonOnly, true},
    {RouteId::kReadyz, "/readyz", "200 once questions can be answered, else 503", {}, kJsonOnly, true},
    {RouteId::kMetrics, "/metrics", "Metrics for Prometheus", {}, kPrometheus, true},
    {RouteId::kOpenApi, "/openapi.json", "This API as an OpenAPI 3.1 document", {}, kJsonOnly, true},
    {RouteId::kVersion, "/version", "The daemon's version", {}, kJsonOnly, true},
}};

}  // namespace

std::span<const RouteSpec> route_table() { return kRoutes; }

const RouteSpec* find_route(std::string_view path) {
  const auto* const route =
      std::find_if(kRoutes.begin(), kRoutes.end(), [&](const RouteSpec& row) { return row.path == path; });
  return route == kRoutes.end() ? nullptr : route;
}

std::size_t most_body_bytes(std::string_view method, std::string_view target) {
  if (method != "POST") return 0;
  const RouteSpec* const route = find_route(target.substr(0, target.find('?')));
  return route != nullptr && route->post != nullptr ? route->post->most_body_bytes : 0;
}

}  // namespace flamed::api
