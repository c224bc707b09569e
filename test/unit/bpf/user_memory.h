// SPDX-License-Identifier: Apache-2.0
//
// UserMemory: the memory of a walked thread that the kernel program reads, in tests on the host. A UserMemory::Scope
// makes it the current one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "unwinder/architecture.h"

/// unwinder/step.h has the same, whatever this host is.
#define USER_ADDRESS_MASK flamed::unwinder::without_signature(flamed::unwinder::Architecture::kArm64, ~std::uint64_t{0})

namespace flamed::test {

/// Bytes at [base, base + size); everything else can't be read.
class UserMemory {
 public:
  UserMemory(std::uint64_t base, std::size_t words) : base_(base), bytes_(words * sizeof(std::uint64_t)) {}

  void put(std::uint64_t address, std::uint64_t value) {
    std::memcpy(&bytes_.at(address - base_), &value, sizeof(value));
  }
  void put32(std::uint64_t address, std::uint32_t value) {
    std::memcpy(&bytes_.at(address - base_), &value, sizeof(value));
  }

  /// As bpf_probe_read_user(): 0, or an error and zeroes.
  long read(void* to, std::size_t size, std::uint64_t address) const {
    if (address < base_ || address - base_ > bytes_.size() || bytes_.size() - (address - base_) < size) {
      std::memset(to, 0, size);
      return -14;
    }
    std::memcpy(to, &bytes_[address - base_], size);
    return 0;
  }
  [[nodiscard]] std::optional<std::uint64_t> word(std::uint64_t address) const {
    std::uint64_t value = 0;
    if (read(&value, sizeof(value), address) != 0) return std::nullopt;
    return value;
  }

  class Scope {
   public:
    explicit Scope(const UserMemory& memory) { current() = &memory; }
    ~Scope() { current() = nullptr; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
  };
  static const UserMemory*& current() {
    static const UserMemory* memory = nullptr;
    return memory;
  }

 private:
  std::uint64_t base_;
  std::vector<std::byte> bytes_;
};

inline long read_current_memory(void* to, std::size_t size, std::uint64_t address) {
  return UserMemory::current()->read(to, size, address);
}

}  // namespace flamed::test
