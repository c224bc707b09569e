// SPDX-License-Identifier: Apache-2.0
//
// ProgramImage: a program or shared library as its file describes it, for detecting runtimes. Any user can write such a
// file: nothing in it is to be trusted. Addresses are those of the file; the process has it at these plus the address
// that it was loaded at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace flamed::runtimes {

class ProgramImage {
 public:
  struct Symbol {
    std::uint64_t address = 0;
    std::uint64_t size = 0;  ///< may be 0
  };

  virtual ~ProgramImage() = default;
  [[nodiscard]] virtual bool is_x86_64() const = 0;
  /// A symbol that it defines and exports.
  virtual std::optional<Symbol> symbol(std::string_view name) = 0;
  /// The bytes as the dynamic linker leaves them when the program is loaded at 0. False if not all are there.
  virtual bool read(std::uint64_t address, std::span<std::byte> to) = 0;
  /// Will the dynamic linker write the number of this library's block of thread-local variables there? After it follows
  /// an offset in the block (R_X86_64_DTPMOD64).
  virtual bool is_block_number(std::uint64_t address) = 0;
  /// Is this library loaded with it?
  virtual bool needs(std::string_view library) = 0;
};

/// A number at an address. Empty: it is not there.
template <typename T>
std::optional<T> read_number(ProgramImage& image, std::uint64_t address) {
  T value{};
  if (!image.read(address, std::as_writable_bytes(std::span(&value, 1)))) return std::nullopt;
  return value;
}

}  // namespace flamed::runtimes
