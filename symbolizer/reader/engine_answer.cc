// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/reader/engine_answer.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/file.h"
#include "symbolizer/reader/container_names.h"
#include "symbolizer/reader/cri_exchange.h"

namespace flamed::symbolizer {
namespace {

Error no_id() { return Error("it is no container's id", EINVAL); }
Error too_large() { return Error("it is larger than any such answer", EFBIG); }

Result<ContainerNames> parse_docker_answer(std::string_view answer, std::string_view id) {
  constexpr std::string_view kVersion = "HTTP/1.";
  constexpr std::size_t kStatusAt = 9;
  constexpr std::size_t kStatusBytes = 3;
  constexpr std::string_view kHeadEnd = "\r\n\r\n";
  const std::size_t head_end = answer.find(kHeadEnd);
  if (!answer.starts_with(kVersion) || head_end == std::string_view::npos) return Error("it is no answer of HTTP/1");
  const std::string status(answer.substr(0, head_end).substr(std::min(kStatusAt, head_end), kStatusBytes));
  if (status == "404") return ContainerNames();
  if (status.size() != kStatusBytes || status.find_first_not_of("0123456789") != std::string::npos) {
    return Error("it is no answer of HTTP/1");
  }
  if (status != "200") return Error("the engine refuses to answer: HTTP status " + status);
  return parse_container_file(answer.substr(head_end + kHeadEnd.size()), ContainerFormat::kDockerConfig, id);
}

Result<ContainerNames> read_cri_answer(int connection, std::string_view id) {
  CriExchange exchange(id);
  std::array<char, 16 * 1024> buffer{};
  for (std::size_t bytes = 0; !exchange.is_over();) {
    const ssize_t size = ::read(connection, buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return Error::from_errno("read");
    if (size == 0) break;
    bytes += static_cast<std::size_t>(size);
    if (bytes > kMaxEngineAnswerBytes) return too_large();
    if (Status taken = exchange.take({buffer.data(), static_cast<std::size_t>(size)}); !taken) return taken.error();
  }
  return exchange.names();
}

}  // namespace

std::string engine_question(EngineProtocol protocol, std::string_view id) {
  // Nothing else may get into a request.
  if (!is_container_id(id)) return {};
  if (protocol == EngineProtocol::kCri) return CriExchange(id).question();
  return "GET /containers/" + std::string(id) + "/json HTTP/1.0\r\nHost: localhost\r\n\r\n";
}

Result<ContainerNames> parse_engine_answer(std::string_view answer, EngineProtocol protocol, std::string_view id) {
  if (!is_container_id(id)) return no_id();
  if (answer.size() > kMaxEngineAnswerBytes) return too_large();
  if (protocol == EngineProtocol::kDocker) return parse_docker_answer(answer, id);
  CriExchange exchange(id);
  if (Status taken = exchange.take(answer); !taken) return taken.error();
  return exchange.names();
}

Result<ContainerNames> read_engine_answer(int connection, EngineProtocol protocol, std::string_view id) {
  if (!is_container_id(id)) return no_id();
  if (protocol == EngineProtocol::kCri) return read_cri_answer(connection, id);
  const Result<std::string> answer = read_fd(connection, kMaxEngineAnswerBytes);
  if (!answer) return answer.error().code() == EFBIG ? too_large() : answer.error();
  return parse_docker_answer(*answer, id);
}

}  // namespace flamed::symbolizer
