// SPDX-License-Identifier: Apache-2.0
//
// Reads what a code object in another process is called, where it comes from, and the lines of its instructions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "runtimes/python/layout.h"
#include "runtimes/remote_memory.h"
#include "runtimes/runtime_function.h"

namespace flamed::runtimes {

/// Of a longer line table only this much is read.
inline constexpr std::size_t kMostLineTableBytes = std::size_t{64} << 10;

/// The name is qualified from 3.11 on: "Server.run.<locals>.step"; the file is "<stdin>" and the like where there is
/// none. `code` is the address of a code object in a process that has the module of `objects` loaded at `base`. An
/// error if there is none. It was there all the time if its check word (code_check.h) is the same afterwards.
Result<RuntimeFunction> read_python_function(RemoteMemory& memory, const PythonObjects& objects, std::uint64_t base,
                                             std::uint64_t code);

}  // namespace flamed::runtimes
