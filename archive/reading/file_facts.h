// SPDX-License-Identifier: Apache-2.0
//
// What a single database of minutes is about. Any thread.
#pragma once

#include <cstdint>
#include <string>

#include "archive/reading/minute_index.h"
#include "base/result.h"
#include "store/model/selection.h"

namespace flamed::archive {

struct FileFacts {
  std::string host;  ///< safe to print; empty: the file does not say
  store::WallWindow stretch;
  std::uint64_t minutes = 0;
  // Of the newest minute that can be read:
  std::string boot_id;
  std::uint32_t cpus = 0;
  std::int64_t period_ns = 0;
};

/// `index` is of that database alone. An Error: it has no minute, or none can be read.
Result<FileFacts> read_facts(MinuteIndex& index);

}  // namespace flamed::archive
