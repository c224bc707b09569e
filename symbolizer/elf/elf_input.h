// SPDX-License-Identifier: Apache-2.0
//
// ElfInput: the bytes of an ELF file, read before libelf sees them, and the checks that libelf leaves to its callers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"

namespace flamed::symbolizer {

/// An open file, whose position is neither used nor changed, or an image in memory. Owns neither.
class ElfInput {
 public:
  static Result<ElfInput> from_fd(int fd);
  static ElfInput from_memory(std::span<const std::byte> image);

  [[nodiscard]] std::uint64_t size() const { return size_; }

  /// Fills `to` from `offset`; false if the input ends before.
  [[nodiscard]] bool read(std::uint64_t offset, void* to, std::size_t bytes) const;

 private:
  ElfInput() = default;
  int fd_ = -1;
  std::span<const std::byte> image_;
  std::uint64_t size_ = 0;
};

/// Checks that this is an ELF file of this host's byte order whose headers lie within it, with limited numbers of
/// sections and program headers. libelf allocates (and touches) memory for as many sections as the header claims before
/// it checks the size of the file. The error has code ENOEXEC if it is no ELF file at all.
Status check_elf_header(const ElfInput& input);

/// "<what>: <libelf's last error>".
Error libelf_error(const char* what);

}  // namespace flamed::symbolizer
