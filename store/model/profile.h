// SPDX-License-Identifier: Apache-2.0
//
// Profile: the answer to "what was the CPU doing", as a plain value that renderers turn into bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/identity.h"
#include "base/named_frame.h"
#include "store/model/answer_facts.h"
#include "store/model/frame_list.h"
#include "store/model/process_info.h"
#include "store/model/quality.h"

namespace flamed::store {

using flamed::FrameKind;
using flamed::InlineChain;
using flamed::NamedFrame;

class KeptIndex;

/// Turns addresses into names. Declared here, for the builders of profiles; implemented by the daemon with the
/// symbolizer.
class FrameNamer {
 public:
  virtual ~FrameNamer() = default;
  /// One chain for each frame, in the same order. Called at most once per profile, with all distinct frames that are
  /// not known yet, so that work can be batched by module. Any thread.
  virtual std::vector<std::shared_ptr<const InlineChain>> name(std::span<const Frame> frames) = 0;
  /// As long as the number is the same, the names of these modules have not changed since it was read, except those for
  /// which may_change() is true. Cheap; any thread.
  virtual std::uint64_t edition(std::span<const ModuleId> /*modules*/) { return 0; }
  /// The cache for queries that use this namer. Null if edition() gives no guarantee.
  [[nodiscard]] virtual KeptIndex* kept_index() { return nullptr; }
};

/// Nodes are in depth-first order, parents before children, siblings by name. Node 0 is the root.
struct ProfileNode {
  std::uint32_t frame = 0;   ///< index into Profile::frames
  std::uint32_t parent = 0;  ///< index into Profile::nodes; the root is its own parent
  std::uint64_t self_samples = 0;
  std::uint64_t total_samples = 0;
};

/// A flame graph. Each sample stands for period_ns.
struct Profile : AnswerFacts {
  FrameList frames;                    ///< distinct
  std::vector<ProfileNode> nodes;      ///< at least the root
  std::vector<ProcessInfo> processes;  ///< those with samples here, and those selected by pid
};

}  // namespace flamed::store
