// SPDX-License-Identifier: Apache-2.0
//
// ForgedMemory: the memory of a process that does not exist.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>

#include "runtimes/remote_memory.h"

namespace flamed::runtimes {

class ForgedMemory final : public RemoteMemory {
 public:
  bool read(std::uint64_t address, std::span<std::byte> to) override {
    for (std::size_t i = 0; i < to.size(); ++i) {
      const auto found = bytes_.find(address + i);
      if (found == bytes_.end()) return false;
      to[i] = found->second;
    }
    return true;
  }
  template <typename T>
  void write(std::uint64_t address, T value) {
    for (const std::byte byte : std::as_bytes(std::span(&value, 1))) bytes_[address++] = byte;
  }
  void write_text(std::uint64_t address, std::string_view text) {
    for (const char c : text) write(address++, c);
    write(address, '\0');
  }
  void write_bytes(std::uint64_t address, std::span<const std::uint8_t> bytes) {
    for (const std::uint8_t byte : bytes) write(address++, byte);
  }
  void clear(std::uint64_t address, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) write(address + i, '\0');
  }

 private:
  std::map<std::uint64_t, std::byte> bytes_;
};

}  // namespace flamed::runtimes
