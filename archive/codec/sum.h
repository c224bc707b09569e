// SPDX-License-Identifier: Apache-2.0
//
// Sum: how many samples each process had on each side in a stretch of ten minutes, as it is kept on disk beside these
// minutes. Its
// bytes are those of a minute and its additions, to a dictionary that a session's sums have for themselves. Plain
// values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "archive/codec/additions.h"
#include "archive/codec/minute.h"
#include "base/clock.h"
#include "base/identity.h"
#include "base/result.h"

namespace flamed::archive {

/// A process that stands for several short ones of one program, user and place: in sums of a month there would be
/// millions. The kernel's idle tasks, which have pid 0 as well, have no start time.
[[nodiscard]] inline bool is_several(const ProcessId& id) { return id.pid == 0 && id.start_ticks != 0; }

struct Sum {
  std::uint32_t first = 0;  ///< Minute::sequence of the first of its minutes; see codec/stretch.h
  /// `sequence` is that of the last one. Each thread stands for those of a process with one owner, and each stack for
  /// those that have the same sides and ended for the same reason.
  Minute minute;
  Additions additions;
  /// The short processes one by one, with a dictionary of their own, in place of those that stand for several.
  struct Short {
    Minute minute;
    Additions additions;
  };
  std::optional<Short> short_processes{};
};

/// Its bytes, and where it belongs.
struct SumBlocks {
  std::uint32_t first = 0, last = 0;  ///< sequences of minutes of the session
  WallTime start, end;
  std::vector<std::byte> additions, pairs;
  std::vector<std::byte> short_additions{}, short_pairs{};  ///< both may be empty
};
Result<SumBlocks> encode(const Sum& sum);

}  // namespace flamed::archive
