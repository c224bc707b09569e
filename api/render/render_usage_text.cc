// SPDX-License-Identifier: Apache-2.0
#include "api/render/render_usage_text.h"

#include <array>
#include <cstdint>
#include <cstdio>
#include <string_view>

#include "api/render/render_common.h"
#include "api/render/summary_words.h"
#include "store/model/container_text.h"

namespace flamed::api {
namespace {

using words::shown;

std::string seconds_and_share(std::uint64_t ns, std::uint64_t of_ns) {
  const double percent = of_ns == 0 ? 0 : 100 * static_cast<double>(ns) / static_cast<double>(of_ns);
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%11.3f %5.1f%%  ", cpu_seconds(ns), percent);
  return text.data();
}

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.resize(width, ' ');
  return text;
}

std::string id_of(const store::ProcessInfo& process) {
  return std::to_string(process.id.pid) + "@" + std::to_string(process.id.start_ticks);
}

/// "  waits: lock 1.200 s, disk 0.300 s"; empty if there are none.
std::string waits_text(const store::WaitSums& waits_ns) {
  std::string text;
  for (std::size_t reason = 0; reason < waits_ns.size(); ++reason) {
    if (waits_ns[reason] == 0) continue;
    std::array<char, 48> seconds{};
    std::snprintf(seconds.data(), seconds.size(), " %.3f s", cpu_seconds(waits_ns[reason]));
    text += text.empty() ? "  waits: " : ", ";
    text.append(name_of(static_cast<store::WaitReason>(reason))).append(seconds.data());
  }
  return text;
}

template <typename Row>
std::string head_of(const store::UsageTable<Row>& usage, std::string_view columns) {
  std::string out = text_head(usage, usage.total_samples, usage.total_ns);
  return out.append("    seconds  share  ").append(columns).append("\n");
}

}  // namespace

std::string render_processes_text(const store::UsageTable<store::ProcessUsage>& usage) {
  std::string out = head_of(usage, "process (pid@start)   name, unit or container, uid, command line");
  for (const store::ProcessUsage& row : usage.rows) {
    const store::ProcessInfo& process = row.info;
    out += seconds_and_share(row.cpu_ns, usage.total_ns) + padded(id_of(process), 22) + shown(process.comm);
    const std::string_view place =
        process.container.empty() ? std::string_view(process.unit) : store::split_container(process.container).shown();
    if (!place.empty()) out += "  " + shown(std::string(place));
    if (process.uid) out += "  uid " + std::to_string(*process.uid);
    if (process.ended) out += "  (ended)";
    if (!process.command_line.empty()) out += "  " + shown(process.command_line);
    out += waits_text(row.waits_ns) + "\n";
  }
  return out;
}

std::string render_process_groups_text(const store::UsageTable<store::GroupUsage>& usage) {
  std::string out = head_of(usage, "processes  ended  group (and what selects it)");
  for (const store::GroupUsage& row : usage.rows) {
    std::array<char, 48> counts{};
    std::snprintf(counts.data(), counts.size(), "%9zu %6zu  ", row.processes, row.ended);
    out += seconds_and_share(row.cpu_ns, usage.total_ns) + counts.data() + shown(row.name);
    if (!row.parameter.empty()) out += " (" + row.parameter + "=" + shown(row.value) + ")";
    out += waits_text(row.waits_ns) + "\n";
  }
  return out;
}

std::string render_threads_text(const store::UsageTable<store::ThreadUsage>& usage) {
  std::string out = head_of(usage, "thread      name, its process (pid@start)");
  for (const store::ThreadUsage& row : usage.rows) {
    out += seconds_and_share(row.cpu_ns, usage.total_ns) + padded(std::to_string(row.tid), 12) + shown(row.comm) +
           "  of " + shown(row.process.comm) + " (" + id_of(row.process) + ")" + waits_text(row.waits_ns);
    for (const store::LockHolderUsage& holder : row.holders) {
      std::array<char, 48> seconds{};
      std::snprintf(seconds.data(), seconds.size(), " for %.3f s", cpu_seconds(holder.ns));
      out += "  its lock was held by " + (holder.comm.empty() ? std::string("thread") : shown(holder.comm)) + " (" +
             std::to_string(holder.tid) + ")" + seconds.data();
    }
    out += '\n';
  }
  return out;
}

}  // namespace flamed::api
