// SPDX-License-Identifier: Apache-2.0
//
// CPU use of threads, as JSON. Pure; any thread.
#pragma once

#include <string>

#include "store/query/usage.h"

namespace flamed::api {

/// The facts of an answer, and threads: [{tid, comm, process: {id, pid, ...}, samples, cpu_seconds}], in the order
/// given.
std::string render_threads(const store::UsageTable<store::ThreadUsage>& usage, double frequency_hz);

}  // namespace flamed::api
