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

/// Stands for a sample without a single frame, which a list of stacks has no place for otherwise.
inline constexpr std::string_view kNoStack = "[no stack]";

/// "[truncated: ...]", as trees begin such stacks.
std::string truncation_name(store::Truncation reason);

/// How many functions all counted stacks have together: what a format that writes stacks out will cost.
std::uint64_t functions_written(const store::StackProfile& profile);
std::uint64_t functions_written(const store::TimedSamples& samples);

/// As of a tree: of the functions in all stacks, weighted by samples, the part that has a name.
double symbolised_share(const store::StackProfile& profile);
double symbolised_share(const store::TimedSamples& samples);

}  // namespace flamed::api
