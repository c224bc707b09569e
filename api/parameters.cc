// SPDX-License-Identifier: Apache-2.0
#include "api/parameters.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <utility>

namespace flamed::api {
namespace {

constexpr std::size_t kShownBytes = 64;

std::string quoted(std::string_view text) {
  std::string out = "\"";
  out += text.substr(0, kShownBytes);
  if (text.size() > kShownBytes) out += "…";
  out += '"';
  return out;
}

std::string join(const std::vector<std::string_view>& words) {
  std::string out;
  for (std::string_view word : words) {
    if (!out.empty()) out += ", ";
    out += word;
  }
  return out;
}

Problem unknown_parameter(const std::string& name, std::span<const ParameterSpec> table) {
  if (table.empty()) return bad_parameter(name, "This endpoint takes no parameters; leave out " + quoted(name) + ".");
  std::vector<std::string_view> allowed;
  for (const ParameterSpec& spec : table) allowed.push_back(spec.name);
  return bad_parameter(name, "There is no parameter " + quoted(name) + ". Allowed are: " + join(allowed) + ".");
}

/// All of `text` as a decimal number without a sign.
template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  Number value{};
  if (text.empty() || text.front() == '-') return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

Result<store::ProcessSelector> parse_process(std::string_view text) {
  const std::size_t at = text.find('@');
  const auto pid = parse_number<std::int32_t>(text.substr(0, at));
  store::ProcessSelector selector;
  bool good = pid && *pid > 0;
  if (good) selector.pid = *pid;
  if (good && at != std::string_view::npos) {
    selector.start_ticks = parse_number<std::uint64_t>(text.substr(at + 1));
    good = selector.start_ticks.has_value();
  }
  if (!good) {
    return Error(quoted(text) +
                 " is not a process. Write a pid (1234), or pid@start_ticks (1234@567890) as /processes lists them; "
                 "leave pid out for the whole machine.");
  }
  return selector;
}

std::variant<Parameters, Problem> Parameters::parse(std::span<const ParameterSpec> table,
                                                    std::span<const QueryItem> query, const TimeContext& context) {
  Parameters parameters(table);
  for (const QueryItem& item : query) {
    const auto spec =
        std::find_if(table.begin(), table.end(), [&](const ParameterSpec& row) { return row.name == item.name; });
    if (spec == table.end()) return unknown_parameter(item.name, table);
    if (parameters.values_.contains(spec->name)) {
      return bad_parameter(spec->name, "The parameter " + item.name + " is given more than once. Give it once.");
    }
    switch (spec->type) {
      case ParameterType::kTime: {
        auto time = parse_time(item.value, context);
        if (!time) return bad_parameter(spec->name, time.error().message());
        parameters.values_.emplace(spec->name, *time);
        break;
      }
      case ParameterType::kProcess: {
        auto process = parse_process(item.value);
        if (!process) return bad_parameter(spec->name, process.error().message());
        parameters.values_.emplace(spec->name, *process);
        break;
      }
      case ParameterType::kChoice: {
        const auto choice = std::find(spec->choices.begin(), spec->choices.end(), item.value);
        if (choice == spec->choices.end()) {
          return bad_parameter(spec->name, quoted(item.value) + " is not a " + std::string(spec->name) +
                                               ". Allowed are: " + join({spec->choices.begin(), spec->choices.end()}) +
                                               ".");
        }
        parameters.values_.emplace(spec->name, *choice);
        break;
      }
    }
  }
  return parameters;
}

std::optional<WallTime> Parameters::time(std::string_view name) const {
  const auto found = values_.find(row(name, ParameterType::kTime).name);
  if (found == values_.end()) return std::nullopt;
  return std::get<WallTime>(found->second);
}

std::optional<store::ProcessSelector> Parameters::process(std::string_view name) const {
  const auto found = values_.find(row(name, ParameterType::kProcess).name);
  if (found == values_.end()) return std::nullopt;
  return std::get<store::ProcessSelector>(found->second);
}

std::string_view Parameters::choice(std::string_view name) const {
  const ParameterSpec& spec = row(name, ParameterType::kChoice);
  const auto found = values_.find(spec.name);
  return found == values_.end() ? spec.choices.front() : std::get<std::string_view>(found->second);
}

const ParameterSpec& Parameters::row(std::string_view name, ParameterType type) const {
  const auto found = std::find_if(table_.begin(), table_.end(), [&](const auto& spec) { return spec.name == name; });
  if (found == table_.end() || found->type != type) std::abort();
  return *found;
}

}  // namespace flamed::api
