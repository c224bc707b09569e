// SPDX-License-Identifier: Apache-2.0
//
// The systemd unit and the container in the path of a control group. Pure; any thread.
//
// Users who may create cgroups choose their names, so the path proves neither.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace flamed::symbolizer {

/// The path in the text of /proc/PID/cgroup (cgroups(7)) in the unified hierarchy ("0::/path"). If that one is not used
/// and has only "/", the path in the hierarchy of cgroup v1 that systemd or a container runtime uses. Empty if there is
/// none. A view into `text`.
struct CgroupLine {
  std::string_view path;
  bool unified = false;
};
CgroupLine parse_proc_cgroup(std::string_view text);

/// How many levels a path leads up from the root of a cgroup namespace: 2 for "/../../system.slice".
std::size_t levels_above(std::string_view path);

/// The path in the hierarchy of one that is relative to the root `own` of a cgroup namespace: with "/a/b", "/../c" is
/// "/a/c". If `own` is empty, `path` is that already.
std::string path_in_hierarchy(std::string_view own, std::string_view path);

struct CgroupNames {
  /// The innermost systemd unit that is not a slice: "nginx.service", "docker-<id>.scope", or, of a user's own manager,
  /// "app-firefox-1234.scope". The manager itself ("init.scope" below its unit) counts as its unit.
  std::string unit;
  /// The innermost container: the id of 64 hex digits of Docker, containerd, CRI-O and Podman, or the name of an LXC
  /// container or of a machine registered with systemd. The runtimes' own monitors (conmon, lxc.monitor) are outside.
  std::string container;
};
CgroupNames parse_cgroup_path(std::string_view path);

}  // namespace flamed::symbolizer
