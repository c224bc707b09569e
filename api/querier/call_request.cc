// SPDX-License-Identifier: Apache-2.0
#include "api/querier/call_request.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "api/text/utf8.h"
#include "base/protobuf_reader.h"

namespace flamed::api {
namespace {

/// A choice of which flamed has only the first ones: their names in JSON, and their numbers.
using Choices = std::span<const std::string_view>;
/// Something that flamed does not have, which may be there if it is empty.
struct Absent {};

using Target = std::variant<std::string CallRequest::*, std::vector<std::string> CallRequest::*,
                            std::int64_t CallRequest::*, double CallRequest::*, Choices, Absent>;

struct FieldSpec {
  std::uint32_t number;
  std::string_view name;       ///< in JSON
  std::string_view long_name;  ///< in the schema, which JSON may have as well
  Target target;
};

constexpr std::array<std::string_view, 2> kFormats{"PROFILE_FORMAT_UNSPECIFIED", "PROFILE_FORMAT_FLAMEGRAPH"};
constexpr std::array<std::string_view, 1> kAggregations{"TIME_SERIES_AGGREGATION_TYPE_SUM"};

constexpr std::array<FieldSpec, 2> kProfileTypes{{
    {1, "start", "start", &CallRequest::start_ms},
    {2, "end", "end", &CallRequest::end_ms},
}};
constexpr std::array<FieldSpec, 3> kLabelNames{{
    {1, "matchers", "matchers", &CallRequest::matchers},
    {2, "start", "start", &CallRequest::start_ms},
    {3, "end", "end", &CallRequest::end_ms},
}};
constexpr std::array<FieldSpec, 4> kLabelValues{{
    {1, "name", "name", &CallRequest::label},
    {2, "matchers", "matchers", &CallRequest::matchers},
    {3, "start", "start", &CallRequest::start_ms},
    {4, "end", "end", &CallRequest::end_ms},
}};
constexpr std::array<FieldSpec, 4> kSeries{{
    {1, "matchers", "matchers", &CallRequest::matchers},
    {2, "labelNames", "label_names", &CallRequest::labels},
    {3, "start", "start", &CallRequest::start_ms},
    {4, "end", "end", &CallRequest::end_ms},
}};
constexpr std::array<FieldSpec, 9> kSelectSeries{{
    {1, "profileTypeID", "profile_typeID", &CallRequest::profile_type},
    {2, "labelSelector", "label_selector", &CallRequest::selector},
    {3, "start", "start", &CallRequest::start_ms},
    {4, "end", "end", &CallRequest::end_ms},
    {5, "groupBy", "group_by", &CallRequest::labels},
    {6, "step", "step", &CallRequest::step_s},
    {7, "aggregation", "aggregation", Choices(kAggregations)},
    {8, "stackTraceSelector", "stack_trace_selector", Absent{}},
    {9, "limit", "limit", &CallRequest::limit},
}};
constexpr std::array<FieldSpec, 10> kSelectMergeStacktraces{{
    {1, "profileTypeID", "profile_typeID", &CallRequest::profile_type},
    {2, "labelSelector", "label_selector", &CallRequest::selector},
    {3, "start", "start", &CallRequest::start_ms},
    {4, "end", "end", &CallRequest::end_ms},
    {5, "maxNodes", "max_nodes", &CallRequest::max_nodes},
    {6, "format", "format", Choices(kFormats)},
    {7, "stackTraceSelector", "stack_trace_selector", Absent{}},
    {8, "profileIdSelector", "profile_id_selector", Absent{}},
    {10, "traceIdSelector", "trace_id_selector", Absent{}},
    {11, "spanSelector", "span_selector", Absent{}},
}};

struct MethodSpec {
  std::string_view name;
  CallMethod method;
  std::span<const FieldSpec> fields;
};

constexpr std::array<MethodSpec, 7> kMethods{{
    {"ProfileTypes", CallMethod::kProfileTypes, kProfileTypes},
    {"LabelNames", CallMethod::kLabelNames, kLabelNames},
    {"LabelValues", CallMethod::kLabelValues, kLabelValues},
    {"Series", CallMethod::kSeries, kSeries},
    {"SelectSeries", CallMethod::kSelectSeries, kSelectSeries},
    {"SelectMergeStacktraces", CallMethod::kSelectMergeStacktraces, kSelectMergeStacktraces},
    {"GetProfileStats", CallMethod::kGetProfileStats, {}},
}};

std::span<const FieldSpec> fields_of(CallMethod method) {
  const auto* const row =
      std::find_if(kMethods.begin(), kMethods.end(), [&](const MethodSpec& spec) { return spec.method == method; });
  return row->fields;
}

Problem malformed(const std::string& what) { return bad_request("The request can't be decoded: " + what + "."); }

Problem wrong_type(const FieldSpec& field) {
  return malformed("its field " + std::string(field.name) + " has a value of another type");
}

Problem not_here(const FieldSpec& field) {
  return unimplemented("flamed has no " + std::string(field.name) + " other than the default: leave it out.");
}

std::optional<Problem> add_text(const FieldSpec& field, std::string_view text, std::vector<std::string>& list) {
  const std::size_t most = field.name == "matchers" ? kMostCallSelectors : kMostCallLabels;
  if (list.size() == most) {
    return bad_request("There are more than " + std::to_string(most) + " " + std::string(field.name) + ".");
  }
  list.emplace_back(text);
  return std::nullopt;
}

/// Sets a field of protocol buffers.
class ProtobufSetter {
 public:
  ProtobufSetter(const FieldSpec& field, const ProtobufField& value, CallRequest& request)
      : field_(field), value_(value), request_(request) {}

  std::optional<Problem> operator()(std::string CallRequest::*member) {
    if (!is_text()) return wrong_type(field_);
    request_.*member = value_.bytes;
    return std::nullopt;
  }
  std::optional<Problem> operator()(std::vector<std::string> CallRequest::*member) {
    if (!is_text()) return wrong_type(field_);
    return add_text(field_, value_.bytes, request_.*member);
  }
  std::optional<Problem> operator()(std::int64_t CallRequest::*member) {
    if (value_.type != WireType::kVarint) return wrong_type(field_);
    request_.*member = static_cast<std::int64_t>(value_.value);
    return std::nullopt;
  }
  std::optional<Problem> operator()(double CallRequest::*member) {
    if (value_.type != WireType::kFixed64) return wrong_type(field_);
    request_.*member = std::bit_cast<double>(value_.value);
    return std::nullopt;
  }
  std::optional<Problem> operator()(Choices choices) {
    if (value_.type != WireType::kVarint) return wrong_type(field_);
    return value_.value < choices.size() ? std::nullopt : std::optional(not_here(field_));
  }
  std::optional<Problem> operator()(Absent /*absent*/) {
    if (value_.type != WireType::kBytes) return wrong_type(field_);
    return value_.bytes.empty() ? std::nullopt : std::optional(not_here(field_));
  }

 private:
  [[nodiscard]] bool is_text() const { return value_.type == WireType::kBytes && is_utf8(value_.bytes); }

  const FieldSpec& field_;
  const ProtobufField& value_;
  CallRequest& request_;
};

std::variant<CallRequest, Problem> decode_protobuf(std::span<const FieldSpec> fields, std::string_view body) {
  CallRequest request;
  ProtobufReader reader(body);
  while (true) {
    const auto read = reader.next();
    if (!read.ok()) return malformed(read.error().message());
    if (!read.value().has_value()) return request;
    const ProtobufField& value = **read;
    const auto field =
        std::find_if(fields.begin(), fields.end(), [&](const FieldSpec& spec) { return spec.number == value.number; });
    if (field == fields.end()) continue;
    if (auto problem = std::visit(ProtobufSetter(*field, value, request), field->target)) return std::move(*problem);
  }
}

using Json = nlohmann::json;

/// A whole text as a number.
template <typename Number>
std::optional<Number> number_in(const std::string& text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_whole = error == std::errc{} && end == text.data() + text.size();
  return is_whole ? std::optional(value) : std::nullopt;
}

/// Nothing, or made of nothing: as an empty list within an object.
bool is_empty(const Json& value) {
  if (value.is_null()) return true;
  return value.is_structured() && std::all_of(value.begin(), value.end(), is_empty);
}

/// Sets a field of JSON. Numbers may be texts, and null is the default.
class JsonSetter {
 public:
  JsonSetter(const FieldSpec& field, const Json& value, CallRequest& request)
      : field_(field), value_(value), request_(request) {}

  std::optional<Problem> operator()(std::string CallRequest::*member) {
    if (!value_.is_string()) return wrong_type(field_);
    request_.*member = value_.get_ref<const std::string&>();
    return std::nullopt;
  }
  std::optional<Problem> operator()(std::vector<std::string> CallRequest::*member) {
    if (!value_.is_array()) return wrong_type(field_);
    for (const Json& item : value_) {
      if (!item.is_string()) return wrong_type(field_);
      if (auto problem = add_text(field_, item.get_ref<const std::string&>(), request_.*member)) return problem;
    }
    return std::nullopt;
  }
  std::optional<Problem> operator()(std::int64_t CallRequest::*member) {
    std::optional<std::int64_t> number;
    if (value_.is_number_integer()) number = value_.get<std::int64_t>();
    if (value_.is_string()) number = number_in<std::int64_t>(value_.get_ref<const std::string&>());
    return set(number, member);
  }
  std::optional<Problem> operator()(double CallRequest::*member) {
    std::optional<double> number;
    if (value_.is_number()) number = value_.get<double>();
    if (value_.is_string()) number = number_in<double>(value_.get_ref<const std::string&>());
    return set(number, member);
  }
  std::optional<Problem> operator()(Choices choices) {
    bool is_here = false;
    if (value_.is_number_unsigned()) is_here = value_.get<std::uint64_t>() < choices.size();
    if (value_.is_string()) {
      is_here = std::find(choices.begin(), choices.end(), value_.get_ref<const std::string&>()) != choices.end();
    }
    return is_here ? std::nullopt : std::optional(not_here(field_));
  }
  std::optional<Problem> operator()(Absent /*absent*/) {
    return is_empty(value_) ? std::nullopt : std::optional(not_here(field_));
  }

 private:
  template <typename Number>
  std::optional<Problem> set(std::optional<Number> number, Number CallRequest::*member) {
    if (!number) return wrong_type(field_);
    request_.*member = *number;
    return std::nullopt;
  }

  const FieldSpec& field_;
  const Json& value_;
  CallRequest& request_;
};

std::variant<CallRequest, Problem> decode_json(std::span<const FieldSpec> fields, std::string_view body) {
  // What is nested deeper belongs to no field that is read, and would only take memory.
  constexpr int kDeepest = 4;
  const auto is_shallow = [](int depth, Json::parse_event_t /*event*/, Json& /*parsed*/) { return depth <= kDeepest; };
  const Json json = Json::parse(body.begin(), body.end(), is_shallow, /*allow_exceptions=*/false);
  if (!json.is_object()) return malformed("it is not a JSON object");
  CallRequest request;
  for (const auto& item : json.items()) {
    const std::string& key = item.key();
    const Json& value = item.value();
    const auto field = std::find_if(fields.begin(), fields.end(),
                                    [&](const FieldSpec& spec) { return spec.name == key || spec.long_name == key; });
    if (field == fields.end() || value.is_null()) continue;
    if (auto problem = std::visit(JsonSetter(*field, value, request), field->target)) return std::move(*problem);
  }
  return request;
}

}  // namespace

std::optional<CallMethod> find_call_method(std::string_view name) {
  const auto* const row =
      std::find_if(kMethods.begin(), kMethods.end(), [&](const MethodSpec& spec) { return spec.name == name; });
  return row == kMethods.end() ? std::nullopt : std::optional(row->method);
}

std::variant<CallRequest, Problem> decode_call(CallMethod method, CallEncoding encoding, std::string_view body) {
  const std::span<const FieldSpec> fields = fields_of(method);
  return encoding == CallEncoding::kProtobuf ? decode_protobuf(fields, body) : decode_json(fields, body);
}

}  // namespace flamed::api
