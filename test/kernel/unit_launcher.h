// SPDX-License-Identifier: Apache-2.0
//
// Runs the daemon with the rights that its unit has, without systemd. FLAMED_UNIT names the unit.
#pragma once

#include <string>
#include <vector>

namespace flamed::test {

/// The user and group nobody.
constexpr unsigned kUserOfUnit = 65534;

/// A launcher for RunningDaemon that sets the unit's capabilities as systemd does, with that user and group.
std::vector<std::string> launcher_of_the_unit();

/// With the unit's standard input, for the names of kernel functions, and its filter of system calls as well, where
/// there is the program that knows its groups.
std::vector<std::string> launcher_with_filter();

}  // namespace flamed::test
