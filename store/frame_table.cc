// SPDX-License-Identifier: Apache-2.0
#include "store/frame_table.h"

#include <functional>

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

std::uint64_t FrameTable::hash_of(const Key& key) {
  const std::hash<std::string_view> hash;
  return mix(hash(key.name) ^ (hash(key.module) * 31) ^ (key.line * 0x9e3779b97f4a7c15ULL));
}

FrameTable::FrameTable(const ProfileOptions& options)
    : lines_(options.lines), full_names_(options.full_names), annotate_(options.annotate), inlines_(options.inlines) {}

void FrameTable::append_chain(const std::shared_ptr<const InlineChain>& chain, std::vector<std::uint32_t>& frames) {
  if (chain == nullptr || chain->empty()) {
    frames.push_back(intern({"[unknown]", "", FrameKind::kUnknown, "nobody could name it"}));
    return;
  }
  chains_.push_back(chain);
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

std::uint32_t FrameTable::intern_as(const NamedFrame& frame, std::string_view name, std::size_t bare_size, bool lasts) {
  const Key key = key_of(frame, name);
  const std::uint64_t hash = hash_of(key);
  const std::uint32_t found = ids_.find(hash, [&](std::uint32_t id) {
    const Entry& entry = frames_[id];
    return entry.hash == hash && key_of(*entry.frame, entry.frame->name) == key;
  });
  if (found != IdIndex::kNone) {
    Entry& entry = frames_[found];
    if (entry.frame != &frame && differs(*entry.frame, frame)) merge(own(entry), frame);
    return found;
  }
  const auto id = static_cast<std::uint32_t>(frames_.size());
  frames_.push_back(Entry{&frame, nullptr, bare_size, hash});
  if (name.data() != frame.name.data()) {
    own(frames_.back()).name = name;
  } else if (!lasts) {
    own(frames_.back());
  }
  static_cast<void>(ids_.make_room([&](std::uint32_t other) { return frames_[other].hash; }));
  ids_.insert(hash, id);
  return id;
}

NamedFrame& FrameTable::own(Entry& entry) {
  if (entry.own == nullptr) {
    entry.own = &own_.emplace_back(*entry.frame);
    entry.frame = entry.own;
  }
  return *entry.own;
}

}  // namespace flamed::store
