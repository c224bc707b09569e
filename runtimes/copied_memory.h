// SPDX-License-Identifier: Apache-2.0
//
// CopiedMemory: what was copied of a process's memory while it ran. What was not copied can't be read.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "runtimes/remote_memory.h"

namespace flamed::runtimes {

/// Some bytes of a process's memory.
struct MemoryCopy {
  std::uint64_t address = 0;
  std::span<const std::byte> bytes;
};

class CopiedMemory final : public RemoteMemory {
 public:
  /// The copies must outlive it.
  explicit CopiedMemory(std::span<const MemoryCopy> copies) : copies_(copies) {}

  bool read(std::uint64_t address, std::span<std::byte> to) override {
    const std::span<const std::byte> from = from_on(address);
    if (from.size() < to.size()) return false;
    if (!to.empty()) std::memcpy(to.data(), from.data(), to.size());
    return true;
  }
  [[nodiscard]] std::size_t extent(std::uint64_t address, std::size_t most) const override {
    return std::min(from_on(address).size(), most);
  }

 private:
  [[nodiscard]] std::span<const std::byte> from_on(std::uint64_t address) const {
    const auto copy = std::find_if(copies_.begin(), copies_.end(),
                                   [&](const MemoryCopy& each) { return address - each.address < each.bytes.size(); });
    return copy == copies_.end() ? std::span<const std::byte>() : copy->bytes.subspan(address - copy->address);
  }

  const std::span<const MemoryCopy> copies_;
};

}  // namespace flamed::runtimes
