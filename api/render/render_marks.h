// SPDX-License-Identifier: Apache-2.0
//
// Marks on the timeline, as JSON. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/pressure.h"
#include "store/model/selection.h"
#include "store/query/restarts.h"
#include "store/query/worst_waits.h"

namespace flamed::api {

/// A minute under pressure.
struct PressureMark {
  PressedMinute minute;
  /// Empty: not known, since waiting threads are not visited, or not looked for.
  std::optional<std::vector<store::WorstWait>> waits{};
};

/// A restart, a note, a minute under pressure, or none of these: the start of flamed.
struct Mark {
  WallTime time;
  std::string text;
  std::optional<store::Restart> restart{};
  bool is_note = false;
  std::optional<std::uint32_t> uid{};  ///< of a note: who set it
  std::optional<PressureMark> pressure{};
};

/// {time, time_ms, kind, text}. A note also has uid, null for a client of another host. The restart of a program also
/// has program, unit, container, id, id_before and ended_ms, of the process before. A minute under pressure also has
/// to_ms, pressure and waits.
std::string render_mark(const Mark& mark);

/// For reading: one line for each mark, in the order given.
std::string render_marks_text(const std::vector<Mark>& marks, const store::WallWindow& window,
                              std::optional<std::uint32_t> only_user);

/// {window, visible_uid, marks: [...]}, in the order given.
std::string render_marks(const std::vector<Mark>& marks, const store::WallWindow& window,
                         std::optional<std::uint32_t> only_user);

}  // namespace flamed::api
