// SPDX-License-Identifier: Apache-2.0
//
// Landlock: the kernel's sandbox (5.13 and later) for a process and its children. Needs no rights.
#pragma once

#include "base/result.h"

namespace flamed::symbolizer {

/// From now on the calling thread can't open, create, move or remove any file, and, if the kernel supports it (Linux
/// 6.7, 6.12), can neither use TCP nor signal or connect to processes outside. Open files stay usable; stat(2) is not
/// covered. Needs no_new_privs. Code EOPNOTSUPP or ENOSYS: the kernel does not have it, or it is disabled.
Status forbid_outside_world();

}  // namespace flamed::symbolizer
