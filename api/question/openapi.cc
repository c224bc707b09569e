// SPDX-License-Identifier: Apache-2.0
#include "api/question/openapi.h"

#include "api/http/problem.h"
#include "api/question/route_table.h"
#include "api/text/json_writer.h"

namespace flamed::api {
namespace {

/// "getOpenApiJson" of "/openapi.json": unique, since paths are.
std::string operation_id(std::string_view method, std::string_view path) {
  std::string id(method);
  bool upper = true;
  for (const char c : path) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (is_letter) id += upper && c >= 'a' ? static_cast<char>(c - 'a' + 'A') : c;
    upper = !is_letter;
  }
  return id;
}

void append_number(JsonWriter& json, std::string_view key, double value) {
  json.key(key).number(static_cast<std::int64_t>(value));
}

/// The schema of one value. Lists of numbers and processes are texts with commas, as in the parser.
void append_schema(JsonWriter& json, const ParameterSpec& spec) {
  const auto with_default = [&] {
    if (!spec.fallback.empty()) json.key("default").string(spec.fallback);
  };
  json.begin_object();
  switch (spec.type) {
    case ParameterType::kTime:
      json.key("type").string("string").key("minLength").number(std::uint64_t{1});
      break;
    case ParameterType::kProcesses:
      json.key("type").string("array").key("maxItems").number(std::uint64_t{kMostValues});
      json.key("items").begin_object().key("type").string("string");
      json.key("pattern").string("^[1-9][0-9]*(@[0-9]+)?$").end_object();
      break;
    case ParameterType::kIntegers:
      json.key("type").string("array").key("maxItems").number(std::uint64_t{kMostValues});
      json.key("items").begin_object().key("type").string("integer");
      append_number(json, "minimum", spec.minimum);
      append_number(json, "maximum", spec.maximum);
      json.end_object();
      break;
    case ParameterType::kTexts:
      json.key("type").string("array").key("maxItems").number(std::uint64_t{kMostValues});
      json.key("items").begin_object().key("type").string("string").key("minLength").number(std::uint64_t{1});
      json.key("maxLength").number(std::uint64_t{kMaxTextBytes}).end_object();
      break;
    case ParameterType::kChoice:
      json.key("type").string("string").key("enum").begin_array();
      for (const std::string_view choice : spec.choices) json.string(choice);
      json.end_array();
      with_default();
      break;
    case ParameterType::kFlag:
      json.key("type").string("string").key("enum").begin_array();
      for (const char* word : {"1", "0", "true", "false"}) json.string(word);
      json.end_array();
      with_default();
      break;
    case ParameterType::kInteger:
    case ParameterType::kNumber:
      json.key("type").string(spec.type == ParameterType::kInteger ? "integer" : "number");
      append_number(json, "minimum", spec.minimum);
      append_number(json, "maximum", spec.maximum);
      if (!spec.fallback.empty()) json.key("default").raw(spec.fallback);
      break;
    case ParameterType::kDuration:
      json.key("type").string("string").key("pattern").string("^([0-9]+(\\.[0-9]+)?|([0-9]+[a-z]+)+)$");
      with_default();
      break;
    case ParameterType::kPattern:
      json.key("type").string("string").key("minLength").number(std::uint64_t{1});
      json.key("maxLength").number(std::uint64_t{NamePattern::kMaxBytes}).key("format").string("regex");
      break;
  }
  json.end_object();
}

void append_parameter(JsonWriter& json, const ParameterSpec& spec) {
  json.begin_object();
  json.key("name").string(spec.name);
  json.key("in").string("query");
  json.key("description").string(std::string(spec.description) + ". Allowed: " + allowed_values(spec) + ".");
  if (is_list(spec.type)) {
    json.key("style").string("form");
    // Texts may have commas, so each is a parameter of its own.
    json.key("explode").boolean(spec.type == ParameterType::kTexts);
  }
  append_schema(json.key("schema"), spec);
  json.end_object();
}

void append_responses(JsonWriter& json, const RouteSpec& route) {
  json.key("responses").begin_object();
  json.key("200").begin_object().key("description").string("The answer").key("content").begin_object();
  for (const std::string_view type : route.content_types) {
    json.key(type).begin_object().key("schema").begin_object();
    if (type == "application/json") json.key("type").string("object");
    json.end_object().end_object();
  }
  json.end_object().end_object();
  if (route.id == RouteId::kHealthz || route.id == RouteId::kReadyz) {
    json.key("503").begin_object().key("description").string("Not well, and why").key("content").begin_object();
    json.key("application/json").begin_object().key("schema").begin_object().key("type").string("object");
    json.end_object().end_object().end_object().end_object();
  }
  json.key("default").begin_object().key("$ref").string("#/components/responses/Problem").end_object();
  json.end_object();
}

void append_post(JsonWriter& json, const RouteSpec& route) {
  json.key("post").begin_object();
  json.key("operationId").string(operation_id("post", route.path));
  json.key("summary").string(route.post->summary);
  json.key("requestBody").begin_object().key("required").boolean(true);
  json.key("content").begin_object().key("application/json").begin_object();
  json.key("schema").raw(route.post->schema).end_object().end_object().end_object();
  json.key("responses").begin_object();
  json.key("201").begin_object().key("description").string("It is set").key("content").begin_object();
  json.key("application/json").begin_object().key("schema").begin_object().key("type").string("object");
  json.end_object().end_object().end_object().end_object();
  json.key("default").begin_object().key("$ref").string("#/components/responses/Problem").end_object();
  json.end_object().end_object();
}

}  // namespace

std::string render_openapi(std::string_view version) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.key("openapi").string("3.1.0");
  json.key("info").begin_object();
  json.key("title").string("flamed");
  json.key("summary").string("What was this machine's CPU doing, in any process, at any time?");
  json.key("version").string(version);
  json.key("license").begin_object().key("name").string("Apache-2.0").key("identifier").string("Apache-2.0");
  json.end_object().end_object();
  json.key("paths").begin_object();
  for (const RouteSpec& route : route_table()) {
    json.key(route.path).begin_object().key("get").begin_object();
    json.key("operationId").string(operation_id("get", route.path));
    json.key("summary").string(route.summary);
    json.key("parameters").begin_array();
    for (const ParameterSpec& spec : route.parameters) append_parameter(json, spec);
    json.end_array();
    append_responses(json, route);
    json.end_object();
    if (route.post != nullptr) append_post(json, route);
    json.end_object();
  }
  json.end_object();
  // No token is needed on the host: the kernel says who owns a connection.
  json.key("security").begin_array().begin_object().end_object();
  json.begin_object().key("token").begin_array().end_array().end_object().end_array();
  json.key("components").begin_object();
  json.key("securitySchemes").begin_object().key("token").begin_object();
  json.key("type").string("http").key("scheme").string("bearer");
  json.key("description").string("A token of flamed's token_file, without which other hosts get no answer");
  json.end_object().end_object();
  json.key("responses").begin_object().key("Problem").begin_object();
  json.key("description").string("What is wrong and what to do about it (RFC 9457)");
  json.key("content").begin_object().key(kProblemContentType).begin_object().key("schema").begin_object();
  json.key("type").string("object");
  json.key("required").begin_array().string("type").string("title").string("status").string("detail").end_array();
  json.key("properties").begin_object();
  for (const char* text : {"type", "title", "detail", "parameter"}) {
    json.key(text).begin_object().key("type").string("string").end_object();
  }
  json.key("status").begin_object().key("type").string("integer").end_object();
  json.end_object();
  json.end_object().end_object().end_object().end_object().end_object().end_object();
  json.end_object();
  out += '\n';
  return out;
}

}  // namespace flamed::api
