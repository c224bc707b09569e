// SPDX-License-Identifier: Apache-2.0
#include "api/answer/notes.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace flamed::api {

void Notes::add(Note note, WallTime oldest) {
  const std::lock_guard lock(mutex_);
  const auto is_before = [](WallTime time, const Note& other) { return time < other.time; };
  notes_.insert(std::upper_bound(notes_.begin(), notes_.end(), note.time, is_before), std::move(note));
  const auto old = std::find_if(notes_.begin(), notes_.end(), [&](const Note& other) { return other.time >= oldest; });
  const auto surplus = static_cast<std::ptrdiff_t>(notes_.size() - std::min(notes_.size(), kMost));
  notes_.erase(notes_.begin(), std::max(old, notes_.begin() + surplus));
}

std::vector<Note> Notes::in(const store::WallWindow& window) const {
  std::vector<Note> found;
  const std::lock_guard lock(mutex_);
  std::copy_if(notes_.begin(), notes_.end(), std::back_inserter(found),
               [&](const Note& note) { return window.from <= note.time && note.time <= window.to; });
  return found;
}

}  // namespace flamed::api
