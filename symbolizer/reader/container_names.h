// SPDX-License-Identifier: Apache-2.0
//
// The names of a container in what its runtime has written. Pure; any thread.
//
//   containerd, CRI-O  {"annotations": {"io.kubernetes.cri.container-name": "web", ...}, "process": {"env": [...]},
//   ...} Docker             {"ID": ..., "Name": "/web", "Config": {"Labels": {...}, "Env": [...]}, ...} Podman [{"id":
//   ..., "names": ["web"], ...}, ...]
#pragma once

#include <string_view>

#include "base/result.h"
#include "symbolizer/model/container_file.h"

namespace flamed::symbolizer {

/// More than real ones: that of a host with a thousand containers has 2 MB.
inline constexpr std::size_t kMaxContainerFileBytes = std::size_t{16} << 20;

/// Looks at the keys above alone and keeps no other text. The names are safe to print, have no slash and at most
/// kMaxContainerNameBytes.
Result<ContainerNames> parse_container_file(std::string_view json, ContainerFormat format, std::string_view id);

/// The same of a file, from its beginning.
Result<ContainerNames> read_container_file(int fd, ContainerFormat format, std::string_view id);

/// The names in "<pod>_<namespace>_<container>-<id>.log", as the kubelet calls links in /var/log/containers. Empty: it
/// is no such name, or another container's.
ContainerNames parse_container_log_name(std::string_view file, std::string_view id);

}  // namespace flamed::symbolizer
