// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace flamed::symbolizer {

/// What a person reads in the place of a mangled name.
struct DemangledName {
  std::string name;       ///< without parameters, long template arguments as <...>
  std::string full_name;  ///< with both; empty where that is `name`

  friend bool operator==(const DemangledName&, const DemangledName&) = default;
};

}  // namespace flamed::symbolizer
