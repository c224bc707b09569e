// SPDX-License-Identifier: Apache-2.0
//
// Services: what engines for many hosts group profiles by. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "store/model/process_info.h"
#include "store/query/stack_profile.h"

namespace flamed::api {

/// The container's id as container tools print it or its name, else the unit, else the program's file name. A view of
/// the process's texts, or of a constant.
std::string_view service_name(const store::ProcessInfo& process);

/// The stacks of one service.
struct Service {
  std::string name{};                       ///< as from the process: not always UTF-8
  std::string unit{};                       ///< of all its processes, or empty
  std::string container{};                  ///< likewise
  std::vector<store::StackCount> counts{};  ///< one per (stack, truncation); `thread` is any of its threads with it
};

/// Sorted by name. Their counts are the profile's, added up over threads.
std::vector<Service> services_of(const store::StackProfile& profile);

}  // namespace flamed::api
