// SPDX-License-Identifier: Apache-2.0
//
// What the path of a control group says of its processes: the systemd unit and the container. Pure; any thread.
//
// Who may make cgroups names them, so both are what a path claims, not what is proved.
#pragma once

#include <string>
#include <string_view>

namespace flamed::symbolizer {

/// The path in the text of /proc/PID/cgroup (cgroups(7)): that of the unified hierarchy ("0::/path"). Where that one is
/// not in use and says no more than "/", the path of the first version's hierarchy that systemd or a container runtime
/// keeps. Empty when there is none. A view into `text`.
struct CgroupLine {
  std::string_view path;
  bool unified = false;
};
CgroupLine parse_proc_cgroup(std::string_view text);

struct CgroupNames {
  /// The innermost systemd unit that is no slice: "nginx.service", "docker-<id>.scope", of a user's own manager
  /// "app-firefox-1234.scope". The manager itself ("init.scope" below the unit that runs it) counts as that unit.
  std::string unit;
  /// The innermost container: the id of 64 hex digits that Docker, containerd, CRI-O and Podman give, or the name of an
  /// LXC container or of a machine registered with systemd. The runtimes' own watchers (conmon, lxc.monitor) are
  /// outside.
  std::string container;
};
CgroupNames parse_cgroup_path(std::string_view path);

}  // namespace flamed::symbolizer
