// SPDX-License-Identifier: Apache-2.0
//
// The names of a container in what its runtime has written. Pure; any thread.
//
//   containerd, CRI-O
//     {"annotations": {"io.kubernetes.cri.container-name": "web", ...}, "process": {"env": [...]}, ...}
//
//   Docker; the answer of its API, too, where ID is Id
//     {"ID": ..., "Name": "/web", "Config": {"Labels": {...}, "Env": [...]}, ...}
//
//   Podman
//     [{"id": ..., "names": ["web"], ...}, ...]
#pragma once

#include <string>
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

/// Of any text: a name as above.
std::string clean_container_name(std::string_view name);

/// Takes the value of an annotation or a label if its key is one of those that have names.
void take_container_annotation(std::string_view key, std::string_view value, ContainerNames& names);

/// The names in "<pod>_<namespace>_<container>-<id>.log", as the kubelet calls links in /var/log/containers. Empty: it
/// is no such name, or another container's.
ContainerNames parse_container_log_name(std::string_view file, std::string_view id);

}  // namespace flamed::symbolizer
