// SPDX-License-Identifier: Apache-2.0
//
// From a program or library that is a V8 to the layout of its processes' functions.
#pragma once

#include <optional>

#include "base/result.h"
#include "runtimes/program_image.h"
#include "runtimes/v8/layout.h"

namespace flamed::runtimes {

/// Empty: the file is none. An error: it is one, and why its processes can't be read.
Result<std::optional<V8Layout>> detect_v8(ProgramImage& image);

}  // namespace flamed::runtimes
