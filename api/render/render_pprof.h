// SPDX-License-Identifier: Apache-2.0
//
// A profile as pprof reads it: gzipped profile.proto (github.com/google/pprof/proto/profile.proto). Pure; any thread.
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "store/query/stack_profile.h"

namespace flamed::api {

/// The message, not compressed. Sample types are those of Go's CPU profiles: samples/count and cpu/nanoseconds, the
/// default. A mapping is a module with its build-id, an address the offset in its file; lines go from the innermost
/// inlined function outwards. Labels: process, thread, unit, container (texts), pid, tid (numbers). A truncated stack
/// ends in a location "[truncated: ...]" without a mapping.
std::string encode_pprof(const store::StackProfile& profile);

Result<std::string> render_pprof(const store::StackProfile& profile);

/// The same of some of the profile's counts, without labels, for engines that make a series of each combination of
/// these. Waiting time has one sample type alone, off_cpu/nanoseconds, and no period, as OpenTelemetry's profiler sends
/// it.
std::string encode_unlabelled_pprof(const store::StackProfile& profile, std::span<const store::StackCount> counts);

}  // namespace flamed::api
