// SPDX-License-Identifier: Apache-2.0
//
// RemoteMemory: the memory of another process. It changes while it is read, and its owner may have arranged it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace flamed::runtimes {

class RemoteMemory {
 public:
  virtual ~RemoteMemory() = default;
  /// False if not all of it can be read.
  virtual bool read(std::uint64_t address, std::span<std::byte> to) = 0;
  /// How many bytes from there on may be there: of a copy that is cut, fewer than `most`.
  [[nodiscard]] virtual std::size_t extent(std::uint64_t /*address*/, std::size_t most) const { return most; }
};

/// A number at an address. Empty: it can't be read.
template <typename T>
std::optional<T> read_number(RemoteMemory& memory, std::uint64_t address) {
  T value{};
  if (!memory.read(address, std::as_writable_bytes(std::span(&value, 1)))) return std::nullopt;
  return value;
}

}  // namespace flamed::runtimes
