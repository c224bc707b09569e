// SPDX-License-Identifier: Apache-2.0
//
// OnlineCpus: the CPUs that the kernel runs threads on now.
#pragma once

#include <vector>

#include "base/handle.h"
#include "base/result.h"

namespace flamed::daemon {

class OnlineCpus {
 public:
  /// Their numbers in ascending order.
  Result<std::vector<int>> read();

 private:
  Fd file_;  ///< open after the first successful read
};

}  // namespace flamed::daemon
