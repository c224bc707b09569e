// SPDX-License-Identifier: Apache-2.0
//
// How the databases in a folder are called: "history-00000007.db" has minutes, and "history-00000007-10min.db" their
// stretches, beside it, and in its place when it is old. In the order of their numbers. Any thread.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace flamed::archive {

struct Period {
  std::uint64_t number = 0;
  bool is_coarse = false;  ///< it has stretches (archive/codec/stretch.h)
  friend bool operator==(const Period&, const Period&) = default;
  /// Stretches come before their minutes: the last of these may go on in the next database.
  friend auto operator<=>(const Period& a, const Period& b) {
    return std::pair(a.number, !a.is_coarse) <=> std::pair(b.number, !b.is_coarse);
  }
};

[[nodiscard]] std::string period_path(const std::string& folder, const Period& period);
/// Of a database of stretches until it is whole.
[[nodiscard]] std::string unfinished_path(const std::string& folder, std::uint64_t number);

struct Periods {
  std::vector<Period> periods;  ///< ascending
  /// Paths of what a kill left behind: unfinished databases of stretches, and logs whose database was removed.
  std::vector<std::string> leftovers;
};
Result<Periods> list_periods(const std::string& folder);

}  // namespace flamed::archive
