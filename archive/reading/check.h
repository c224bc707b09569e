// SPDX-License-Identifier: Apache-2.0
//
// Reads everything that a folder has, also while a daemon writes to it, and says what can't be read. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "archive/files/period_reader.h"
#include "base/result.h"

namespace flamed::archive {

struct Checked {
  std::size_t files = 0;
  std::uint64_t minutes = 0;          ///< that can be read, alone or as part of a stretch
  std::uint64_t samples = 0;          ///< of these
  std::vector<std::string> problems;  ///< a line for each: which file, which minute, what is wrong
};

/// An Error: there is no such folder.
Result<Checked> check_history(const std::string& folder);

/// The same of a single file.
Checked check_file(const std::string& path);

/// Of a session. An Error with another code than 0, EBADMSG or ENOTSUP: the disk has failed.
Status check_sums(PeriodReader& reader, std::int64_t session);

}  // namespace flamed::archive
