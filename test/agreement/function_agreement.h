// SPDX-License-Identifier: Apache-2.0
//
// Do the functions that flamed reads from .eh_frame begin and end where libdw's records (dwarf_next_cfi) say?
#pragma once

#include <string>

#include "test/agreement/tally.h"

namespace flamed::agreement {

/// Of the file behind `fd`: all of its functions.
void compare_functions(const std::string& path, int fd, Tally& tally);

}  // namespace flamed::agreement
