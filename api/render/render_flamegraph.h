// SPDX-License-Identifier: Apache-2.0
//
// A profile as nested JSON, the way d3-flame-graph reads it. Pure; any thread.
#pragma once

#include <string>

#include "store/model/profile.h"

namespace flamed::api {

/// The root node is the document: {name, value, self, kind, children} for d3, and also window, resolution_ms,
/// period_ns, frequency_hz, processes, samples, cpu_seconds, quality, warnings. `value` counts samples of the node and
/// all below it, `self` only its own. Node members: name, value, self; module, kind, reason, build_id, file, line,
/// inlined (true) and children, if there are any. docs/api.md shows the shape.
std::string render_flamegraph(const store::Profile& profile, double frequency_hz);

}  // namespace flamed::api
