// SPDX-License-Identifier: Apache-2.0
//
// From a profile to a flame graph by levels. Pure; any thread.
#pragma once

#include "api/querier/answers.h"
#include "store/model/profile.h"

namespace flamed::api {

/// In nanoseconds. The profile is not grouped; nodes that were pruned from it are `other`. An empty profile has the
/// root alone.
LevelsAnswer flame_levels(const store::Profile& profile);

}  // namespace flamed::api
