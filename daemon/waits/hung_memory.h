// SPDX-License-Identifier: Apache-2.0
//
// HungMemory: the processes in whose memory a helper hung, and which most likely would block the next one, too. Belongs
// to one thread. No clock, no system calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/clock.h"

namespace flamed::daemon {

class HungMemory {
 public:
  struct Process {
    std::int32_t pid = 0;
    std::uint64_t start_ns = 0;
    std::uint32_t user = 0;
  };

  void add(const Process& process, MonotonicTime now);
  void forget_before(MonotonicTime time);

  /// Once four processes of a user are known, all of the user's are refused.
  [[nodiscard]] bool is_refused(const Process& process) const;

 private:
  static constexpr std::size_t kMostOfOneUser = 4;
  static constexpr std::size_t kMost = 256;

  struct Hung {
    Process process;
    MonotonicTime time;
  };
  std::vector<Hung> hung_;  ///< oldest first
};

}  // namespace flamed::daemon
