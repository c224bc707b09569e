// SPDX-License-Identifier: Apache-2.0
#include "store/frame_table.h"

#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

namespace flamed::store {
namespace {

std::string_view last_component(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string_view annotation_of(const NamedFrame& frame) {
  if (frame.kind == FrameKind::kKernel) return "_[k]";
  if (frame.inlined) return "_[i]";
  if (frame.kind == FrameKind::kJit) return "_[j]";
  return {};
}

/// Whether merge() would change what is known.
bool differs(const NamedFrame& known, const NamedFrame& other) {
  return known.line != other.line || known.full_name != other.full_name || known.build_id != other.build_id ||
         known.file != other.file;
}

/// What differs between two occurrences of a function does not hold for the function.
void merge(NamedFrame& known, const NamedFrame& other) {
  if (known.full_name != other.full_name) known.full_name.clear();
  if (known.build_id != other.build_id) known.build_id.clear();
  if (known.file.empty()) known.file = other.file;
  if (known.line != other.line || known.file != other.file) known.line = 0;
}

}  // namespace

FrameTable::Beginning FrameTable::beginning_of(std::string_view name) {
  Beginning words{};
  for (std::size_t i = 0; i < std::min<std::size_t>(name.size(), 16); ++i) {
    words[i / 8] |= std::uint64_t{static_cast<unsigned char>(name[i])} << (56 - 8 * (i % 8));
  }
  return words;
}

std::vector<std::uint32_t> FrameTable::in_order(const std::vector<bool>& used) const {
  // Most names differ within their first bytes: those are compared where they stand, without a look at the strings.
  struct Place {
    Beginning beginning;
    std::uint32_t frame;
  };
  std::vector<Place> places;
  for (std::uint32_t frame = 0; frame < frames_.size(); ++frame) {
    if (used[frame]) places.push_back({frames_[frame].beginning, frame});
  }
  std::sort(places.begin(), places.end(), [&](const Place& a, const Place& b) {
    if (a.beginning != b.beginning) return a.beginning < b.beginning;
    const NamedFrame& x = *frames_[a.frame].frame;
    const NamedFrame& y = *frames_[b.frame].frame;
    return std::tie(x.name, x.module, x.kind, x.inlined, x.reason, x.file, a.frame) <
           std::tie(y.name, y.module, y.kind, y.inlined, y.reason, y.file, b.frame);
  });
  std::vector<std::uint32_t> order;
  order.reserve(places.size());
  for (const Place& place : places) order.push_back(place.frame);
  return order;
}

FrameList FrameTable::list(std::span<const std::uint32_t> frames) && {
  FrameList list;
  list.reserve(frames.size());
  for (const std::uint32_t frame : frames) list.share(*frames_[frame].frame);
  list.keep(std::move(owned_));
  return list;
}

FrameTable::FrameTable(const ProfileOptions& options)
    : lines_(options.lines), full_names_(options.full_names), annotate_(options.annotate), inlines_(options.inlines) {}

void FrameTable::append_chain(const InlineChain* chain, std::vector<std::uint32_t>& frames) {
  if (chain == nullptr || chain->empty()) {
    frames.push_back(intern({"[unknown]", "", FrameKind::kUnknown, "nobody could name it"}));
    return;
  }
  for (const NamedFrame& frame : *chain) {
    frames.push_back(intern_code(frame));
    if (!inlines_) break;
  }
}

FrameTable::Key FrameTable::key_of(const NamedFrame& frame, std::string_view name) const {
  Key key{name, frame.module, frame.reason, {}, 0, frame.kind, frame.inlined};
  if (lines_) {
    key.file = frame.file;
    key.line = frame.line;
  }
  return key;
}

std::uint32_t FrameTable::intern_code(const NamedFrame& frame) {
  const std::string& name = full_names_ && !frame.full_name.empty() ? frame.full_name : frame.name;
  if (!lines_ && !annotate_) return intern_as(frame, name, name.size(), true);
  std::string shown = name;
  if (lines_ && !frame.file.empty()) {
    shown += ' ';
    shown += last_component(frame.file);
    if (frame.line != 0) shown += ':' + std::to_string(frame.line);
  }
  if (annotate_) shown += annotation_of(frame);
  return intern_as(frame, shown, name.size(), true);
}

void FrameTable::reserve(std::size_t frames) {
  if (frames == 0) return;
  frames_.reserve(frames_.size() + frames);
  hashes_.reserve(frames_.size() + frames);
  static_cast<void>(ids_.make_room([&](std::uint32_t other) { return hashes_[other]; }, frames));
}

std::uint32_t FrameTable::intern_as(const NamedFrame& frame, std::string_view name, std::size_t bare_size, bool lasts) {
  const bool hash_is_known = frame.hash != 0 && name.data() == frame.name.data();
  const std::uint64_t hash = mix(hash_is_known ? frame.hash : hash_of(name, frame.module));
  const std::uint32_t found = ids_.find(hash, [&](std::uint32_t id) {
    if (hashes_[id] != hash) return false;
    const NamedFrame& other = *frames_[id].frame;
    return &other == &frame || key_of(other, other.name) == key_of(frame, name);
  });
  if (found != IdIndex::kNone) {
    Entry& entry = frames_[found];
    if (entry.frame != &frame && differs(*entry.frame, frame)) merge(own(entry), frame);
    return found;
  }
  const auto id = static_cast<std::uint32_t>(frames_.size());
  frames_.push_back(Entry{&frame, nullptr, beginning_of(name), bare_size});
  hashes_.push_back(hash);
  if (name.data() != frame.name.data()) {
    NamedFrame& renamed = own(frames_.back());
    renamed.name = name;
    renamed.hash = 0;
  } else if (!lasts) {
    own(frames_.back());
  }
  static_cast<void>(ids_.make_room([&](std::uint32_t other) { return hashes_[other]; }));
  ids_.insert(hash, id);
  return id;
}

NamedFrame& FrameTable::own(Entry& entry) {
  if (entry.own == nullptr) {
    entry.own = &owned_->frames.emplace_back(*entry.frame);
    entry.frame = entry.own;
  }
  return *entry.own;
}

}  // namespace flamed::store
