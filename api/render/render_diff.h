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
/// functions that changed most. A node's value and self are of the side after, value_before and self_before of the side
/// before; change is the change of its normalised total, change_self of its self; z and significant are about
/// change_self.
std::string render_diff_flamegraph(const store::ProfileDiff& diff, double frequency_hz);

/// The same in columns; nodes have frame, depth, self, self_before, and significant (1 or 0).
std::string render_diff_columns(const store::ProfileDiff& diff, double frequency_hz, ColumnForm form);

/// "outermost;...;innermost before after", as difffolded.pl writes it, after the warnings "# before: ...", "# after:
/// ..." and "# ...", which flamegraph.pl ignores since they don't end in a number.
std::string render_diff_folded(const store::ProfileDiff& diff);

/// Facts and functions: [{name, ..., before: {self, total}, after: {...}, change_self, change_total, z, significant}].
std::string render_diff_top_json(const store::ProfileDiff& diff, double frequency_hz, std::size_t rows);
/// The same functions as a table for people, below the warnings of both sides.
std::string render_diff_top_text(const store::ProfileDiff& diff, std::size_t rows);

}  // namespace flamed::api
