// SPDX-License-Identifier: Apache-2.0
//
// CPU use over time, as JSON. Pure; any thread.
#pragma once

#include <string>

#include "store/query/heatmap.h"
#include "store/query/timeline.h"

namespace flamed::api {

/// The facts of an answer, step_ms, start, start_ms, steps: {user_samples: [...], kernel_samples: [...], user_cpu_ms:
/// [...], kernel_cpu_ms: [...]}, lost: [{from_ms, to_ms, samples}], gaps: [{from_ms, to_ms}], and processes: [{id, ...,
/// steps}].
std::string render_timeline(const store::Timeline& timeline, double frequency_hz);

/// For reading: one line for each step, with the CPUs in use on average, and the threads that waited.
std::string render_timeline_text(const store::Timeline& timeline);

/// The facts of an answer, start, start_ms, columns, rows, most, and counts: the count of column c, row r is at c *
/// rows + r.
std::string render_heatmap(const store::Heatmap& heatmap, double frequency_hz);

}  // namespace flamed::api
