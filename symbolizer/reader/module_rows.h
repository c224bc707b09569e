// SPDX-License-Identifier: Apache-2.0
//
// From a module's open file to its unwind rows: reads, then builds.
#pragma once

#include "base/result.h"
#include "symbolizer/model/sourced_rows.h"
#include "unwinder/row.h"

namespace flamed::symbolizer {

/// Rows by file offset. A file without unwind information, or for another architecture, gives no rows and is not an
/// error. If the file changes meanwhile, the source may have no ranges.
Result<SourcedRows> read_module_rows(int fd);

/// Rows of this process's own vdso, by offset from its start.
Result<unwinder::UnwindRows> read_vdso_rows();

}  // namespace flamed::symbolizer
