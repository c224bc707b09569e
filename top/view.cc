// SPDX-License-Identifier: Apache-2.0
#include "top/view.h"

#include <wchar.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/text/clean_line.h"

namespace flamed::top {
namespace {

using nlohmann::json;

constexpr std::size_t kMostFunctions = 1000;
constexpr std::size_t kMostLineBytes = 2000;
constexpr std::size_t kMostNameBytes = 400;

/// Every byte but letters, digits and a few marks, so that no value ends a parameter.
std::string encoded(std::string_view text) {
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~:@/";
  std::string out;
  for (const char c : text) {
    std::array<char, 8> code{};
    std::snprintf(code.data(), code.size(), "%%%02X", static_cast<unsigned char>(c));
    out += kPlain.find(c) != std::string_view::npos ? std::string(1, c) : code.data();
  }
  return out;
}

std::string target_of(const Question& question, std::string_view format) {
  std::string target = "/profile?format=" + std::string(format);
  const auto add = [&](std::string_view name, std::string_view value) {
    if (!value.empty()) target.append("&").append(name).append("=").append(encoded(value));
  };
  add("from", question.is_live() ? "now-" + question.last : question.from);
  add("to", question.to);
  for (const std::string& pid : question.pids) add("pid", pid);
  add("uid", question.uid);
  add("unit", question.unit);
  add("focus", question.focus);
  return target;
}

/// Bytes and columns of the first character; bytes that are none in this locale are one column each.
struct Cell {
  std::size_t bytes;
  std::size_t columns;
  bool is_shown;
};
Cell first_cell(std::string_view text) {
  mbstate_t state{};
  wchar_t wide = 0;
  const std::size_t bytes = ::mbrtowc(&wide, text.data(), text.size(), &state);
  if (bytes == 0 || bytes > text.size()) return {1, 1, false};
  const int columns = ::wcwidth(wide);
  return columns < 0 ? Cell{bytes, 1, false} : Cell{bytes, static_cast<std::size_t>(columns), true};
}

/// "2026-01-31T14:05:00Z to 14:06:00Z": without the second date if it is the first, and without milliseconds if both
/// have none.
std::string window_text(std::string from, std::string to) {
  constexpr std::string_view kNoMs = ".000Z";
  constexpr std::size_t kDate = 11;  // "2026-01-31T"
  if (from.ends_with(kNoMs) && to.ends_with(kNoMs)) {
    for (std::string* time : {&from, &to}) time->replace(time->size() - kNoMs.size(), kNoMs.size(), "Z");
  }
  if (from.substr(0, kDate) == to.substr(0, kDate)) to.erase(0, kDate);
  return api::clean_line(from + " to " + to, 80);
}

/// The beginning of a text that takes so many columns.
std::string_view beginning(std::string_view text, std::size_t columns) {
  std::size_t bytes = 0;
  while (bytes < text.size()) {
    const Cell cell = first_cell(text.substr(bytes));
    if (cell.columns > columns) break;
    columns -= cell.columns;
    bytes += cell.bytes;
  }
  return text.substr(0, bytes);
}

}  // namespace

std::string summary_target(const Question& question) {
  return target_of(question, "summary") + (question.by_thread ? "&group=thread" : "&group=program");
}

std::string functions_target(const Question& question) {
  return target_of(question, "top") + "&group=none&max_nodes=" + std::to_string(kMostFunctions) +
         (question.waits ? "&measure=wait" : "");
}

void read_summary(std::string_view text, View& view) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    view.summary.push_back(api::clean_line(text.substr(0, end), kMostLineBytes));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

Status read_functions(std::string_view text, View& view) {
  try {
    const json answer = json::parse(text.begin(), text.end());
    const json& used = answer.at("window").at("used");
    view.window = window_text(used.at("from").get<std::string>(), used.at("to").get<std::string>());
    view.from_ms = used.at("from_ms").get<std::int64_t>();
    view.to_ms = used.at("to_ms").get<std::int64_t>();
    view.seconds = answer.at("cpu_seconds").get<double>();
    view.samples = answer.at("samples").get<std::uint64_t>();
    const bool has_summary = !view.summary.empty();  // which has the warnings
    for (const json& warning : answer.at("warnings")) {
      if (has_summary) break;
      view.summary.push_back(api::clean_line("Note: " + warning.get<std::string>(), kMostLineBytes));
    }
    for (const json& row : answer.at("functions")) {
      std::string name = row.at("name").get<std::string>();
      if (row.contains("module")) name += " (" + row.at("module").get<std::string>() + ")";
      view.functions.push_back({api::clean_line(name, kMostNameBytes), row.at("self_percent").get<double>(),
                                row.at("total_percent").get<double>()});
    }
  } catch (const json::exception& error) {
    return Error(std::string("flamed's answer can't be read: ") + api::clean_line(error.what(), 200));
  }
  return {};
}

std::string read_problem(std::string_view text) {
  const json problem = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  const auto detail = problem.is_object() ? problem.find("detail") : problem.end();
  const bool has_detail = problem.is_object() && detail != problem.end() && detail->is_string();
  return has_detail ? api::clean_line(detail->get<std::string>(), kMostLineBytes) : "flamed gives no reason";
}

void sort(std::vector<Function>& functions, Order order) {
  const auto key = [&](const Function& function) {
    return order == Order::kSelf ? std::pair(function.self_percent, function.total_percent)
                                 : std::pair(function.total_percent, function.self_percent);
  };
  std::stable_sort(functions.begin(), functions.end(),
                   [&](const Function& a, const Function& b) { return key(a) > key(b); });
}

std::string fitting(std::string_view text, std::size_t columns) {
  std::string out;
  for (text = beginning(text, columns); !text.empty();) {
    const Cell cell = first_cell(text);
    out += cell.is_shown ? text.substr(0, cell.bytes) : "?";
    text.remove_prefix(cell.bytes);
  }
  return out;
}

std::vector<std::string> wrapped(const std::vector<std::string>& text, std::size_t columns, std::size_t most_lines) {
  std::vector<std::string> lines;
  if (columns <= api::kCutMark.size() || most_lines == 0) return lines;
  for (std::string_view rest : text) {
    while (!rest.empty()) {
      if (lines.size() == most_lines) {
        lines.back() = std::string(beginning(lines.back(), columns - api::kCutMark.size())).append(api::kCutMark);
        return lines;
      }
      std::string_view line = beginning(rest, columns);
      if (line.empty()) break;
      const std::size_t blank = line.rfind(' ');
      const bool is_whole = line.size() == rest.size() || rest[line.size()] == ' ';
      if (!is_whole && blank != std::string_view::npos && blank > 0) line = line.substr(0, blank);
      lines.emplace_back(line);
      rest.remove_prefix(line.size());
      rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    }
  }
  return lines;
}

std::string heading_of_functions() { return "   self   total  function (module)"; }

std::string row_of(const Function& function) {
  std::array<char, 48> shares{};
  std::snprintf(shares.data(), shares.size(), "%6.1f%% %6.1f%%  ", function.self_percent, function.total_percent);
  return shares.data() + function.name;
}

std::string title_of(const Question& question, const View& view) {
  std::array<char, 64> amount{};
  std::snprintf(amount.data(), amount.size(), "%.2f s of %s, ", view.seconds, question.waits ? "waiting" : "CPU time");
  return (question.is_live() ? "live, the last " + question.last : view.window) + ": " + amount.data() +
         std::to_string(view.samples) + " samples";
}

std::string plain_text(const Question& question, const View& view, std::size_t rows) {
  std::string out = title_of(question, view) + "\n";
  if (question.is_live()) out += view.window + "\n";
  for (const std::string& line : view.summary) out += line + "\n";
  out += "\n" + heading_of_functions() + "\n";
  for (std::size_t i = 0; i < std::min(rows, view.functions.size()); ++i) out += row_of(view.functions[i]) + "\n";
  return out;
}

}  // namespace flamed::top
