// SPDX-License-Identifier: Apache-2.0
//
// The worker's side: the spawner, a process without rights that serves each request of the daemon in a new child. A
// file that exploits a child can only lie about itself: the child has no other request's files, and its memory is freed
// with it.
#pragma once

#include <optional>

#include "symbolizer/model/module_reader.h"

namespace flamed::symbolizer {

/// The one argument that starts a program as a spawner. It is followed by the user and group to change to.
inline constexpr const char* kSpawnerArgument = "(elf worker)";

/// For the first line of main(): if the program was started as a spawner, serves the daemon with `reader` until the
/// daemon is gone, and returns the exit status.
std::optional<int> run_spawner_if_asked(int argc, char** argv, ModuleReader& reader);

}  // namespace flamed::symbolizer
