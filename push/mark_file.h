// SPDX-License-Identifier: Apache-2.0
//
// Marks on disk, a file for each. Any thread, but one mark on one thread.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "push/progress.h"

namespace flamed::push {

/// Empty if there is no such file.
Result<std::optional<Mark>> load_mark(const std::string& folder, const std::string& name);

/// Either the file before or this one is there after a crash, and this one once it returns.
Status save_mark(const std::string& folder, const std::string& name, const Mark& mark);

}  // namespace flamed::push
