// SPDX-License-Identifier: Apache-2.0
//
// Finding and opening the files in which a process's just-in-time compiler names its code.
#pragma once

#include <string>

#include "base/identity.h"
#include "base/result.h"
#include "symbolizer/model/jit_file.h"

namespace flamed::symbolizer {

/// The perf map: perf-PID.map in /tmp, or where the process was told to put it (TMPDIR, DOTNET_PerfMapJitDumpPath,
/// --perf-basic-prof-path), in the process's root and by the pid that it has in its own pid namespace. The jitdump: the
/// file jit-PID.dump that it has mapped as code, which is how its writer marks it.
///
/// The owner of the process chooses what stands there. Only regular files are opened, never through a symbolic link at
/// the end of the path, with one name at most, and owned by the process's user or root; otherwise `why_none` says why.
///
/// Fails when nothing could be looked for. `proc` is where procfs is mounted. May block on a slow file system.
Result<JitFiles> find_jit_files(const ProcessId& owner, const std::string& proc);

/// What was found, but for what `known` (null: nothing) holds already: that is kept when it is the same file or when
/// nothing stands in its place any more.
JitFiles with_known(Result<JitFiles> found, const JitFiles* known);

/// What to do so that a program names its JIT code, by the program's file name.
std::string jit_advice(const std::string& program);

}  // namespace flamed::symbolizer
