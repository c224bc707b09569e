// SPDX-License-Identifier: Apache-2.0
//
// A profile or a comparison in about a dozen plain sentences, one a line. The first stands by itself: it is the most
// important one. Pure; any thread.
#pragma once

#include <cstddef>
#include <string>

#include "store/model/profile.h"
#include "store/model/profile_options.h"
#include "store/model/selection.h"
#include "store/query/diff.h"

namespace flamed::api {

/// What the sentences need in addition to the answer.
struct SummaryFacts {
  store::Selection selection{};                 ///< of the query
  store::Group group = store::Group::kProgram;  ///< the first level below the root, which is not part of a stack
  std::size_t cpus = 0;                         ///< of the machine; 0: not known
  bool is_filtered = false;                     ///< by focus, ignore or root
};

/// Who used how much CPU, in which programs and functions; what is cut, nameless or lost, and what would help. The
/// profile must not be pruned.
std::string render_summary(const store::Profile& profile, const SummaryFacts& facts);

/// Which functions changed by more than chance, or that none did, and how busy both sides were. The selection is that
/// of the side after.
std::string render_diff_summary(const store::ProfileDiff& diff, const SummaryFacts& facts);

}  // namespace flamed::api
