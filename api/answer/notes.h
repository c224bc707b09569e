// SPDX-License-Identifier: Apache-2.0
//
// Notes: the marks that people have set, such as "deploy 1.2.3". In memory only: gone with the daemon. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "store/model/selection.h"

namespace flamed::api {

struct Note {
  WallTime time;
  std::string text;                    ///< see MarkRequest
  std::optional<std::uint32_t> uid{};  ///< who set it; empty: a client of another host
};

class Notes {
 public:
  static constexpr std::size_t kMost = 1000;

  /// Forgets notes before `oldest`, and of more than kMost the oldest.
  void add(Note note, WallTime oldest);
  /// Oldest first. With those at its end: a window ends now, in whole milliseconds, and a note may have just been set.
  [[nodiscard]] std::vector<Note> in(const store::WallWindow& window) const;

 private:
  mutable std::mutex mutex_;
  std::vector<Note> notes_;  ///< by time; guarded by mutex_
};

}  // namespace flamed::api
