// SPDX-License-Identifier: Apache-2.0
//
// Do the unwinder's rows say what libdw says? At the start of a row, one byte before it and at a random place within,
// one step is made from random registers over a random stack: once by our rule, once by evaluating what libdw
// (dwarf_cfi_addrframe) gives for that address. Compared are the caller's sp (the CFA), pc (the return address) and fp,
// and whether it was interrupted.
#pragma once

#include <cstddef>
#include <string>

#include "test/agreement/tally.h"

namespace flamed::agreement {

/// Of the file behind `fd`: about `most` rows of it, spread evenly; 0: all.
void compare_unwind(const std::string& path, int fd, std::size_t most, Tally& tally);

}  // namespace flamed::agreement
