// SPDX-License-Identifier: Apache-2.0
//
// From a module's open file to its unwind rows: reads, then builds.
#pragma once

#include "base/result.h"
#include "unwinder/row.h"

namespace flamed::symbolizer {

/// Rows by file offset. A file without unwind information, or for another architecture, gives no rows and is no error.
Result<unwinder::UnwindRows> read_module_rows(int fd);

/// Of the vdso that is mapped into this process, by offset from its start.
Result<unwinder::UnwindRows> read_vdso_rows();

}  // namespace flamed::symbolizer
