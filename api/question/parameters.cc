// SPDX-License-Identifier: Apache-2.0
#include "api/question/parameters.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "base/units.h"

namespace flamed::api {
namespace {

constexpr std::size_t kShownBytes = 64;

template <typename T>
using Parsed = std::variant<T, Problem>;

std::string in_quotes(std::string_view text) {
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
  if (table.empty())
    return bad_parameter(name, "This endpoint takes no parameters; leave out " + in_quotes(name) + ".");
  std::vector<std::string_view> allowed;
  for (const ParameterSpec& spec : table) allowed.push_back(spec.name);
  return bad_parameter(name, "There is no parameter " + in_quotes(name) + ". Allowed are: " + join(allowed) + ".");
}

/// All of `text` as a decimal number without a sign.
template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  Number value{};
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string shown(double bound) {
  if (bound == std::floor(bound)) return std::to_string(static_cast<std::int64_t>(bound));
  return std::to_string(bound);
}

Problem not_allowed(const ParameterSpec& spec, std::string_view text) {
  return bad_parameter(spec.name, in_quotes(text) + " is not possible as " + std::string(spec.name) +
                                      ". Allowed are: " + allowed_values(spec) + ".");
}

template <typename Number>
bool within(const ParameterSpec& spec, Number value) {
  const auto number = static_cast<double>(value);
  return number >= spec.minimum && number <= spec.maximum;
}

/// Splits a list at commas; for types whose values have no commas.
std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t comma = 0; comma != std::string_view::npos;) {
    comma = text.find(',');
    parts.push_back(text.substr(0, comma));
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  return parts;
}

std::optional<std::int64_t> parse_seconds_ns(std::string_view text) {
  if (const auto seconds = parse_number<double>(text)) {
    return *seconds <= 1e9 ? std::optional(static_cast<std::int64_t>(*seconds * 1e9)) : std::nullopt;
  }
  const Result<std::int64_t> ns = parse_duration_ns(text);
  return ns ? std::optional(*ns) : std::nullopt;
}

// Each type's form: the value, or how it has to be written.

Parsed<GivenTime> time_of(const ParameterSpec& spec, std::string_view text, const TimeContext& context) {
  auto time = parse_time(text, context);
  if (!time) return bad_parameter(spec.name, time.error().message());
  return *time;
}

Parsed<store::ProcessSelector> process_of(const ParameterSpec& spec, std::string_view text) {
  auto process = parse_process(text);
  if (!process) return bad_parameter(spec.name, process.error().message());
  return *process;
}

Parsed<std::string> text_of(const ParameterSpec& spec, const std::string& text) {
  if (text.empty() || text.size() > kMaxTextBytes) return not_allowed(spec, text);
  return text;
}

Parsed<std::string_view> choice_of(const ParameterSpec& spec, std::string_view text) {
  const auto choice = std::find(spec.choices.begin(), spec.choices.end(), text);
  if (choice == spec.choices.end()) {
    return bad_parameter(spec.name, in_quotes(text) + " is not a " + std::string(spec.name) +
                                        ". Allowed are: " + allowed_values(spec) + ".");
  }
  return *choice;
}

Parsed<bool> flag_of(const ParameterSpec& spec, std::string_view text) {
  const bool on = text == "1" || text == "true";
  if (!on && text != "0" && text != "false") return not_allowed(spec, text);
  return on;
}

template <typename Number>
Parsed<Number> number_of(const ParameterSpec& spec, std::string_view text) {
  const auto number = parse_number<Number>(text);
  if (!number || !within(spec, *number)) return not_allowed(spec, text);
  return *number;
}

Parsed<std::int64_t> duration_ns_of(const ParameterSpec& spec, std::string_view text) {
  const auto ns = parse_seconds_ns(text);
  if (!ns || !within(spec, static_cast<double>(*ns) / kNsPerSecond)) return not_allowed(spec, text);
  return *ns;
}

Parsed<NamePattern> pattern_of(const ParameterSpec& spec, const std::string& text) {
  auto pattern = NamePattern::compile(text);
  if (!pattern) {
    return bad_parameter(spec.name, in_quotes(text) + " can't be used as a regular expression: " +
                                        pattern.error().message() + ". Allowed are: " + allowed_values(spec) + ".");
  }
  return std::move(*pattern);
}

}  // namespace

bool is_list(ParameterType type) {
  return type == ParameterType::kProcesses || type == ParameterType::kIntegers || type == ParameterType::kTexts;
}

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
    return Error(in_quotes(text) +
                 " is not a process. Write a pid (1234), or pid@start_ticks (1234@567890) as /processes lists them; "
                 "leave it out for the whole machine.");
  }
  return selector;
}

std::string allowed_values(const ParameterSpec& spec) {
  const std::string range = shown(spec.minimum) + " to " + shown(spec.maximum);
  switch (spec.type) {
    case ParameterType::kTime:
      return std::string(kTimeForms);
    case ParameterType::kProcesses:
      return "pids (1234) and pid@start_ticks (1234@567890), with commas between them";
    case ParameterType::kIntegers:
      return "whole numbers from " + range + ", with commas between them";
    case ParameterType::kTexts:
      return "texts of 1 to " + std::to_string(kMaxTextBytes) + " bytes, one per parameter";
    case ParameterType::kChoice:
      return join({spec.choices.begin(), spec.choices.end()});
    case ParameterType::kFlag:
      return "1, 0, true, false";
    case ParameterType::kInteger:
      return "whole numbers from " + range;
    case ParameterType::kNumber:
      return "numbers from " + range;
    case ParameterType::kDuration:
      return "durations from " + range + " seconds, as 90, 90s, 5m or 1h30m";
    case ParameterType::kPattern:
      return "regular expressions of RE2 of at most " + std::to_string(NamePattern::kMaxBytes) + " bytes";
  }
  std::abort();
}

std::variant<Parameters, Problem> Parameters::parse(std::span<const ParameterSpec> table,
                                                    std::span<const QueryItem> query, const TimeContext& context) {
  Parameters parameters(table);
  for (const QueryItem& item : query) {
    const auto spec =
        std::find_if(table.begin(), table.end(), [&](const ParameterSpec& row) { return row.name == item.name; });
    if (spec == table.end()) return unknown_parameter(item.name, table);
    if (!is_list(spec->type) && parameters.values_.contains(spec->name)) {
      return bad_parameter(spec->name, "The parameter " + item.name + " is given more than once. Give it once.");
    }
    if (auto problem = parameters.add(*spec, item.value, context)) return std::move(*problem);
  }
  return parameters;
}

template <typename T>
std::optional<Problem> Parameters::keep(const ParameterSpec& spec, Parsed<T> value) {
  if (auto* const problem = std::get_if<Problem>(&value)) return std::move(*problem);
  values_.emplace(spec.name, std::get<T>(std::move(value)));
  return std::nullopt;
}

template <typename T>
std::optional<Problem> Parameters::keep_in_list(const ParameterSpec& spec, Parsed<T> value) {
  if (auto* const problem = std::get_if<Problem>(&value)) return std::move(*problem);
  auto& list = std::get<std::vector<T>>(values_.try_emplace(spec.name, std::vector<T>()).first->second);
  if (list.size() == kMostValues) {
    return bad_parameter(spec.name,
                         std::string(spec.name) + " has more than " + std::to_string(kMostValues) + " values.");
  }
  list.push_back(std::get<T>(std::move(value)));
  return std::nullopt;
}

std::optional<Problem> Parameters::add(const ParameterSpec& spec, const std::string& text, const TimeContext& context) {
  switch (spec.type) {
    case ParameterType::kTime:
      return keep(spec, time_of(spec, text, context));
    case ParameterType::kProcesses:
      for (const std::string_view part : parts_of(text)) {
        if (auto problem = keep_in_list(spec, process_of(spec, part))) return problem;
      }
      return std::nullopt;
    case ParameterType::kIntegers:
      for (const std::string_view part : parts_of(text)) {
        if (auto problem = keep_in_list(spec, number_of<std::int64_t>(spec, part))) return problem;
      }
      return std::nullopt;
    case ParameterType::kTexts:
      return keep_in_list(spec, text_of(spec, text));
    case ParameterType::kChoice:
      return keep(spec, choice_of(spec, text));
    case ParameterType::kFlag:
      return keep(spec, flag_of(spec, text));
    case ParameterType::kInteger:
      return keep(spec, number_of<std::int64_t>(spec, text));
    case ParameterType::kNumber:
      return keep(spec, number_of<double>(spec, text));
    case ParameterType::kDuration:
      return keep(spec, duration_ns_of(spec, text));
    case ParameterType::kPattern:
      return keep(spec, pattern_of(spec, text));
  }
  std::abort();
}

template <typename T>
const T* Parameters::find(std::string_view name, ParameterType type) const {
  const auto found = values_.find(row(name, type).name);
  return found == values_.end() ? nullptr : &std::get<T>(found->second);
}

bool Parameters::takes(std::string_view name) const {
  return std::any_of(table_.begin(), table_.end(), [&](const ParameterSpec& spec) { return spec.name == name; });
}

std::optional<GivenTime> Parameters::time(std::string_view name) const {
  const auto* value = find<GivenTime>(name, ParameterType::kTime);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

std::vector<store::ProcessSelector> Parameters::processes(std::string_view name) const {
  const auto* value = find<std::vector<store::ProcessSelector>>(name, ParameterType::kProcesses);
  return value == nullptr ? std::vector<store::ProcessSelector>() : *value;
}

std::vector<std::int64_t> Parameters::integers(std::string_view name) const {
  const auto* value = find<std::vector<std::int64_t>>(name, ParameterType::kIntegers);
  return value == nullptr ? std::vector<std::int64_t>() : *value;
}

std::vector<std::string> Parameters::texts(std::string_view name) const {
  const auto* value = find<std::vector<std::string>>(name, ParameterType::kTexts);
  return value == nullptr ? std::vector<std::string>() : *value;
}

std::string_view Parameters::choice(std::string_view name) const {
  const auto* value = find<std::string_view>(name, ParameterType::kChoice);
  return value == nullptr ? row(name, ParameterType::kChoice).choices.front() : *value;
}

bool Parameters::flag(std::string_view name) const {
  const auto* value = find<bool>(name, ParameterType::kFlag);
  return value == nullptr ? row(name, ParameterType::kFlag).fallback == "1" : *value;
}

std::optional<std::int64_t> Parameters::integer(std::string_view name) const {
  const auto* value = find<std::int64_t>(name, ParameterType::kInteger);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

std::optional<double> Parameters::number(std::string_view name) const {
  const auto* value = find<double>(name, ParameterType::kNumber);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

std::optional<std::int64_t> Parameters::duration_ns(std::string_view name) const {
  const auto* value = find<std::int64_t>(name, ParameterType::kDuration);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

std::optional<std::int64_t> Parameters::default_duration_ns(std::string_view name) const {
  return parse_seconds_ns(row(name, ParameterType::kDuration).fallback);
}

std::optional<NamePattern> Parameters::pattern(std::string_view name) const {
  const auto* value = find<NamePattern>(name, ParameterType::kPattern);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

const ParameterSpec& Parameters::row(std::string_view name, ParameterType type) const {
  const auto found = std::find_if(table_.begin(), table_.end(), [&](const auto& spec) { return spec.name == name; });
  if (found == table_.end() || found->type != type) std::abort();
  return *found;
}

}  // namespace flamed::api
