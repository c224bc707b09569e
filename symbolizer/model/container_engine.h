// SPDX-License-Identifier: Apache-2.0
//
// Container engines that may be asked about containers. Whoever can write to the socket of one is root on this host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace flamed::symbolizer {

enum class EngineProtocol : std::uint8_t {
  kCri,     ///< containerd and CRI-O: the Container Runtime Interface of Kubernetes, runtime.v1, by gRPC
  kDocker,  ///< Docker and Podman: Docker's API, by HTTP
};
inline constexpr std::size_t kEngineProtocols = 2;

struct ContainerEngine {
  EngineProtocol protocol = EngineProtocol::kCri;
  std::string socket{};  ///< absolute path

  friend bool operator==(const ContainerEngine&, const ContainerEngine&) = default;
};

}  // namespace flamed::symbolizer
