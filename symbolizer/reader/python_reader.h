// SPDX-License-Identifier: Apache-2.0
//
// Reads what a file or a process says of Python, for DirectModuleReader.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "symbolizer/model/python_module.h"

namespace flamed::symbolizer {

/// See ModuleReader::find_python().
Result<std::optional<PythonModule>> find_python(int fd);

/// See ModuleReader::read_python_functions().
std::vector<PythonAnswer> read_python_functions(int fd, const PythonProcess& process,
                                                std::span<const PythonCode> codes);

}  // namespace flamed::symbolizer
