// SPDX-License-Identifier: Apache-2.0
//
// Single samples in the order of time, as columns of numbers, with a table of their stacks. Pure; any thread.
#pragma once

#include <string>

#include "store/query/timed_samples.h"

namespace flamed::api {

/// The facts of an answer, "processes", "threads" and "columns": strings, kinds and frames as in render_columns(),
/// "nodes": {"frame": [...], "caller": [...]} and "samples": {"time_us": [...], "thread": [...], "node": [...],
/// "cpu": [...], "period_ns": [...]}. docs/api.md shows how to read it.
std::string render_samples(const store::TimedSamples& samples, double frequency_hz);

}  // namespace flamed::api
