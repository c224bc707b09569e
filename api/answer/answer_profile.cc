// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "api/answer/answer_common.h"
#include "api/http/response.h"
#include "api/render/render_columns.h"
#include "api/render/render_common.h"
#include "api/render/render_flamegraph.h"
#include "api/render/render_folded.h"
#include "api/render/render_perf_script.h"
#include "api/render/render_pprof.h"
#include "api/render/render_samples.h"
#include "api/render/render_services.h"
#include "api/render/render_speedscope.h"
#include "api/render/render_summary.h"
#include "api/render/render_top.h"
#include "api/render/stack_frames.h"
#include "base/host.h"
#include "store/model/wait_reason.h"
#include "store/query/query.h"
#include "store/query/timed_samples.h"

namespace flamed::api {
namespace {

/// As many as the daemon can select at once.
constexpr std::size_t kMostOffCpuProcesses = 64;
/// Functions in all stacks: 100 to 200 MB of JSON or text.
constexpr std::uint64_t kMostFunctionsWritten = 20'000'000;

Error too_much_to_write(std::string_view format) {
  return Error(std::string(format) +
                   " writes every stack out, and these are too many: ask for a shorter window or for less of the "
                   "machine, or for format=pprof or columns",
               E2BIG);
}

std::string title_of(const store::AnswerFacts& facts, const store::Selection& selection) {
  std::string title = "flamed";
  for (const store::ProcessSelector& process : selection.processes) title += " pid " + std::to_string(process.pid);
  for (const std::string& unit : selection.units) title += " " + unit;
  return title + " " + std::to_string(facts.used.from.ns / kNsPerMs) + "-" +
         std::to_string(facts.used.to.ns / kNsPerMs);
}

/// Without the options for trees.
store::ProfileOptions stack_options_of(const Parameters& parameters) {
  store::ProfileOptions options = options_of(parameters);
  options.root.clear();
  return options;
}

Response tree_answer(const AnswerContext& context, const ReadyQuestion& question, std::string_view format) {
  store::ProfileOptions options = options_of(context.parameters);
  const bool is_summary = format == "summary";
  const bool is_table = format == "top" || format == "top-text" || is_summary;
  if (is_summary && options.group.value_or(store::Group::kNone) == store::Group::kNone) {
    options.group = store::Group::kProgram;
  }
  // For a table, max_nodes is its length: it must add up whole trees.
  const std::size_t rows = is_table && options.max_nodes != 0 ? options.max_nodes : kDefaultTopRows;
  if (is_table) {
    options.max_nodes = 0;
    options.min_percent = 0;
  } else if (options.max_nodes == 0) {
    options.max_nodes = kDefaultMaxNodes;
  }
  store::QueryBudget budget = budget_for(context.sources);
  Result<store::Profile> profile =
      store::build_profile(question.snapshot, question.selection, options, namer_of(context, question), budget);
  if (!profile) return error_response(profile.error());
  add_coverage(*profile, question, context.sources);
  look_further(*profile, profile->nodes.front().total_samples, question, context, options);
  const double frequency_hz = context.sources.frequency_hz();
  Response response;
  if (format == "folded") {
    response = text_response(render_folded(*profile));
  } else if (format == "top-text") {
    response = text_response(render_top_text(*profile, rows));
  } else if (is_summary) {
    response = text_response(render_summary(*profile, summary_facts_of(question, options, context.sources)));
  } else if (format == "top") {
    response = json_response(render_top_json(*profile, frequency_hz, rows));
  } else if (format == "columns") {
    response = json_response(render_columns(*profile, frequency_hz, ColumnForm::kJson));
  } else if (format == "columns-binary") {
    response = {200, std::string(kBinaryColumnsType), render_columns(*profile, frequency_hz, ColumnForm::kBinary)};
  } else {
    response = json_response(render_flamegraph(*profile, frequency_hz));
  }
  if (format == "folded" || format == "top-text" || is_summary) {
    add_fact_headers(response, *profile, profile->nodes.front().total_samples, symbolised_share(*profile));
  }
  return settle(std::move(response), profile->used, context);
}

Response pprof_response(const AnswerContext& context, const store::StackProfile& stacks) {
  Result<std::string> encoded = render_pprof(stacks);
  if (!encoded) return error_response(encoded.error());
  Response response{200, "application/octet-stream", std::move(*encoded)};
  // Without a file name: browsers would prefer it to the one that the page's link has.
  response.headers.emplace_back("Content-Disposition", "attachment");
  add_fact_headers(response, stacks, stacks.total_samples, symbolised_share(stacks));
  return settle(std::move(response), stacks.used, context);
}

bool is_of_services(std::string_view format) { return format == "pyroscope" || format.starts_with("otlp"); }

/// The parameters `label`: name=value.
std::variant<HostLabels, Problem> host_labels_of(const Parameters& parameters) {
  HostLabels host{host_name(), machine_id()};
  for (const std::string& text : parameters.texts("label")) {
    const std::size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == text.size() || text.starts_with("__")) {
      return bad_parameter("label", "'" + text + "' is not name=value with a name that does not begin with __.");
    }
    host.labels.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return host;
}

Response services_response(const AnswerContext& context, const store::StackProfile& stacks, std::string_view format) {
  const auto host = host_labels_of(context.parameters);
  if (const auto* problem = std::get_if<Problem>(&host)) return problem_response(*problem);
  const auto& labels = std::get<HostLabels>(host);
  Result<std::string> encoded =
      format == "pyroscope"
          ? render_pyroscope(stacks, labels)
          : render_otlp(stacks, labels, format == "otlp" ? OtlpLayout::kCurrent : OtlpLayout::kBefore110);
  if (!encoded) return error_response(encoded.error());
  Response response{200, "application/octet-stream", std::move(*encoded)};
  add_fact_headers(response, stacks, stacks.total_samples, symbolised_share(stacks));
  return settle(std::move(response), stacks.used, context);
}

Response stacks_answer(const AnswerContext& context, const ReadyQuestion& question, std::string_view format) {
  const store::ProfileOptions options = stack_options_of(context.parameters);
  store::QueryBudget budget = budget_for(context.sources);
  Result<store::StackProfile> stacks =
      store::build_stacks(question.snapshot, question.selection, options, namer_of(context, question), budget);
  if (!stacks) return error_response(stacks.error());
  add_coverage(*stacks, question, context.sources);
  look_further(*stacks, stacks->total_samples, question, context, options);
  if (format == "pprof") return pprof_response(context, *stacks);
  if (is_of_services(format)) return services_response(context, *stacks, format);
  if (functions_written(*stacks) > kMostFunctionsWritten) return error_response(too_much_to_write(format));
  std::string title = title_of(*stacks, question.selection);
  if (stacks->total_samples == 0) {
    // The only text of the format that speedscope shows.
    for (const std::string& warning : stacks->warnings) title += " - " + warning;
  }
  Response response = json_response(render_speedscope(*stacks, options.group.value_or(store::Group::kNone), title));
  add_fact_headers(response, *stacks, stacks->total_samples, symbolised_share(*stacks));
  return settle(std::move(response), stacks->used, context);
}

Response samples_answer(const AnswerContext& context, const ReadyQuestion& question, std::string_view format) {
  const store::ProfileOptions options = stack_options_of(context.parameters);
  store::QueryBudget budget = budget_for(context.sources);
  Result<store::TimedSamples> samples =
      store::timed_samples(question.snapshot, question.selection, options, namer_of(context, question), budget);
  if (!samples) return error_response(samples.error());
  const bool is_text = format == "perf-script";
  if (is_text && functions_written(*samples) > kMostFunctionsWritten) return error_response(too_much_to_write(format));
  add_coverage(samples->stacks, question, context.sources);
  look_further(samples->stacks, samples->stacks.total_samples, question, context, options);
  if (!is_text) {
    Response response = json_response(render_samples(*samples, context.sources.frequency_hz()));
    return settle(std::move(response), samples->stacks.used, context);
  }
  Response response = text_response(render_perf_script(*samples));
  add_fact_headers(response, samples->stacks, samples->stacks.total_samples, symbolised_share(*samples));
  return settle(std::move(response), samples->stacks.used, context);
}

/// The store's namer, without what it keeps of the store's call tree, and with the names of wakers of one measurement.
class NamerOfAnother final : public store::FrameNamer {
 public:
  NamerOfAnother(store::FrameNamer& namer, const std::vector<std::string>& wakers) : namer_(namer), wakers_(wakers) {}
  std::vector<std::shared_ptr<const store::InlineChain>> name(std::span<const Frame> frames) override {
    auto chains = namer_.name(frames);
    for (std::size_t i = 0; i < std::min(chains.size(), frames.size()); ++i) {
      const std::optional<std::uint32_t> waker = store::waker_in(frames[i]);
      if (!waker || *waker >= wakers_.size()) continue;
      chains[i] = share({{wakers_[*waker], "", store::FrameKind::kKernel, ""}});
    }
    return chains;
  }

 private:
  store::FrameNamer& namer_;
  const std::vector<std::string>& wakers_;
};

}  // namespace

Response answer_profile(const AnswerContext& context) {
  const std::string_view format = format_of(context);
  const bool is_of_samples = format == "perf-script" || format == "samples";
  auto question = prepare(context, is_of_samples ? kOnlyMinutes : by_stack(context));
  if (const auto* problem = std::get_if<Problem>(&question)) return problem_response(*problem);
  auto& ready = std::get<ReadyQuestion>(question);
  if (const auto problem = check_format(context, format)) return problem_response(*problem);
  if (is_of_services(format) && context.parameters.choice("naming") == "quick") {
    ready.namer = &context.sources.quick_namer();
  }
  if (format == "pprof" || format == "speedscope" || is_of_services(format)) {
    return stacks_answer(context, ready, format);
  }
  if (is_of_samples) return samples_answer(context, ready, format);
  return tree_answer(context, ready, format);
}

Response answer_pprof(const AnswerContext& context) {
  const auto question = prepare(context, by_stack(context));
  if (const auto* problem = std::get_if<Problem>(&question)) return problem_response(*problem);
  return stacks_answer(context, std::get<ReadyQuestion>(question), "pprof");
}

std::optional<Problem> begin_off_cpu(const AnswerContext& context) {
  OffCpuRequest request;
  for (const store::ProcessSelector& process : context.parameters.processes("pid")) {
    request.processes.push_back(process.pid);
  }
  if (request.processes.empty()) {
    return bad_parameter("pid",
                         "Waits are measured of some processes only, which costs all of the machine's a little. Say "
                         "which, as pid=1234. /processes lists them.");
  }
  if (request.processes.size() > kMostOffCpuProcesses) {
    return bad_parameter("pid", "At most " + std::to_string(kMostOffCpuProcesses) + " processes are measured at once.");
  }
  request.length_ns = wait_ns(context.parameters).value_or(0);
  request.asked = context.moments.asked;
  request.with_wakers = context.parameters.choice("wakers") == "show";
  const std::optional<OffCpuRefusal> refusal = context.sources.begin_off_cpu(request);
  if (!refusal) return std::nullopt;
  switch (refusal->why) {
    case OffCpuRefusal::Why::kBusy:
      return off_cpu_busy(refusal->reason);
    case OffCpuRefusal::Why::kUnknownProcess:
      return unknown_process("pid", "No process " + std::to_string(refusal->process) +
                                        " of those that you may see runs. /processes lists who used CPU in a window.");
    case OffCpuRefusal::Why::kUnavailable:
      break;
  }
  return off_cpu_unavailable(refusal->reason);
}

Response answer_off_cpu(const AnswerContext& context) {
  const std::optional<OffCpuAnswer> measured = context.sources.take_off_cpu(context.moments.asked);
  if (!measured) return problem_response(off_cpu_ended());
  NamerOfAnother namer(context.sources.namer(), measured->wakers);
  const bool hides_idle = context.parameters.choice("idle") == "hide";
  const store::Snapshot waits = store::measured(measured->snapshot, store::Measure::kWait, hides_idle);
  const ReadyQuestion question{store::with_warnings(waits, measured->warnings),
                               off_cpu_selection_of(context.parameters, measured->window), &namer};
  const std::string_view format = format_of(context);
  if (format == "pprof" || format == "speedscope") return stacks_answer(context, question, format);
  return tree_answer(context, question, format);
}

}  // namespace flamed::api
