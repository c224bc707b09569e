// SPDX-License-Identifier: Apache-2.0
#include "api/render/render_common.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/text/time_expression.h"
#include "api/text/utf8.h"
#include "store/model/container_text.h"

namespace flamed::api {
namespace {

const char* in_words(store::Measure measure) {
  if (measure == store::Measure::kCpu) return "of CPU time";
  return measure == store::Measure::kWait ? "of waiting" : "of CPU time and waiting";
}

void append_gaps(JsonWriter& json, const std::vector<store::Gap>& gaps) {
  json.key("missing").begin_array();
  for (const store::Gap& gap : gaps) {
    json.begin_object();
    json.key("from").time(gap.from);
    json.key("to").time(gap.to);
    json.key("from_ms").number(gap.from.ns / kNsPerMs);
    json.key("to_ms").number(gap.to.ns / kNsPerMs);
    json.key("reason").string(name_of(gap.reason));
    json.key("cpu");
    if (gap.cpu) {
      json.number(std::uint64_t{*gap.cpu});
    } else {
      json.null();
    }
    if (gap.lost_samples != 0) json.key("lost_samples").number(gap.lost_samples);
    json.end_object();
  }
  json.end_array();
}

}  // namespace

void append_window(JsonWriter& json, const store::WallWindow& window) {
  json.begin_object();
  json.key("from").time(window.from);
  json.key("to").time(window.to);
  json.key("from_ms").number(window.from.ns / kNsPerMs);
  json.key("to_ms").number(window.to.ns / kNsPerMs);
  json.end_object();
}

void append_quality(JsonWriter& json, const store::AnswerFacts& facts) {
  const store::Quality& quality = facts.quality;
  json.begin_object();
  json.key("whole").number(quality.whole);
  json.key("guessed").number(quality.guessed());
  json.key("truncated").begin_object();
  for (std::size_t i = 0; i < quality.truncated.size(); ++i) {
    if (static_cast<store::Truncation>(i) == store::Truncation::kGuessed) continue;
    json.key(name_of(static_cast<store::Truncation>(i))).number(quality.truncated[i]);
  }
  json.end_object();
  json.key("lost").begin_object();
  for (std::size_t i = 0; i < quality.lost.size(); ++i) {
    json.key(name_of(static_cast<store::Loss>(i))).number(quality.lost[i]);
  }
  json.end_object();
  json.key("pending").number(quality.pending);
  json.key("frequencies").begin_array();
  for (const store::PeriodShare& part : facts.periods) {
    json.begin_object();
    // A period is a whole number of nanoseconds: 99 Hz would be 99.0000099 Hz.
    json.key("hz").number(std::round(1e3 * kNsPerSecond / static_cast<double>(part.period_ns)) / 1e3);
    json.key("share").number(part.share);
    json.end_object();
  }
  json.end_array();
  json.end_object();
}

void append_process(JsonWriter& json, const store::ProcessInfo& process) {
  const auto append_time = [&](std::string_view name, const std::optional<WallTime>& moment) {
    json.key(name);
    if (moment) {
      json.time(*moment);
    } else {
      json.null();
    }
  };
  const auto append_text = [&](std::string_view name, const std::string& text) {
    json.key(name);
    if (text.empty()) {
      json.null();
    } else {
      json.string(text);
    }
  };
  json.key("id").string(std::to_string(process.id.pid) + "@" + std::to_string(process.id.start_ticks));
  json.key("pid").number(std::int64_t{process.id.pid});
  json.key("start_ticks").number(process.id.start_ticks);
  json.key("comm").string(process.comm);
  append_text("executable", process.executable);
  append_time("started", process.started);
  append_time("ended", process.ended);
  append_text("command_line", process.command_line);
  json.key("uid");
  if (process.uid) {
    json.number(std::uint64_t{*process.uid});
  } else {
    json.null();
  }
  append_text("unit", process.unit);
  const auto [container, container_name] = store::split_container(process.container);
  append_text("container", std::string(container));
  append_text("container_name", std::string(container_name));
  append_text("cgroup", process.cgroup);
  std::string parent;
  if (process.parent_start_ticks != 0) {
    parent = std::to_string(process.parent_pid) + "@" + std::to_string(process.parent_start_ticks);
  } else if (process.parent_pid != 0) {
    parent = std::to_string(process.parent_pid);
  }
  append_text("parent", parent);
}

void append_facts(JsonWriter& json, const store::AnswerFacts& facts, double frequency_hz, std::uint64_t samples,
                  std::uint64_t cpu_ns) {
  json.key("measure").string(name_of(facts.measure));
  if (facts.measure != store::Measure::kCpu) json.key("disk_account").string(name_of(facts.disk_account));
  json.key("window").begin_object();
  append_window(json.key("asked"), facts.asked);
  append_window(json.key("used"), facts.used);
  json.end_object();
  json.key("resolution_ms").number(facts.resolution_ns / kNsPerMs);
  json.key("period_ns").number(facts.period_ns);
  json.key("frequency_hz").number(frequency_hz);
  json.key("samples").number(samples);
  json.key("cpu_seconds").number(cpu_seconds(cpu_ns));
  append_quality(json.key("quality"), facts);
  append_gaps(json, facts.missing);
  json.key("visible_uid");
  if (facts.only_user) {
    json.number(std::uint64_t{*facts.only_user});
  } else {
    json.null();
  }
  json.key("matched_ever");
  if (samples != 0 || facts.matched_ever) {
    json.boolean(samples != 0 || *facts.matched_ever);
  } else {
    json.null();
  }
  json.key("warnings").begin_array();
  for (const std::string& warning : facts.warnings) json.string(warning);
  json.end_array();
}

void append_waits(JsonWriter& json, const store::WaitSums& waits_ns) {
  json.key("waits").begin_object();
  for (std::size_t reason = 0; reason < waits_ns.size(); ++reason) {
    if (waits_ns[reason] == 0) continue;
    json.key(name_of(static_cast<store::WaitReason>(reason))).number(cpu_seconds(waits_ns[reason]));
  }
  json.end_object();
}

void append_processes(JsonWriter& json, std::span<const store::ProcessInfo> processes) {
  json.key("processes").begin_array();
  for (const store::ProcessInfo& process : processes) {
    json.begin_object();
    append_process(json, process);
    json.end_object();
  }
  json.end_array();
}

double symbolised_share(const store::Profile& profile) {
  std::uint64_t all = 0;
  std::uint64_t named = 0;
  for (const store::ProfileNode& node : profile.nodes) {
    const store::FrameKind kind = profile.frames[node.frame].kind;
    if (kind == store::FrameKind::kRoot || kind == store::FrameKind::kMarker) continue;
    all += node.total_samples;
    if (!is_nameless(kind)) named += node.total_samples;
  }
  return all == 0 ? 1 : static_cast<double>(named) / static_cast<double>(all);
}

namespace {

struct UnnamedModule {
  const store::NamedFrame* frame = nullptr;  ///< the first of its frames
  std::uint64_t samples = 0;
};

/// `total_of` gives a node's samples. Nodes are in depth-first order.
template <typename Nodes, typename TotalOf>
std::vector<UnnamedModule> unnamed_modules(const store::FrameList& frames, const Nodes& nodes, TotalOf total_of) {
  constexpr std::size_t kNamed = ~std::size_t{0};
  std::vector<UnnamedModule> modules;
  std::map<std::string_view, std::size_t> numbers;
  std::vector<std::size_t> module_of(frames.size(), kNamed);
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const store::NamedFrame& frame = frames[i];
    if (!is_nameless(frame.kind) || frame.module.empty()) continue;
    module_of[i] = numbers.try_emplace(frame.module, modules.size()).first->second;
    if (module_of[i] == modules.size()) modules.push_back({&frame});
  }
  if (modules.empty()) return modules;
  std::vector<std::uint32_t> open(modules.size(), 0);  // how often the module is on the path
  std::vector<std::uint32_t> path;
  const auto module_at = [&](std::uint32_t node) { return module_of[nodes[node].frame]; };
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    while (!path.empty() && path.back() != nodes[i].parent) {
      if (module_at(path.back()) != kNamed) --open[module_at(path.back())];
      path.pop_back();
    }
    path.push_back(i);
    const std::size_t module = module_at(i);
    if (module != kNamed && open[module]++ == 0) modules[module].samples += total_of(nodes[i]);
  }
  std::erase_if(modules, [](const UnnamedModule& module) { return module.samples == 0; });
  std::stable_sort(modules.begin(), modules.end(),
                   [](const UnnamedModule& a, const UnnamedModule& b) { return a.samples > b.samples; });
  return modules;
}

void append_unnamed_modules(JsonWriter& json, const std::vector<UnnamedModule>& modules) {
  constexpr std::size_t kListed = 5;
  json.key("unnamed").begin_array();
  for (std::size_t i = 0; i < std::min(kListed, modules.size()); ++i) {
    const auto& [frame, samples] = modules[i];
    json.begin_object();
    json.key("module").string(frame->module);
    if (!frame->build_id.empty()) json.key("build_id").string(frame->build_id);
    json.key("samples").number(samples);
    json.key("reason").string(frame->reason);
    json.end_object();
  }
  json.end_array();
}

}  // namespace

void append_unnamed(JsonWriter& json, const store::Profile& profile) {
  append_unnamed_modules(json, unnamed_modules(profile.frames, profile.nodes,
                                               [](const store::ProfileNode& node) { return node.total_samples; }));
}

void append_unnamed(JsonWriter& json, const store::ProfileDiff& diff, store::DiffCount store::DiffNode::*side) {
  append_unnamed_modules(json, unnamed_modules(diff.frames, diff.nodes, [&](const store::DiffNode& node) {
                           return (node.*side).total_samples;
                         }));
}

void append_coverage(JsonWriter& json, const store::AnswerFacts& facts) {
  const store::Coverage coverage = facts.coverage.value_or(store::Coverage{.reason = "it was not requested"});
  json.key("coverage").begin_object();
  const auto append_seconds = [&](std::string_view name, std::optional<std::uint64_t> ns) {
    json.key(name);
    if (ns) {
      json.number(cpu_seconds(*ns));
    } else {
      json.null();
    }
  };
  append_seconds("cpu_seconds_accounted", coverage.cpu_ns_accounted);
  if (facts.measure != store::Measure::kCpu) {
    append_seconds("thread_seconds", coverage.thread_ns);
    append_seconds("thread_seconds_error", coverage.thread_ns ? std::optional(coverage.thread_error_ns) : std::nullopt);
  }
  json.key("share");
  if (coverage.share) {
    json.number(*coverage.share);
  } else {
    json.null();
  }
  if (!coverage.reason.empty()) json.key("reason").string(coverage.reason);
  json.end_object();
}

void append_trust(JsonWriter& json, const store::Profile& profile) {
  json.key("symbolised_share").number(symbolised_share(profile));
  append_unnamed(json, profile);
  append_coverage(json, profile);
}

void append_frame(JsonWriter& json, const store::NamedFrame& frame) {
  json.key("name").string(frame.name);
  json.key("kind").string(name_of(frame.kind));
  if (!frame.module.empty()) json.key("module").string(frame.module);
  if (!frame.reason.empty()) json.key("reason").string(frame.reason);
  if (!frame.build_id.empty()) json.key("build_id").string(frame.build_id);
  if (!frame.file.empty()) json.key("file").string(frame.file);
  if (frame.line != 0) json.key("line").number(std::uint64_t{frame.line});
  if (frame.inlined) json.key("inlined").boolean(true);
  if (frame.kind == store::FrameKind::kUnnamed) json.key("offset").number(frame.offset);
}

std::string one_line(std::string_view raw) {
  std::string text = repair_utf8(raw);
  for (char& c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) c = '_';
  }
  return text;
}

std::string warning_lines(std::string_view prefix, std::span<const std::string> warnings) {
  std::string lines;
  for (const std::string& warning : warnings) lines.append(prefix).append(one_line(warning)).append("\n");
  return lines;
}

std::string text_head(const store::AnswerFacts& facts, std::uint64_t samples, std::uint64_t cpu_ns) {
  std::array<char, 128> line{};
  std::snprintf(line.data(), line.size(), "%llu samples, %.3f s %s, ", static_cast<unsigned long long>(samples),
                cpu_seconds(cpu_ns), in_words(facts.measure));
  std::string out = line.data() + format_time(facts.used.from) + " to " + format_time(facts.used.to);
  if (facts.only_user) out += ", processes of uid " + std::to_string(*facts.only_user) + " only";
  out += '\n';
  return out + warning_lines("warning: ", facts.warnings);
}

double cpu_seconds(std::uint64_t ns) { return static_cast<double>(ns) / static_cast<double>(kNsPerSecond); }

}  // namespace flamed::api
