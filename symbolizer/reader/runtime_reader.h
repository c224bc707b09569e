// SPDX-License-Identifier: Apache-2.0
//
// Reads what a file or a process says of a managed runtime, for DirectModuleReader.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "symbolizer/model/runtime_module.h"

namespace flamed::symbolizer {

/// See ModuleReader::find_runtime().
Result<std::optional<RuntimeModule>> find_runtime(int fd);

/// See ModuleReader::read_runtime_functions().
std::vector<RuntimeAnswer> read_runtime_functions(int fd, const RuntimeProcess& process,
                                                  std::span<const RuntimeCode> codes,
                                                  std::span<const CopiedCode> copies);

}  // namespace flamed::symbolizer
