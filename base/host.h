// SPDX-License-Identifier: Apache-2.0
//
// What tells this host from others.
#pragma once

#include <string>

namespace flamed {

/// As the kernel has it, any bytes; empty if it can't be read.
std::string host_name();

/// machine-id(5), which stays the same as long as the system is installed; empty if there is none. It is a secret of a
/// kind: mix it into what is told, and don't tell it.
std::string machine_id();

}  // namespace flamed
