// SPDX-License-Identifier: Apache-2.0
//
// PythonModule: a program or library that is a Python, and how functions in its processes are asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtimes/python/layout.h"
#include "runtimes/python/names.h"

namespace flamed::symbolizer {

struct PythonModule {
  runtimes::PythonLayout layout;
  /// Of its code: the address in the file minus the file offset.
  std::uint64_t code_bias = 0;
  /// The smallest address of code, as it is in the file.
  std::uint64_t first_code = 0;
};

/// A code object as a sample met it.
struct PythonCode {
  std::uint64_t address = 0;
  std::uint64_t check = 0;  ///< see runtimes::check_word()

  friend bool operator==(const PythonCode&, const PythonCode&) = default;
};

/// Where a process has what tells of its code objects.
struct PythonProcess {
  runtimes::PythonObjects objects;
  std::uint64_t base = 0;  ///< what was added to the module's addresses
  std::uint16_t check = 0;
  std::uint8_t check_words = 0;
};

struct PythonAnswer {
  runtimes::PythonFunction function;  ///< without a name: it could not be read
  std::string why_not;
};

/// In one request.
inline constexpr std::size_t kMostPythonCodes = 1024;

}  // namespace flamed::symbolizer
