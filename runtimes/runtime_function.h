// SPDX-License-Identifier: Apache-2.0
//
// RuntimeFunction: what a function of a managed runtime is called, where it comes from, and the lines of its
// instructions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace flamed::runtimes {

/// From instruction `first` on, up to the next run: this line. 0: none.
struct LineRun {
  std::uint32_t first = 0;
  std::uint32_t line = 0;

  friend bool operator==(const LineRun&, const LineRun&) = default;
};

/// At most this many; the rest of a longer table is one run without a line.
inline constexpr std::size_t kMostLineRuns = 8192;

/// Instructions are counted in the runtime's units: Python's of two bytes. Of -1, before the first, it is the first
/// run's. 0: not known.
std::uint32_t line_at(std::span<const LineRun> runs, std::int64_t instruction);

/// Longer texts are cut.
inline constexpr std::size_t kMostTextBytes = 4096;

struct RuntimeFunction {
  std::string name;  ///< valid UTF-8 of any characters, not empty
  std::string file;  ///< likewise, as the program was compiled; may be empty
  std::uint32_t first_line = 0;
  std::vector<LineRun> lines{};  ///< ascending by `first`

  /// 0: it has no line.
  [[nodiscard]] std::uint32_t line_at(std::int64_t instruction) const { return runtimes::line_at(lines, instruction); }
};

}  // namespace flamed::runtimes
