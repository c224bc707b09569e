// SPDX-License-Identifier: Apache-2.0
//
// A profile as speedscope reads it (https://www.speedscope.app/file-format-schema.json). Pure; any thread.
#pragma once

#include <cstdint>
#include <string>

#include "store/model/profile_options.h"
#include "store/query/stack_profile.h"

namespace flamed::api {

/// One sampled profile with weights in nanoseconds for each process or thread that has samples, or one of all:
/// `group` kProcess, kThread, or anything else. Functions are told apart by name, file and line.
std::string render_speedscope(const store::StackProfile& profile, store::Group group, const std::string& name);

}  // namespace flamed::api
