// SPDX-License-Identifier: Apache-2.0
//
// ProfileDiff: two profiles as one tree, with marks on changes beyond chance. A plain value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "store/model/answer_facts.h"
#include "store/model/profile.h"

namespace flamed::store {

class ProfileTree;

enum class Normalise : std::uint8_t {
  kSamples,  ///< shares of all samples: where the time went, independent of how busy the two sides were
  kTime,     ///< CPU time per time of the window: a side that was busier is larger
};

struct DiffOptions {
  Normalise normalise = Normalise::kSamples;
  double min_percent = 0;     ///< as in ProfileOptions, of the larger side's share
  std::size_t max_nodes = 0;  ///< as in ProfileOptions, by the larger side's share
};

/// One side of a node or function. Each sample stands for its side's period_ns.
struct DiffCount {
  std::uint64_t self_samples = 0;
  std::uint64_t total_samples = 0;
};

/// A change from `before` to `after`, normalised: of shares (0..1) or of CPUs in use (CPU ns per ns of window).
struct DiffChange {
  double before = 0;
  double after = 0;
  double z = 0;              ///< the change in standard deviations of chance; positive: more
  bool significant = false;  ///< without a change, chance would set any such mark in one of 100 comparisons

  [[nodiscard]] double change() const { return after - before; }
};

/// In depth-first order, parents before children, siblings by name. Node 0 is the root.
struct DiffNode {
  std::uint32_t frame = 0;   ///< index into ProfileDiff::frames
  std::uint32_t parent = 0;  ///< index into ProfileDiff::nodes; the root is its own parent
  DiffCount before;
  DiffCount after;
  DiffChange self;
  double change_total = 0;  ///< as DiffChange::change()
};

/// A function, summed over the tree. `total` counts a stack once, even if the function is in it several times.
struct DiffFunction {
  std::uint32_t frame = 0;
  DiffCount before;
  DiffCount after;
  DiffChange self;
  double change_total = 0;
};

/// One of the two sides.
struct DiffSide : AnswerFacts {
  std::vector<ProcessInfo> processes;
  std::uint64_t total_samples = 0;
};

struct ProfileDiff {
  DiffSide before;
  DiffSide after;
  Normalise normalise = Normalise::kSamples;
  FrameList frames;             ///< distinct
  std::vector<DiffNode> nodes;  ///< at least the root
  /// All functions, those with a significant change of `self` first, then by the size of that change; of equal ones
  /// the increase first. Without groups' nodes and markers.
  std::vector<DiffFunction> functions;
  std::vector<std::string> warnings;
};

/// Compares the two sides of a tree, 0 with 1. The tree must not be pruned: nodes pruned on one side only would look
/// like a change. `before` and `after` must be complete except the totals. Consumes the tree and its FrameTable.
ProfileDiff diff(ProfileTree& tree, DiffSide before, DiffSide after, const DiffOptions& options);

}  // namespace flamed::store
