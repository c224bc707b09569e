// SPDX-License-Identifier: Apache-2.0
//
// What container runtimes have written about a container. These files also have the environment of the container, and
// so secrets: nothing but names leaves the process that reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace flamed::symbolizer {

enum class ContainerFormat : std::uint8_t {
  kOciConfig,         ///< config.json of the OCI runtime specification, by containerd and CRI-O: annotations
  kDockerConfig,      ///< config.v2.json of Docker
  kContainerStorage,  ///< containers.json of Podman and CRI-O: all containers
};
inline constexpr std::size_t kContainerFormats = 3;

struct ContainerNames {
  std::string name{};           ///< in Kubernetes within its pod
  std::string pod{};            ///< empty: it is in none
  std::string pod_namespace{};  ///< likewise

  friend bool operator==(const ContainerNames&, const ContainerNames&) = default;
};

/// Of each name. The longest that Kubernetes allows has 253.
inline constexpr std::size_t kMaxContainerNameBytes = 256;

/// The id of Docker, containerd, CRI-O and Podman.
inline bool is_container_id(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace flamed::symbolizer
