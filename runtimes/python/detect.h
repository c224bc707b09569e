// SPDX-License-Identifier: Apache-2.0
//
// Recognises CPython, in a program or in libpython, and finds its layout.
#pragma once

#include <optional>

#include "base/result.h"
#include "runtimes/program_image.h"
#include "runtimes/python/layout.h"

namespace flamed::runtimes {

/// Empty: it is not CPython. An error: it is, and why its frames can't be read.
Result<std::optional<PythonLayout>> detect_python(ProgramImage& image);

}  // namespace flamed::runtimes
