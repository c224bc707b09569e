// SPDX-License-Identifier: Apache-2.0
//
// Unwind rows in a file of flamed's own, so that they need not be built again. Anybody with the right to write there
// may have changed it, and a crash or a bad disk may have damaged it: so the worker reads it, and only uses it if it is
// whole and the module still has the bytes that the rows follow from.
//
//   "flamed rows", the edition, the value as of value_codec.h, a digest of all this with the value's key
//
// Numbers have their native layout: such a file is of use on this machine only.
#pragma once

#include "base/result.h"
#include "symbolizer/ipc/wire.h"
#include "symbolizer/model/sourced_rows.h"

namespace flamed::symbolizer {

/// `rows` must outlive the result, which refers to its arrays.
WireWriter kept_rows_of(const SourcedRows& rows);

/// The rows in `kept`, from its current position, if they are those of the module `fd`. An Error says why not.
Result<SourcedRows> read_kept_rows(int fd, int kept);

}  // namespace flamed::symbolizer
