// SPDX-License-Identifier: Apache-2.0
//
// The parts of a tree in columns: a table of frames, and columns of its nodes. Pure; any thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "api/json_writer.h"
#include "store/profile.h"

namespace flamed::api {

/// The members strings (each text once, the empty one first), kinds (names of frame kinds) and frames, whose members
/// are columns: name, module (indices into strings), kind (index into kinds), and where any frame has such a thing
/// full_name, reason, build_id, file (indices into strings), line, inlined (1 or 0).
void append_frame_columns(JsonWriter& json, const store::FrameList& frames);

template <typename Nodes, typename Value>
void append_column(JsonWriter& json, std::string_view name, const Nodes& nodes, Value&& value) {
  json.key(name).begin_array();
  for (const auto& node : nodes) json.number(static_cast<std::uint64_t>(value(node)));
  json.end_array();
}

/// The column depth: of the root 0, of its children 1. With the nodes in depth-first order it says the whole tree.
template <typename Nodes>
void append_depths(JsonWriter& json, const Nodes& nodes) {
  std::vector<std::uint32_t> depths(nodes.size(), 0);
  for (std::size_t i = 1; i < nodes.size(); ++i) depths[i] = depths[nodes[i].parent] + 1;
  append_column(json, "depth", depths, [](std::uint32_t depth) { return depth; });
}

}  // namespace flamed::api
