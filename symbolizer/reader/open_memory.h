// SPDX-License-Identifier: Apache-2.0
//
// OpenMemory: a process's memory by its /proc/PID/mem.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "runtimes/remote_memory.h"

namespace flamed::symbolizer {

class OpenMemory final : public runtimes::RemoteMemory {
 public:
  explicit OpenMemory(int fd) : fd_(fd) {}
  bool read(std::uint64_t address, std::span<std::byte> to) override {
    while (!to.empty()) {
      if (address > std::numeric_limits<off_t>::max()) return false;
      const ssize_t bytes = ::pread(fd_, to.data(), to.size(), static_cast<off_t>(address));
      if (bytes < 0 && errno == EINTR) continue;
      if (bytes <= 0) return false;
      address += static_cast<std::uint64_t>(bytes);
      to = to.subspan(static_cast<std::size_t>(bytes));
    }
    return true;
  }

 private:
  const int fd_;
};

}  // namespace flamed::symbolizer
