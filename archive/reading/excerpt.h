// SPDX-License-Identifier: Apache-2.0
//
// An excerpt: a stretch of the history in a folder as one file, complete in itself. Any thread; also while a daemon
// writes to the folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "store/model/selection.h"

namespace flamed::archive {

struct Excerpt {
  std::uint64_t minutes = 0;
  store::WallWindow stretch;          ///< from the first minute's start to the last one's end
  std::vector<std::string> problems;  ///< a line for each: what can't be read, and is missing
};

/// Writes all minutes that overlap the window, which need not be full, to a new file that only its owner may read. It
/// appears when it is whole. An Error: there is no such folder, no such minute, the file exists (EEXIST), or it can't
/// be written.
Result<Excerpt> write_excerpt(const std::string& folder, const store::WallWindow& window, const std::string& path);

}  // namespace flamed::archive
