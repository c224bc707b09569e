// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a message of the Model Context Protocol, with the headers that a client of either version sends, and as
// the text of an answer to a tool.
//
// The first byte chooses the version, the second the tool whose answer the rest is.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <variant>

#include "api/mcp/mcp.h"
#include "api/mcp/message.h"
#include "api/mcp/tool_text.h"
#include "api/text/utf8.h"

namespace {

using namespace flamed;

void require(bool condition) {
  if (!condition) std::abort();
}

void check_text(std::string_view text) {
  require(api::is_utf8(text));
  for (const char c : text) require(c == '\n' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7F));
}

void read(std::string_view body, bool is_new) {
  const auto parsed = api::parse_message(body);
  api::Request request;
  request.method = "POST";
  request.target = "/mcp";
  request.body = body;
  request.mcp_protocol_version = is_new ? "2026-07-28" : "2025-11-25";
  if (const auto* message = std::get_if<api::McpMessage>(&parsed)) {
    require(message->id.size() <= api::kMostIdBytes && message->arguments.size() <= api::kMostArguments);
    require(api::is_utf8(message->method) && api::is_utf8(message->name.value_or("")));
    request.mcp_method = message->method;
    request.mcp_name = message->name.value_or("");
  }
  const auto outcome = api::read_message(request, "1.2.3");
  if (const auto* call = std::get_if<api::ToolCall>(&outcome)) {
    require(call->tool != nullptr && !call->id.empty());
    return;
  }
  const auto& response = std::get<api::Response>(outcome);
  require(response.status == 200 || response.status == 202 || response.status == 400 || response.status == 404);
  require(response.body.empty() == (response.status == 202));
  check_text(response.body);
}

void answer(std::string_view text, std::size_t tool) {
  const api::ToolSpec& spec = api::tool_table()[tool % api::tool_table().size()];
  const api::Response plain{
      200, "text/plain", std::string(text), {{"Flamed-Window", std::string(text.substr(0, 100))}}};
  const api::ToolCall call{&spec, {{}, tool / 16}, "\"id\"", true};
  const api::Response response = api::tool_response(call, plain, "1.2.3");
  require(response.body.size() <= api::kMostToolAnswerBytes);
  check_text(api::tool_text(spec, plain, tool / 16, "0123456789abcdef", api::kMostToolAnswerBytes));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 2, size - 2);
  read(rest, data[0] % 2 == 0);
  answer(rest, data[1]);
  return 0;
}
