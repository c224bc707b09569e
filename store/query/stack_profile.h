// SPDX-License-Identifier: Apache-2.0
//
// StackProfile: the selected samples as addresses, stacks, threads and counts, for formats that have no tree of
// functions (pprof, speedscope, perf script). A plain value.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/identity.h"
#include "store/model/answer_facts.h"
#include "store/model/process_info.h"
#include "store/model/profile.h"
#include "store/model/profile_options.h"
#include "store/model/query_budget.h"
#include "store/ring/snapshot.h"

namespace flamed::store {

/// One address, with its functions.
struct StackFrame {
  Frame address;
  std::shared_ptr<const InlineChain> chain;  ///< outermost first; never null, never empty
};

/// A frame below its caller. Stacks share their outer part: a stack is the index of its innermost node.
struct StackNode {
  std::uint32_t caller = 0;  ///< its index is smaller than this node's; node 0 is not a frame but the root of all
                             ///< stacks
  std::uint32_t frame = 0;   ///< index into StackProfile::frames; meaningless in node 0
};

struct StackThread {
  std::uint32_t process = 0;  ///< index into StackProfile::processes
  std::int32_t tid = 0;
  std::string comm;
};

struct StackCount {
  std::uint32_t thread = 0;  ///< index into StackProfile::threads
  std::uint32_t stack = 0;   ///< index into StackProfile::nodes; 0: a sample without frames
  std::optional<Truncation> truncation{};
  std::uint64_t samples = 0;
  std::uint64_t ns = 0;  ///< the sum of the samples' periods
};

struct StackProfile : AnswerFacts {
  std::vector<StackFrame> frames;      ///< distinct
  std::vector<StackNode> nodes{1};     ///< callers before callees
  std::vector<StackThread> threads;    ///< those with samples here
  std::vector<ProcessInfo> processes;  ///< those with samples here, by id
  std::vector<StackCount> counts;      ///< one per (thread, stack, truncation)
  std::uint64_t total_samples = 0;
  std::uint64_t total_ns = 0;
};

/// Of the options `inlines`, `full_names` (in the chains' `name`), `focus`, `ignore` and `hide` apply; the others are
/// for trees. Chains keep their lines.
Result<StackProfile> build_stacks(const Snapshot& snapshot, const Selection& selection, const ProfileOptions& options,
                                  FrameNamer& namer, QueryBudget& budget);

}  // namespace flamed::store
