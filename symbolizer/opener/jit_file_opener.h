// SPDX-License-Identifier: Apache-2.0
//
// Finds and opens a process's perf map and jitdump.
#pragma once

#include <string>

#include "base/identity.h"
#include "base/result.h"
#include "symbolizer/model/jit_file.h"

namespace flamed::symbolizer {

/// The perf map: perf-PID.map in /tmp, or in the configured folder (TMPDIR, DOTNET_PerfMapJitDumpPath,
/// --perf-basic-prof-path), in the process's root directory and with the pid of its own pid namespace. The jitdump: the
/// file jit-PID.dump that the process has mapped as code to mark it.
///
/// The owner of the process controls these paths. Only regular files are opened, with at most one hard link, owned by
/// the process's user or root, and never through a symbolic link at the end of the path; otherwise `why_none` says why.
///
/// Fails if it could not search at all. `proc` is where procfs is mounted. May block on a slow file system.
Result<JitFiles> find_jit_files(const ProcessId& owner, const std::string& proc);

/// Merges `found` with `known` (null: none): a known file stays if it was found again or does not exist any more.
JitFiles with_known(Result<JitFiles> found, const JitFiles* known);

/// How to make a program name its JIT code, by the program's file name.
std::string jit_advice(const std::string& program);

}  // namespace flamed::symbolizer
