// SPDX-License-Identifier: Apache-2.0
#include "api/querier/flame_levels.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "api/render/render_common.h"
#include "base/keyed_hash.h"

namespace flamed::api {
namespace {

constexpr std::string_view kRoot = "total";
constexpr std::string_view kPruned = "other";

std::string shown_name(const store::NamedFrame& frame) {
  if (frame.kind == store::FrameKind::kRoot) return std::string(kRoot);
  if (frame.kind == store::FrameKind::kMarker && frame.name.starts_with("(pruned: ")) return std::string(kPruned);
  return frame.name.empty() ? "[unnamed]" : one_line(frame.name);
}

/// By frame: the index of its name. Frames of several modules may share a name.
std::vector<std::int64_t> name_frames(const store::Profile& profile, std::vector<std::string>& names) {
  std::unordered_map<std::string, std::int64_t, KeyedTextHash> index_of;
  std::vector<std::int64_t> indices(profile.frames.size(), 0);
  const auto add = [&](std::uint32_t frame) {
    const auto [entry, is_new] =
        index_of.try_emplace(shown_name(profile.frames[frame]), static_cast<std::int64_t>(names.size()));
    if (is_new) names.push_back(entry->first);
    indices[frame] = entry->second;
  };
  add(profile.nodes.front().frame);
  for (std::uint32_t frame = 0; frame < profile.frames.size(); ++frame) add(frame);
  return indices;
}

struct Place {
  std::size_t depth = 0;
  std::uint64_t next_child = 0;  ///< where the next child begins
};

}  // namespace

LevelsAnswer flame_levels(const store::Profile& profile) {
  LevelsAnswer answer;
  const std::vector<std::int64_t> name_of = name_frames(profile, answer.names);
  std::vector<Place> places(profile.nodes.size());
  std::vector<std::uint64_t> ends;  // by level: where its last bar ends
  // Parents come first, and bars of a level from left to right.
  for (std::size_t i = 0; i < profile.nodes.size(); ++i) {
    const store::ProfileNode& node = profile.nodes[i];
    const std::uint64_t total = profile.cpu_ns(node.total_samples);
    const std::uint64_t self = profile.cpu_ns(node.self_samples);
    std::uint64_t begin = 0;
    if (i != 0) {
      Place& parent = places[node.parent];
      places[i].depth = parent.depth + 1;
      begin = parent.next_child;
      parent.next_child += total;
    }
    places[i].next_child = begin + self;
    const std::size_t depth = places[i].depth;
    if (depth == ends.size()) {
      ends.push_back(0);
      answer.levels.emplace_back();
    }
    for (const std::uint64_t value : {begin - ends[depth], total, self}) {
      answer.levels[depth].push_back(static_cast<std::int64_t>(value));
    }
    answer.levels[depth].push_back(name_of[node.frame]);
    ends[depth] = begin + total;
    answer.max_self = std::max(answer.max_self, static_cast<std::int64_t>(self));
  }
  answer.total = static_cast<std::int64_t>(profile.cpu_ns(profile.nodes.front().total_samples));
  return answer;
}

}  // namespace flamed::api
