// SPDX-License-Identifier: Apache-2.0
//
// The host's control groups as they are seen from a container. Any thread.
//
// A container has a cgroup namespace as a rule (cgroup_namespaces(7)): /proc shows paths relative to the namespace's
// root, "/../nginx.service", and does not say where that root is.
#pragma once

#include <string>

#include "base/result.h"

namespace flamed::symbolizer {

struct CgroupTree {
  std::string mount{};  ///< the host's unified hierarchy, from its root on
  std::string own{};    ///< in a cgroup namespace, the path of its root in the hierarchy, "/a/b"; elsewhere empty
};

/// `proc` is where procfs is mounted, `mount` the unified hierarchy. In a namespace, whose own mount begins at its
/// root, the folder with that inode is searched for in the mount of process 1.
Result<CgroupTree> find_cgroup_tree(const std::string& proc, const std::string& mount);

}  // namespace flamed::symbolizer
