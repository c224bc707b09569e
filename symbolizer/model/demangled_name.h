// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace flamed::symbolizer {

/// Longer names are shown as they are.
inline constexpr std::size_t kMaxMangledBytes = 4096;
/// A name that demangles to more is shown mangled: back references make a name of 100 bytes stand for gigabytes.
inline constexpr std::size_t kMaxDemangledBytes = 64 * 1024;

/// What a person reads in the place of a mangled name.
struct DemangledName {
  std::string name;       ///< without parameters, long template arguments as <...>
  std::string full_name;  ///< with both; empty where that is `name`

  friend bool operator==(const DemangledName&, const DemangledName&) = default;
};

}  // namespace flamed::symbolizer
