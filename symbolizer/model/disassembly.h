// SPDX-License-Identifier: Apache-2.0
//
// Disassembly: the instructions of some functions of one file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/machine_code.h"
#include "symbolizer/model/function_ranges.h"

namespace flamed::symbolizer {

/// By file offset.
struct DisassemblyQuestion {
  std::vector<CodeRange> functions;   ///< each begins with an instruction
  std::vector<std::uint64_t> places;  ///< ascending

  /// The longest function, in bytes. Generated parsers and interpreters have some 100 KB.
  static constexpr std::uint64_t kMostBytes = std::uint64_t{4} << 20;
  static constexpr std::size_t kMostFunctions = 1000;
  static constexpr std::size_t kMostPlaces = 50'000;
  /// A function of so many instructions is shown whole.
  static constexpr std::size_t kMostWhole = 4000;
  /// Of a longer one, so many before and after each place are.
  static constexpr std::size_t kContext = 16;
  /// From so many on only those at the places are shown.
  static constexpr std::size_t kMostShown = 20'000;
};

struct Disassembly {
  std::string build_id;                 ///< of the file, in hex; empty: it has none
  std::vector<FunctionCode> functions;  ///< one for each that was asked for, in order

  /// x86's are the longest.
  static constexpr std::size_t kMaxInstructionBytes = 15;
  static constexpr std::size_t kMaxTextBytes = 255;
};

}  // namespace flamed::symbolizer
