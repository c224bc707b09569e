// SPDX-License-Identifier: Apache-2.0
//
// The worker's side: the spawner, a process without rights that serves each request of the daemon in a fresh child. A
// file that takes a child over can lie about itself; it meets no other request's files, and its memory goes with it.
#pragma once

#include <optional>

#include "symbolizer/model/module_reader.h"

namespace flamed::symbolizer {

/// The one argument that starts a program as a spawner. It is followed by the user and group to become.
inline constexpr const char* kSpawnerArgument = "(elf worker)";

/// For the first line of main(): when the program was started as a spawner, serves the daemon with `reader` until the
/// daemon goes away, and returns what to exit with.
std::optional<int> run_spawner_if_asked(int argc, char** argv, ModuleReader& reader);

}  // namespace flamed::symbolizer
