// SPDX-License-Identifier: Apache-2.0
//
// SourcedRows: the unwind rows of a file, and the bytes of it that they follow from. So rows can be kept and used again
// as long as the file has the same bytes there.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "unwinder/row.h"

namespace flamed::symbolizer {

struct FileRange {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  friend bool operator==(const FileRange&, const FileRange&) = default;
};

struct RowsSource {
  std::vector<FileRange> ranges;
  std::uint64_t key = 0;     ///< a random one
  std::uint64_t digest = 0;  ///< of the ranges' bytes, with the key
  friend bool operator==(const RowsSource&, const RowsSource&) = default;
};

struct SourcedRows {
  unwinder::UnwindRows rows;
  RowsSource source;
  bool was_kept = false;  ///< not built just now
};

/// Of all the ranges' bytes in `fd`, whose position is neither used nor changed. An Error if the file ends before.
Result<std::uint64_t> digest_of(int fd, std::span<const FileRange> ranges, std::uint64_t key);

}  // namespace flamed::symbolizer
