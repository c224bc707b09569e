// SPDX-License-Identifier: Apache-2.0
#include "api/render/summary_words.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "api/render/render_common.h"
#include "api/text/time_expression.h"

namespace flamed::api::words {
namespace {

constexpr std::size_t kLongestName = 120;

}  // namespace

std::string format(const char* form, double value) {
  std::array<char, 64> text{};
  // NOLINTNEXTLINE(clang-diagnostic-format-nonliteral): the forms are below
  std::snprintf(text.data(), text.size(), form, value);
  return text.data();
}

std::string percent(double share) {
  const double value = 100 * share;
  if (value > 0 && value < 0.1) return "less than 0.1 %";
  return format(value < 9.95 && value != 0 ? "%.1f %%" : "%.0f %%", value);
}

double share_of(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string cpus(double count) { return format("%.2f", count) + (count > 0.995 && count < 1.005 ? " CPU" : " CPUs"); }

std::string seconds(std::uint64_t ns) { return format("%.2f s", cpu_seconds(ns)); }

std::string length_of(std::int64_t ns) {
  const std::int64_t whole_s = (ns + kNsPerSecond / 2) / kNsPerSecond;
  if (whole_s < 60) return format(whole_s < 10 ? "%.1f s" : "%.0f s", static_cast<double>(ns) / kNsPerSecond);
  std::string text;
  for (const auto& [unit_s, unit] : {std::pair(std::int64_t{86400}, " d"), std::pair(std::int64_t{3600}, " h"),
                                     std::pair(std::int64_t{60}, " min"), std::pair(std::int64_t{1}, " s")}) {
    const std::int64_t count = unit_s == 86400 ? whole_s / unit_s
                               : unit_s == 1   ? whole_s % 60
                                               : whole_s / unit_s % (unit_s == 60 ? 60 : 24);
    if (count != 0) text += (text.empty() ? "" : " ") + std::to_string(count) + unit;
  }
  return text;
}

std::string count_of(std::uint64_t count, std::string_view one, std::string_view many) {
  return std::to_string(count) + " " + std::string(count == 1 ? one : many);
}

std::string shown(std::string_view name) {
  std::string text = one_line(name);
  if (text.size() <= kLongestName) return text;
  std::size_t cut = kLongestName;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0U) == 0x80U) --cut;
  return text.substr(0, cut) + "...";
}

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string list(const Names& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i != 0) text += i + 1 == names.size() ? " and " : ", ";
    text += names[i];
  }
  return text;
}

std::string commas(const Names& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string window_text(const store::WallWindow& window) {
  return "from " + format_time(window.from) + " to " + format_time(window.to) + " (" +
         length_of(window.to.ns - window.from.ns) + ")";
}

std::string name_of(const store::ProcessInfo& process) {
  return shown(process.comm) + " (pid " + std::to_string(process.id.pid) + ")";
}

const store::ProcessInfo* only_process(const store::Selection& selection,
                                       const std::vector<store::ProcessInfo>& processes) {
  return selection.processes.size() == 1 && processes.size() == 1 ? &processes.front() : nullptr;
}

std::string subject_of(const SummaryFacts& facts, const store::AnswerFacts& answer,
                       const std::vector<store::ProcessInfo>& processes) {
  const store::Selection& selection = facts.selection;
  if (const auto* process = only_process(selection, processes)) return name_of(*process);
  std::string text = "The selection";
  const auto only = [&](const std::vector<std::string>& names, std::string_view kind) {
    store::Selection rest = selection;
    rest.executables.clear();
    rest.units.clear();
    rest.containers.clear();
    const std::size_t all = selection.executables.size() + selection.units.size() + selection.containers.size();
    if (names.size() == 1 && all == 1 && !rest.is_narrowed()) text = std::string(kind) + shown(names.front());
  };
  only(selection.executables, "Program ");
  only(selection.units, "Unit ");
  only(selection.containers, "Container ");
  if (!selection.is_narrowed()) {
    text = answer.only_user ? "All that uid " + std::to_string(*answer.only_user) + " runs" : "The machine";
  }
  return text;
}

std::int64_t lifetime_ns(const store::AnswerFacts& answer, const store::Selection& selection,
                         const store::ProcessInfo* process) {
  store::WallWindow lived = answer.used;
  if (process != nullptr && process->started) lived.from = std::max(lived.from, *process->started);
  if (process != nullptr && process->ended) lived.to = std::min(lived.to, *process->ended);
  auto ns = static_cast<double>(lived.to.ns - lived.from.ns);
  if (selection.part) ns *= static_cast<double>(selection.part->to_ns - selection.part->from_ns) / kNsPerSecond;
  return std::max<std::int64_t>(static_cast<std::int64_t>(ns), 0);
}

double busy_cpus(std::uint64_t cpu_ns, std::int64_t of_ns) {
  return of_ns == 0 ? 0 : static_cast<double>(cpu_ns) / static_cast<double>(of_ns);
}

std::string busy_text(double busy, std::size_t of_cpus, std::string_view whose) {
  if (of_cpus == 0) return cpus(busy);
  return format("%.2f", busy) + " of " + std::string(whose) + " " + count_of(of_cpus, "CPU", "CPUs") + " (" +
         percent(busy / static_cast<double>(of_cpus)) + ")";
}

std::string frequency_of(const store::AnswerFacts& answer) {
  if (answer.periods.size() > 1) return "varying frequency";
  if (answer.period_ns == 0) return "no frequency";
  return format("%.0f Hz", static_cast<double>(kNsPerSecond) / static_cast<double>(answer.period_ns));
}

}  // namespace flamed::api::words
