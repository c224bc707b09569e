// SPDX-License-Identifier: Apache-2.0
//
// What kernel tests ask of a profile in folded form.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "test/support/running_daemon.h"

namespace flamed::test {

using FoldedStacks = std::map<std::string, std::uint64_t>;

/// Path of a victim in the folder that FLAMED_VICTIMS names.
std::string victim(const std::string& name);

/// The names of a program of another language's, by each compiler that it was built with (victims/meson.build), e.g.
/// "go" and "go_by_path". At least `name`: has_victim() tells whether it is there, and says SKIP where it isn't.
std::vector<std::string> builds_of(const std::string& name);
bool has_victim(const std::string& name);

std::string profile_of(pid_t pid);

/// All samples, or those whose stack is as `wanted` says.
std::uint64_t total(const FoldedStacks& stacks);
std::uint64_t count_if(const FoldedStacks& stacks, const std::function<bool(const std::string&)>& wanted);

/// Samples whose stack holds `part`, which begins and ends with ';' where whole frames are meant.
std::uint64_t with(const FoldedStacks& stacks, const std::string& part);

/// Samples of the process that were taken once its tables stood. `since`: nothing, or "&from=" and a time.
FoldedStacks settled_profile(const RunningDaemon& daemon, pid_t pid, const std::string& since = "");

/// Waits until the process has as many samples of those that settled_profile() leaves.
bool has_samples(const RunningDaemon& daemon, pid_t pid, std::uint64_t wanted, const std::string& since = "");

/// As many samples or more, all of them younger than one with `part`. What comes before lasts seconds on an emulated
/// machine: the program's own beginning, and the making of its tables, when a chain of frame pointers may be whole as
/// well but lacks the caller of a function without a frame.
FoldedStacks profile_once_seen(const RunningDaemon& daemon, pid_t pid, const std::string& part, std::uint64_t wanted);

/// "a;b;c": the frame repeated.
std::string repeated(const std::string& frame, int times);

}  // namespace flamed::test
