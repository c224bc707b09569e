// SPDX-License-Identifier: Apache-2.0
//
// PendingSample: a sample that is to be stored later. A plain value.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/identity.h"

namespace flamed::store {

struct PendingSample {
  MonotonicTime time;
  ProcessId process;
  std::int32_t tid = 0;
};

}  // namespace flamed::store
