// SPDX-License-Identifier: Apache-2.0
//
// Services: what engines for many hosts group profiles by. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "store/model/container_text.h"
#include "store/model/process_info.h"
#include "store/query/stack_profile.h"

namespace flamed::api {

/// In Kubernetes namespace/container, since pods come and go; else the container's name, or its id as container tools
/// print it; else the unit, else the program's file name.
std::string service_name(const store::ProcessInfo& process);

/// The container's name, in Kubernetes within its pod, or else its id. Empty: it is in none.
std::string_view container_of(const store::ProcessInfo& process);
/// Empty parts: it is in none, or that is not known.
store::ContainerParts pod_of(const store::ProcessInfo& process);

/// The stacks of one service.
struct Service {
  std::string name{};                       ///< as from the process: not always UTF-8
  std::string unit{};                       ///< of all its processes, or empty
  std::string container_id{};               ///< likewise; the name, if there is no id
  std::string container{};                  ///< likewise; as of container_of()
  std::string pod{};                        ///< likewise
  std::string pod_namespace{};              ///< likewise
  std::vector<store::StackCount> counts{};  ///< one per (stack, truncation); `thread` is any of its threads with it
};

/// Sorted by name. Their counts are the profile's, added up over threads.
std::vector<Service> services_of(const store::StackProfile& profile);

}  // namespace flamed::api
