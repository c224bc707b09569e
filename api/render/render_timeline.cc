// SPDX-License-Identifier: Apache-2.0
#include "api/render/render_timeline.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "api/render/render_common.h"
#include "api/text/json_writer.h"
#include "api/text/time_expression.h"
#include "store/model/wait_reason.h"

namespace flamed::api {
namespace {

void append_steps(JsonWriter& json, const std::vector<store::TimelineStep>& steps) {
  const auto append = [&](std::string_view name, auto&& value) {
    json.key(name).begin_array();
    for (const store::TimelineStep& step : steps) json.number(value(step));
    json.end_array();
  };
  const auto in_ms = [](std::uint64_t ns) { return static_cast<double>(ns) / kNsPerMs; };
  json.key("steps").begin_object();
  append("user_samples", [](const store::TimelineStep& step) { return step.user_samples; });
  append("kernel_samples", [](const store::TimelineStep& step) { return step.kernel_samples; });
  append("user_cpu_ms", [&](const store::TimelineStep& step) { return in_ms(step.user_ns); });
  append("kernel_cpu_ms", [&](const store::TimelineStep& step) { return in_ms(step.kernel_ns); });
  json.end_object();
}

/// The waiting time of each step in milliseconds, by reason; reasons that do not occur are left out.
void append_waits(JsonWriter& json, const std::vector<store::WaitSums>& waits) {
  json.key("waits").begin_object();
  for (std::size_t reason = 0; reason < store::kWaitReasons; ++reason) {
    const auto has_some = [&](const store::WaitSums& step) { return step[reason] != 0; };
    if (std::none_of(waits.begin(), waits.end(), has_some)) continue;
    json.key(name_of(static_cast<store::WaitReason>(reason))).begin_array();
    for (const store::WaitSums& step : waits) json.number(static_cast<double>(step[reason]) / kNsPerMs);
    json.end_array();
  }
  json.end_object();
}

}  // namespace

std::string render_timeline(const store::Timeline& timeline, double frequency_hz) {
  std::uint64_t samples = 0;
  std::uint64_t cpu_ns = 0;
  for (const store::TimelineStep& step : timeline.steps) {
    samples += step.user_samples + step.kernel_samples;
    cpu_ns += step.user_ns + step.kernel_ns;
  }
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  append_facts(json, timeline, frequency_hz, samples, cpu_ns);
  append_coverage(json, timeline);
  json.key("step_ms").number(timeline.step_ns / kNsPerMs);
  json.key("start").time(timeline.start);
  json.key("start_ms").number(timeline.start.ns / kNsPerMs);
  append_steps(json, timeline.steps);
  if (timeline.measure != store::Measure::kCpu) append_waits(json, timeline.waits);
  const auto append_window = [&](const store::WallWindow& window) {
    json.key("from_ms").number(window.from.ns / kNsPerMs);
    json.key("to_ms").number(window.to.ns / kNsPerMs);
  };
  json.key("lost").begin_array();
  for (const store::LostSamples& lost : timeline.lost) {
    json.begin_object();
    append_window(lost.window);
    json.key("samples").number(lost.samples);
    json.end_object();
  }
  json.end_array();
  json.key("gaps").begin_array();
  for (const store::WallWindow& gap : timeline.gaps) {
    json.begin_object();
    append_window(gap);
    json.end_object();
  }
  json.end_array();
  json.key("processes").begin_array();
  for (const store::ProcessTimeline& process : timeline.processes) {
    json.begin_object();
    append_process(json, process.info);
    append_steps(json, process.steps);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  out += '\n';
  return out;
}

std::string render_timeline_text(const store::Timeline& timeline) {
  std::uint64_t samples = 0;
  std::uint64_t cpu_ns = 0;
  for (const store::TimelineStep& step : timeline.steps) {
    samples += step.user_samples + step.kernel_samples;
    cpu_ns += step.user_ns + step.kernel_ns;
  }
  std::string out = text_head(timeline, samples, cpu_ns);
  out += "start of a step of " + std::to_string(timeline.step_ns / kNsPerSecond) + " s       user  kernel (averages)\n";
  for (std::size_t i = 0; i < timeline.steps.size(); ++i) {
    const store::TimelineStep& step = timeline.steps[i];
    const auto average = [&](std::uint64_t ns) {
      return static_cast<double>(ns) / static_cast<double>(timeline.step_ns);
    };
    std::array<char, 48> averages{};
    std::snprintf(averages.data(), averages.size(), "  %9.3f %7.3f", average(step.user_ns), average(step.kernel_ns));
    const WallTime start{timeline.start.ns + static_cast<std::int64_t>(i) * timeline.step_ns};
    out += format_time(start) + averages.data();
    for (std::size_t reason = 0; i < timeline.waits.size() && reason < store::kWaitReasons; ++reason) {
      if (timeline.waits[i][reason] == 0) continue;
      std::snprintf(averages.data(), averages.size(), " %.3f", average(timeline.waits[i][reason]));
      out.append("  ").append(name_of(static_cast<store::WaitReason>(reason))).append(averages.data());
    }
    out += '\n';
  }
  for (const store::WallWindow& gap : timeline.gaps) {
    out += "no samples at all from " + format_time(gap.from) + " to " + format_time(gap.to) + "\n";
  }
  return out;
}

std::string render_heatmap(const store::Heatmap& heatmap, double frequency_hz) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  append_facts(json, heatmap, frequency_hz, heatmap.total_samples,
               heatmap.total_samples * static_cast<std::uint64_t>(heatmap.period_ns));
  json.key("start").time(heatmap.start);
  json.key("start_ms").number(heatmap.start.ns / kNsPerMs);
  json.key("columns").number(std::uint64_t{heatmap.columns});
  json.key("rows").number(std::uint64_t{heatmap.rows});
  json.key("most").number(std::uint64_t{heatmap.most});
  json.key("counts").begin_array();
  for (const std::uint32_t count : heatmap.counts) json.number(std::uint64_t{count});
  json.end_array();
  json.end_object();
  out += '\n';
  return out;
}

}  // namespace flamed::api
