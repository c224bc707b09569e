// SPDX-License-Identifier: Apache-2.0
//
// Queries of folded profiles for kernel tests.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "test/support/running_daemon.h"

namespace flamed::test {

using FoldedStacks = std::map<std::string, std::uint64_t>;

/// The kernel's functions at the entry of a system call.
#if defined(__aarch64__)
inline constexpr const char* kSystemCall = "el0t_64_sync";
inline constexpr const char* kSystemCallCallee = "el0t_64_sync_handler";
#else
inline constexpr const char* kSystemCall = "entry_SYSCALL_64_after_hwframe";
inline constexpr const char* kSystemCallCallee = "do_syscall_64";
#endif

/// The path of a victim in the folder that FLAMED_VICTIMS names.
std::string victim(const std::string& name);

/// The names of a program in another language, one for each compiler that built it (victims/meson.build), e.g. "go" and
/// "go_by_path". At least `name`: has_victim() returns whether it exists, and prints SKIP if not.
std::vector<std::string> builds_of(const std::string& name);
bool has_victim(const std::string& name);

std::string profile_of(pid_t pid);

/// A daemon for all cases that look at the stacks of programs which they start themselves, and at nothing else: a start
/// takes seconds. It takes ten times as many samples as usual, so that cases which wait for many end soon.
RunningDaemon& frequent_daemon();

/// All samples, or those whose stack `wanted` accepts.
std::uint64_t total(const FoldedStacks& stacks);
std::uint64_t count_if(const FoldedStacks& stacks, const std::function<bool(const std::string&)>& wanted);

/// Samples whose stack has `part`, which begins and ends with ';' for whole frames.
std::uint64_t with(const FoldedStacks& stacks, const std::string& part);

/// Samples of the process from after its tables were built. `since`: nothing, or "&from=" and a time.
FoldedStacks settled_profile(const RunningDaemon& daemon, pid_t pid, const std::string& since = "");

/// Waits until settled_profile() of the process has this many samples.
bool has_samples(const RunningDaemon& daemon, pid_t pid, std::uint64_t wanted, const std::string& since = "");

/// Waits for this many samples or more, all younger than one whose stack `wanted_first` accepts. On an emulated machine
/// the time before lasts seconds: the program's start, and the build of its tables. Until then a chain of frame
/// pointers may also be whole, but lacks the caller of a function without a frame, and a slice of the stack has one
/// stack alone.
FoldedStacks profile_once_seen(const RunningDaemon& daemon, pid_t pid,
                               const std::function<bool(const std::string&)>& wanted_first, std::uint64_t wanted);
/// Likewise, with a stack that has `part`, as in with().
FoldedStacks profile_once_seen(const RunningDaemon& daemon, pid_t pid, const std::string& part, std::uint64_t wanted);

/// "a;b;c": the frame repeated.
std::string repeated(const std::string& frame, int times);

}  // namespace flamed::test
