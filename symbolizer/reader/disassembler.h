// SPDX-License-Identifier: Apache-2.0
//
// Machine code to text. Pure but for the file; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "symbolizer/model/disassembly.h"

namespace flamed::symbolizer {

/// Instructions of one machine, by the numbers of ELF headers (EM_X86_64). Of the machines that it knows it always
/// knows how long an instruction is; it has text for x86 alone.
class Disassembler {
 public:
  explicit Disassembler(std::uint16_t machine) : machine_(machine) {}

  [[nodiscard]] bool knows_machine() const;
  [[nodiscard]] bool has_text() const;
  /// The bytes of the instruction that `code` begins with; those of what can't be decoded, too. At least 1 and at most
  /// code.size(), which must not be 0.
  [[nodiscard]] std::size_t length(std::span<const std::byte> code) const;
  /// Empty: the bytes are no instruction. `address` is that of the first byte.
  [[nodiscard]] std::string text(std::span<const std::byte> code, std::uint64_t address) const;

 private:
  const std::uint16_t machine_;
};

/// The instructions of functions of an ELF file.
Result<Disassembly> disassemble(int fd, const DisassemblyQuestion& question);

}  // namespace flamed::symbolizer
