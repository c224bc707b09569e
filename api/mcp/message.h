// SPDX-License-Identifier: Apache-2.0
//
// The body of POST /mcp: one message of JSON-RPC 2.0 as the Model Context Protocol has it. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/http/request_target.h"

namespace flamed::api {

inline constexpr std::size_t kMostMessageBytes = std::size_t{64} << 10;
/// Objects and lists within each other.
inline constexpr int kDeepestMessage = 32;
/// A client's own number or word for a request, which the answer repeats.
inline constexpr std::size_t kMostIdBytes = 128;
/// Values in the arguments of a tool.
inline constexpr std::size_t kMostArguments = 200;

/// Codes of JSON-RPC, and those that the protocol defines.
enum class McpError : std::int32_t {
  kNotJson = -32700,
  kBadRequest = -32600,
  kUnknownMethod = -32601,
  kBadParams = -32602,
  kHeaderMismatch = -32020,
  kUnsupportedVersion = -32022,
};

/// Why a message is not taken.
struct McpRefusal {
  McpError error;
  int status;  ///< of HTTP
  std::string what;
  std::string id{};         ///< as JSON; empty: not known
  std::string requested{};  ///< of kUnsupportedVersion
};

struct McpMessage {
  std::string id{};  ///< as JSON; empty: a notification, which has no answer
  std::string method{};
  /// Of params._meta, which only the newer version has: the protocol's version, and whether the client says what it
  /// can do.
  std::optional<std::string> version{};
  bool has_capabilities = false;
  std::optional<std::string> name{};  ///< params.name: of a tool
  /// params.arguments as the items of a query: a list is several of one name, true is 1.
  std::vector<QueryItem> arguments{};
};

std::variant<McpMessage, McpRefusal> parse_message(std::string_view body);

}  // namespace flamed::api
