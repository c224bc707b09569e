// SPDX-License-Identifier: Apache-2.0
//
// Samples one by one, as `perf script` prints them: for the tools that read its output. Pure; any thread.
#pragma once

#include <string>

#include "store/query/timed_samples.h"

namespace flamed::api {

/// For each sample a line "comm pid/tid [cpu] seconds.microseconds: period cpu-clock:", its frames, innermost first, as
/// "address function (module)" with the address an offset in the module's file, "(inlined)" standing for the module of
/// inlined functions, and an empty line. Seconds are those of the wall clock. What would break a line is replaced.
/// Where there are no samples the warnings are comments, "# ...", as those that `perf script --header` begins with.
std::string render_perf_script(const store::TimedSamples& samples);

}  // namespace flamed::api
