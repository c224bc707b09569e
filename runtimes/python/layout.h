// SPDX-License-Identifier: Apache-2.0
//
// PythonLayout: where one build of CPython keeps frames and what names them. Values only; `detect.h` makes them.
#pragma once

#include <cstdint>
#include <string>

#include "runtimes/linked_frames.h"

namespace flamed::runtimes {

/// PY_VERSION_HEX: major, minor and micro version, then kind and number of the release, 8, 8, 8, 4 and 4 bits.
struct PythonVersion {
  std::uint32_t hex = 0;
  bool knows_micro = true;

  [[nodiscard]] std::uint32_t minor() const { return hex >> 16 & 0xff; }
  /// "3.13.5", or "3.9" if the third number is not known.
  [[nodiscard]] std::string text() const;
};

/// How a code object stores the lines of its instructions: see `line_table.h`.
enum class PythonLines : std::uint16_t {
  kLineNumbers,  ///< co_lnotab, up to 3.9
  kRanges,       ///< co_linetable of 3.10
  kLocations,    ///< co_linetable from 3.11 on
};

/// Offsets in bytes; addresses are those of the module.
struct PythonObjects {
  std::uint16_t type = 0;  ///< in every object: the address of its type

  // In a code object:
  std::uint16_t name = 0;  ///< the qualified one, if there is one
  std::uint16_t file = 0;
  std::uint16_t first_line = 0;
  std::uint16_t lines = 0;
  PythonLines lines_kind = PythonLines::kLocations;

  // In a string:
  std::uint16_t string_length = 0;
  std::uint16_t string_state = 0;
  std::uint16_t ascii_text = 0;
  std::uint16_t other_text = 0;

  // In a bytes object:
  std::uint16_t bytes_length = 0;
  std::uint16_t bytes_text = 0;

  std::uint64_t code_type = 0;
  std::uint64_t string_type = 0;
  std::uint64_t bytes_type = 0;
};

struct PythonLayout {
  PythonVersion version;
  LinkedFrames frames;
  PythonObjects objects;
  /// The function that runs Python code, or the most of it. Compilers may put other parts elsewhere.
  std::uint64_t interpreter = 0;
  std::uint64_t interpreter_bytes = 0;
};

}  // namespace flamed::runtimes
