// SPDX-License-Identifier: Apache-2.0
//
// How the databases in a folder are called: "history-00000007.db", in the order of their numbers. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace flamed::archive {

[[nodiscard]] std::string period_path(const std::string& folder, std::uint64_t number);

/// The numbers of the databases in the folder, ascending.
Result<std::vector<std::uint64_t>> list_periods(const std::string& folder);

}  // namespace flamed::archive
