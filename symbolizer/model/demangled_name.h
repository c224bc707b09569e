// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace flamed::symbolizer {

/// Longer names are shown mangled.
inline constexpr std::size_t kMaxMangledBytes = 4096;
/// Longer demangled names are shown mangled: with back references a name of 100 bytes can demangle to gigabytes.
inline constexpr std::size_t kMaxDemangledBytes = 64 * 1024;

/// A mangled name in readable form.
struct DemangledName {
  std::string name;       ///< without parameters, long template arguments as <...>
  std::string full_name;  ///< with both; empty if it equals `name`

  friend bool operator==(const DemangledName&, const DemangledName&) = default;
};

}  // namespace flamed::symbolizer
