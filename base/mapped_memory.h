// SPDX-License-Identifier: Apache-2.0
//
// MappedMemory: sole owner of a mapping: of memory that is shared through a file descriptor, or of private memory.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/result.h"

namespace flamed {

class MappedMemory {
 public:
  enum class Access : unsigned char { kRead, kReadAndWrite };

  /// Maps the first `bytes` of `fd`, shared. `what` names it in the error, which keeps errno.
  static Result<MappedMemory> map(int fd, std::size_t bytes, Access access, const std::string& what);

  /// Private memory for other people's secrets: in no core dump, and in no child process. `what` as above.
  static Result<MappedMemory> make_secret(std::size_t bytes, const std::string& what);

  MappedMemory() = default;
  MappedMemory(MappedMemory&& other) noexcept;
  MappedMemory& operator=(MappedMemory&& other) noexcept;
  MappedMemory(const MappedMemory&) = delete;
  MappedMemory& operator=(const MappedMemory&) = delete;
  ~MappedMemory();

  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(memory_); }
  /// All of it as values of one type.
  template <typename T>
  [[nodiscard]] std::span<T> as() const {
    return {static_cast<T*>(memory_), bytes_ / sizeof(T)};
  }

 private:
  MappedMemory(void* memory, std::size_t bytes) : memory_(memory), bytes_(bytes) {}

  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace flamed
