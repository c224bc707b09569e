// SPDX-License-Identifier: Apache-2.0
//
// Landlock: the kernel's own fence (5.13 and later) around a process and its children. It takes no right to put up.
#pragma once

#include "base/result.h"

namespace flamed::symbolizer {

/// From now on the calling thread can't open, make, move or remove any file, and, as far as the kernel knows how
/// (Linux 6.7, 6.12), neither use TCP nor signal or connect to processes outside. What is open stays usable; stat(2)
/// is not covered. Needs no_new_privs. Code EOPNOTSUPP or ENOSYS: this kernel doesn't have it, or has it switched off.
Status forbid_outside_world();

}  // namespace flamed::symbolizer
