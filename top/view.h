// SPDX-License-Identifier: Apache-2.0
//
// What flamed-top asks and shows, as plain values, and its text for any size of screen. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace flamed::top {

/// The parameters of a query, as flamed's API takes them.
struct Question {
  std::string last = "60s";  ///< live: so long until now
  std::string from{};        ///< of a past window; empty: live
  std::string to{};          ///< empty: now
  std::vector<std::string> pids{};
  std::string uid{};
  std::string unit{};
  std::string focus{};
  bool by_thread = false;
  bool waits = false;  ///< of waiting, not of CPU time

  [[nodiscard]] bool is_live() const { return from.empty(); }
};

/// Path and query of the two requests. There is no summary of waiting.
std::string summary_target(const Question& question);
std::string functions_target(const Question& question);

struct Function {
  std::string name;  ///< with its module; made safe to print
  double self_percent = 0;
  double total_percent = 0;
};

/// What was answered.
struct View {
  std::vector<std::string> summary{};  ///< lines; made safe to print
  std::string window{};                ///< "2026-01-31T14:05:00Z to 14:06:00Z"
  double seconds = 0;
  std::uint64_t samples = 0;
  std::int64_t from_ms = 0;
  std::int64_t to_ms = 0;
  std::vector<Function> functions{};  ///< by self
};

/// Fills in the summary from its text.
void read_summary(std::string_view text, View& view);
/// Fills in the rest from the JSON of format=top.
Status read_functions(std::string_view json, View& view);
/// What a refusal says, from its JSON.
std::string read_problem(std::string_view json);

enum class Order : std::uint8_t { kSelf, kTotal };
void sort(std::vector<Function>& functions, Order order);

/// Breaks text into lines of at most so many columns, at blanks where there are any; the last line ends in "..." if
/// there are more than `most_lines`.
std::vector<std::string> wrapped(const std::vector<std::string>& text, std::size_t columns, std::size_t most_lines);
/// The beginning of a text, of so many columns of a terminal in the current locale; what can't be shown there is `?`.
std::string fitting(std::string_view text, std::size_t columns);

std::string heading_of_functions();
/// "  66.7%  100.0%  work_two (libfoo.so)"
std::string row_of(const Function& function);
/// The window, the time in it, and the samples.
std::string title_of(const Question& question, const View& view);

/// All of it as lines for a file or a pipe.
std::string plain_text(const Question& question, const View& view, std::size_t rows);

}  // namespace flamed::top
