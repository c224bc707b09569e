// SPDX-License-Identifier: Apache-2.0
//
// RuntimeModule: a program or library that is a managed runtime, and how functions in its processes are asked for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "runtimes/code_check.h"
#include "runtimes/python/layout.h"
#include "runtimes/runtime_function.h"
#include "runtimes/runtime_kind.h"
#include "runtimes/v8/layout.h"

namespace flamed::symbolizer {

struct RuntimeModule {
  /// In the order of runtimes::RuntimeKind.
  std::variant<runtimes::PythonLayout, runtimes::V8Layout> layout;
  /// Of its code: the address in the file minus the file offset.
  std::uint64_t code_bias = 0;
  /// The smallest address of code, as it is in the file.
  std::uint64_t first_code = 0;

  [[nodiscard]] runtimes::RuntimeKind kind() const { return static_cast<runtimes::RuntimeKind>(layout.index()); }
};

/// Code as a sample met it: the address of the object that stands for it.
struct RuntimeCode {
  std::uint64_t address = 0;
  std::uint64_t check = 0;  ///< see runtimes::read_check_word()
  /// Not 0: an innermost instruction in code that was compiled at run time, which may be that code object's. Right
  /// before and after a call it is not: then the code object is the caller's, or `address` is 0.
  std::uint64_t pc = 0;

  friend bool operator==(const RuntimeCode&, const RuntimeCode&) = default;
};

/// Where a process has what tells of its code. Passed on as it is in memory.
struct RuntimeProcess {
  runtimes::RuntimeKind kind = runtimes::RuntimeKind::kPython;
  std::uint8_t padding = 0;
  runtimes::CodeCheck check{};
  std::uint32_t more_padding = 0;
  std::uint64_t base = 0;  ///< what was added to the module's addresses
  runtimes::PythonObjects python{};
  runtimes::V8Objects v8{};
};

/// What was copied of a process's memory when a sample met this code: bytes that the process chose. Passed on as it is
/// in memory.
struct CopiedCode {
  static constexpr std::size_t kParts = 4;
  struct Part {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;  ///< at most kPartBytes
  };
  static constexpr std::size_t kPartBytes = 256;

  RuntimeCode code;
  std::array<Part, kParts> places{};
  std::array<std::array<std::byte, kPartBytes>, kParts> parts{};
};

struct RuntimeAnswer {
  runtimes::RuntimeFunction function;  ///< without a name: it could not be read, or it is code of the runtime itself
  std::string why_not;                 ///< empty: it has a name, or is code of the runtime itself
  // With RuntimeCode::pc, the code that has the instruction. `function` is the one that it is of.
  std::uint64_t code_start = 0;  ///< in memory, as is the next one
  std::uint64_t code_end = 0;
  std::uint64_t owner = 0;  ///< as RuntimeCode::address: that function's; 0: it is of none
};

/// In one request.
inline constexpr std::size_t kMostRuntimeCodes = 1024;

}  // namespace flamed::symbolizer
