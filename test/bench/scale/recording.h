// SPDX-License-Identifier: Apache-2.0
//
// Recording: samples of the running machine as in a ring of samples, by process, with each process's mappings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace flamed::bench {

struct Recording {
  struct Mapping {
    std::uint64_t start = 0, length = 0, file_offset = 0, inode = 0;
    std::string path;
  };
  struct Process {
    std::string comm;
    std::vector<Mapping> mappings;                ///< of code
    std::vector<std::vector<std::byte>> samples;  ///< whole records
  };
  std::vector<Process> processes;
  std::size_t samples = 0;
  std::size_t frames = 0;           ///< of all samples
  std::size_t distinct_stacks = 0;  ///< in all processes together
};

/// Samples for this long. User stacks are walked by frame pointers, so the load should keep them. Needs root.
Result<Recording> record(int seconds);

}  // namespace flamed::bench
