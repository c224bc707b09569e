// SPDX-License-Identifier: Apache-2.0
//
// Two profiles compared, as JSON or text. Pure; any thread.
#pragma once

#include <cstddef>
#include <string>

#include "api/render/column_writer.h"
#include "store/query/diff.h"

namespace flamed::api {

/// The tree as d3-flame-graph reads it, with the facts of both sides (before, after), normalise, warnings and the
/// functions that changed most beside it. Of a node: value and self are those of the side after, value_before and
/// self_before those of the side before, change is that of its normalised total and change_self of its own, z and
/// significant belong to change_self.
std::string render_diff_flamegraph(const store::ProfileDiff& diff, double frequency_hz);

/// The same in columns: those of nodes are frame, depth, self, self_before, and significant (1 or 0).
std::string render_diff_columns(const store::ProfileDiff& diff, double frequency_hz, ColumnForm form);

/// "outermost;...;innermost before after", as difffolded.pl writes it, below "# before: ...", "# after: ..." and "#
/// ..." with what warnings there are, which flamegraph.pl leaves out since no such line ends in a number.
std::string render_diff_folded(const store::ProfileDiff& diff);

/// Facts and functions: [{name, ..., before: {self, total}, after: {...}, change_self, change_total, z, significant}].
std::string render_diff_top_json(const store::ProfileDiff& diff, double frequency_hz, std::size_t rows);
/// The same functions as a table for reading, below the warnings of both sides.
std::string render_diff_top_text(const store::ProfileDiff& diff, std::size_t rows);

}  // namespace flamed::api
