// SPDX-License-Identifier: Apache-2.0
#include "runtimes/runtime_function.h"

#include <algorithm>

namespace flamed::runtimes {

std::uint32_t line_at(std::span<const LineRun> runs, std::int64_t instruction) {
  if (runs.empty()) return 0;
  const auto after =
      std::find_if(runs.begin(), runs.end(), [&](const LineRun& run) { return run.first > instruction; });
  return after == runs.begin() ? runs.front().line : (after - 1)->line;
}

}  // namespace flamed::runtimes
