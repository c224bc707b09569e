// SPDX-License-Identifier: Apache-2.0
//
// Pressure: how much of the time threads waited for a CPU, for I/O or for memory, as the kernel tells it (PSI,
// Documentation/accounting/psi.rst). Plain values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/clock.h"

namespace flamed {

enum class Resource : std::uint8_t { kCpu, kIo, kMemory };
inline constexpr std::size_t kResources = 3;
/// As files in /proc/pressure, in the configuration, and in answers.
inline constexpr std::array<std::string_view, kResources> kResourceNames{"cpu", "io", "memory"};

/// A minute of the wall clock in which the pressure of some resource reached its limit.
struct PressedMinute {
  WallTime start;
  /// Of the minute, from 0 to 1: at least one thread of the machine waited for the resource. By Resource.
  std::array<double, kResources> shares{};
  std::array<bool, kResources> is_high{};  ///< it reached the limit
};

/// Shares from which on a minute is marked; empty: never for that resource. By Resource.
using PressureLimits = std::array<std::optional<double>, kResources>;

/// Threads that wait for a CPU or a disk now and then are normal, and so is one that reads for half of a minute.
/// Threads wait for memory only if there is too little of it.
inline constexpr PressureLimits kUsualPressureLimits{0.5, 0.5, 0.1};

}  // namespace flamed
