// SPDX-License-Identifier: Apache-2.0
//
// The parts of a tree in columns: a table of frames, and columns of its nodes. Pure; any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "api/render/column_writer.h"
#include "store/model/profile.h"

namespace flamed::api {

/// The members strings (each text once, the empty one first), kinds (names of frame kinds) and frames, whose members
/// are columns: name, module (indices into strings), kind (index into kinds), and, if any frame has a value for them,
/// full_name, reason, build_id, file (indices into strings), line, inlined (1 or 0).
void append_frame_columns(ColumnWriter& out, const store::FrameList& frames);

/// The column depth: 0 for the root, 1 for its children. With the nodes in depth-first order it defines the tree.
template <typename Nodes>
void append_depths(ColumnWriter& out, const Nodes& nodes) {
  std::vector<std::uint64_t> depths(nodes.size(), 0);
  for (std::size_t i = 1; i < nodes.size(); ++i) depths[i] = depths[nodes[i].parent] + 1;
  out.numbers("depth", depths);
}

}  // namespace flamed::api
