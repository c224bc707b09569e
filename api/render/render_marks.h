// SPDX-License-Identifier: Apache-2.0
//
// Marks on the timeline, as JSON. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "store/model/selection.h"
#include "store/query/restarts.h"

namespace flamed::api {

struct Mark {
  WallTime time;
  std::string text;
  std::optional<store::Restart> restart{};  ///< with `is_note`: never
  bool is_note = false;
  std::optional<std::uint32_t> uid{};  ///< of a note: who set it
};

/// {time, time_ms, kind, text}. A note also has uid, null for a client of another host. The restart of a program also
/// has program, unit, container, id, id_before and ended_ms, of the process before.
std::string render_mark(const Mark& mark);

/// {window, visible_uid, marks: [...]}, in the order given.
std::string render_marks(const std::vector<Mark>& marks, const store::WallWindow& window,
                         std::optional<std::uint32_t> only_user);

}  // namespace flamed::api
