// SPDX-License-Identifier: Apache-2.0
//
// ModuleReader: everything that interprets bytes which other users chose, behind one interface of descriptors in,
// values out, so that an unprivileged worker process can do it (design decision 5).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "symbolizer/elf_symbols.h"

namespace flamed::symbolizer {

/// Any thread; calls may overlap.
class ModuleReader {
 public:
  virtual ~ModuleReader() = default;
  /// The functions of the file behind `fd`, which stays the caller's.
  virtual Result<ElfSymbols> read(int fd) = 0;
  /// One name for each mangled one, in order.
  virtual std::vector<std::string> demangle(std::span<const std::string> mangled) = 0;
};

/// Reads in the calling thread.
class DirectModuleReader final : public ModuleReader {
 public:
  Result<ElfSymbols> read(int fd) override;
  std::vector<std::string> demangle(std::span<const std::string> mangled) override;
};

}  // namespace flamed::symbolizer
