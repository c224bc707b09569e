// SPDX-License-Identifier: Apache-2.0
//
// How the databases in a folder are called: "history-00000007.db" has minutes, and "history-00000007-10min.db", which
// takes its place when it is old, their stretches. In the order of their numbers. Any thread.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace flamed::archive {

struct Period {
  std::uint64_t number = 0;
  bool is_coarse = false;  ///< it has stretches (archive/codec/stretch.h)
  friend auto operator<=>(const Period&, const Period&) = default;
};

[[nodiscard]] std::string period_path(const std::string& folder, const Period& period);
/// Of a database of stretches until it is whole.
[[nodiscard]] std::string unfinished_path(const std::string& folder, std::uint64_t number);

struct Periods {
  std::vector<Period> periods;  ///< ascending; those of stretches instead of those of the same minutes
  /// Paths of what was left behind when such a database was made: unfinished ones, and minutes that have been replaced.
  std::vector<std::string> leftovers;
};
Result<Periods> list_periods(const std::string& folder);

}  // namespace flamed::archive
