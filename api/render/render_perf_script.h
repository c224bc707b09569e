// SPDX-License-Identifier: Apache-2.0
//
// Single samples as `perf script` prints them, for tools that read its output. Pure; any thread.
#pragma once

#include <string>

#include "store/query/timed_samples.h"

namespace flamed::api {

/// For each sample a line "comm pid/tid [cpu] seconds.microseconds: period cpu-clock:", its frames, innermost first, as
/// "address function (module)" with the address an offset in the module's file, "(inlined)" standing for the module of
/// inlined functions, and an empty line. Seconds are of the wall clock. Characters that would break a line are
/// replaced. Without samples, the warnings are comments, "# ...", like those of `perf script --header`.
std::string render_perf_script(const store::TimedSamples& samples);

}  // namespace flamed::api
