// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace flamed::symbolizer {

/// Longer names are shown mangled.
inline constexpr std::size_t kMaxMangledBytes = 4096;
/// Longer demangled names are shown mangled: with back references a name of 100 bytes can demangle to gigabytes.
inline constexpr std::size_t kMaxDemangledBytes = 64 * 1024;

/// False: it is shown as it is. So it is with most functions of a machine, which are in C.
inline bool may_be_mangled(std::string_view name) {
  return name.starts_with("_Z") || name.starts_with("_R") || name.find("[go.shape.") != std::string_view::npos;
}

/// A mangled name in readable form.
struct DemangledName {
  std::string name;       ///< without parameters, long template arguments as <...>
  std::string full_name;  ///< with both; empty if it equals `name`

  friend bool operator==(const DemangledName&, const DemangledName&) = default;
};

}  // namespace flamed::symbolizer
