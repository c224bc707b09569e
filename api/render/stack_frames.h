// SPDX-License-Identifier: Apache-2.0
//
// The stacks of a StackProfile as functions, for formats that list them. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "store/query/stack_profile.h"
#include "store/query/timed_samples.h"

namespace flamed::api {

/// The frame of samples without frames, for lists of stacks.
inline constexpr std::string_view kNoStack = "[no stack]";

/// The number of functions in all counted stacks: the cost of a format that writes out stacks.
std::uint64_t functions_written(const store::StackProfile& profile);
std::uint64_t functions_written(const store::TimedSamples& samples);

/// As for a tree: the share of functions with a name in all stacks, weighted by samples.
double symbolised_share(const store::StackProfile& profile);
double symbolised_share(const store::TimedSamples& samples);

}  // namespace flamed::api
