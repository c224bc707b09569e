// SPDX-License-Identifier: Apache-2.0
#include "api/mcp/message.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "api/text/json_writer.h"

namespace flamed::api {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kVersionMember = "io.modelcontextprotocol/protocolVersion";
constexpr std::string_view kCapabilitiesMember = "io.modelcontextprotocol/clientCapabilities";

McpRefusal refused(McpError error, std::string what, std::string id = {}) {
  return {error, 400, std::move(what), std::move(id)};
}

/// Of brackets outside of strings; enough for JSON, and what is none is refused anyway. The parser keeps a document
/// however deep it is.
bool is_too_deep(std::string_view body) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < body.size(); ++i) {
    const char c = body[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kDeepestMessage) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

const Json* member(const Json& object, std::string_view name) {
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

/// One value as a query has it; empty: none that a parameter takes.
std::optional<std::string> text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "1" : "0";
  if (value.is_number()) return value.dump();
  return std::nullopt;
}

std::optional<std::string> add_arguments(const Json& arguments, std::vector<QueryItem>& items) {
  const std::string what =
      "The arguments of a tool are an object whose members are texts, numbers, true, false, or lists "
      "of these, at most " +
      std::to_string(kMostArguments) + " in all.";
  if (!arguments.is_object()) return what;
  for (const auto& [name, value] : arguments.items()) {
    if (value.is_null()) continue;
    const bool is_list = value.is_array();
    const std::size_t count = is_list ? value.size() : 1;
    for (std::size_t i = 0; i < count; ++i) {
      auto text = text_of(is_list ? value[i] : value);
      if (!text || items.size() == kMostArguments) return what;
      items.push_back({name, std::move(*text)});
    }
  }
  return std::nullopt;
}

/// What is wrong with params.
std::optional<std::string> add_params(const Json& params, McpMessage& message) {
  if (!params.is_object()) return "The params of a message are an object.";
  if (const Json* meta = member(params, "_meta")) {
    if (!meta->is_object()) return "params._meta is an object.";
    if (const Json* version = member(*meta, kVersionMember)) {
      if (!version->is_string()) return std::string(kVersionMember) + " is a string.";
      message.version = version->get<std::string>();
    }
    if (const Json* capabilities = member(*meta, kCapabilitiesMember)) {
      if (!capabilities->is_object()) return std::string(kCapabilitiesMember) + " is an object.";
      message.has_capabilities = true;
    }
  }
  if (const Json* name = member(params, "name")) {
    if (!name->is_string()) return "params.name is a string.";
    message.name = name->get<std::string>();
  }
  const Json* arguments = message.method == "tools/call" ? member(params, "arguments") : nullptr;
  return arguments == nullptr ? std::nullopt : add_arguments(*arguments, message.arguments);
}

}  // namespace

std::variant<McpMessage, McpRefusal> parse_message(std::string_view body) {
  if (is_too_deep(body)) {
    return refused(McpError::kBadRequest, "The message is nested deeper than " + std::to_string(kDeepestMessage) + ".");
  }
  const Json json = Json::parse(body.begin(), body.end(), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return refused(McpError::kNotJson, "The body is not JSON in UTF-8.");
  if (json.is_array()) {
    return refused(McpError::kBadRequest, "The body is a list: send each message in a request of its own.");
  }
  if (!json.is_object()) return refused(McpError::kBadRequest, "The body is not a JSON object.");
  McpMessage message;
  if (const Json* id = member(json, "id")) {
    if (!id->is_string() && !id->is_number_integer()) {
      return refused(McpError::kBadRequest, "The id of a request is a string or a whole number.");
    }
    if (id->is_string()) {
      append_json_string(message.id, id->get<std::string>());
    } else {
      message.id = id->dump();
    }
    if (message.id.size() > kMostIdBytes) {
      return refused(McpError::kBadRequest, "The id has more than " + std::to_string(kMostIdBytes) + " bytes.");
    }
  }
  const Json* version = member(json, "jsonrpc");
  if (version == nullptr || *version != "2.0") {
    return refused(McpError::kBadRequest, R"(The message has no "jsonrpc": "2.0".)", message.id);
  }
  const Json* method = member(json, "method");
  if (method == nullptr || !method->is_string()) {
    return refused(McpError::kBadRequest, "The message has no method: flamed asks nothing, so it takes no answers.",
                   message.id);
  }
  message.method = method->get<std::string>();
  if (const Json* params = member(json, "params")) {
    if (auto wrong = add_params(*params, message)) {
      return refused(McpError::kBadParams, std::move(*wrong), message.id);
    }
  }
  return message;
}

}  // namespace flamed::api
