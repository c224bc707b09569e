// SPDX-License-Identifier: Apache-2.0
//
// ProfileOptions: how the selected samples are shown. A plain value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flamed::store {

/// The first level below the root.
enum class Group : std::uint8_t {
  kNone,
  kProcess,     ///< "comm (pid)"; if there are very many, the smallest ones share a node per name
  kThread,      ///< "comm (pid/tid)"; likewise
  kComm,        ///< the thread's name
  kProgram,     ///< the file name of the program; the process's name without one
  kExecutable,  ///< the program's path; "[kernel threads and unknown]" without one
  kUnit,        ///< systemd unit; "[no unit]" without one
  kContainer,   ///< container id; "[no container]" without one
  kUser,        ///< "uid 1000"; "[user not known]" without one
  kTree,        ///< "comm (pid)" of the outermost known ancestor, see ProcessParents::top_of()
};

/// Whether a frame's name matches. Called once for each distinct name, on the query's thread.
using NameMatcher = std::function<bool(std::string_view)>;

struct ProfileOptions {
  /// Empty: kNone if the selection is one pid and nothing else, else kProcess.
  std::optional<Group> group{};
  /// A frame "--" of kind kMarker between the user frames and the kernel frames of each stack that has both.
  bool delimited = false;
  /// Appends "_[k]" to names of kernel functions, "_[i]" to inlined ones, "_[j]" to those of code without a file, for
  /// flamegraph.pl's colours.
  bool annotate = false;
  /// Distinguishes functions by source line, and appends " file:line" (the file's last component) to names. Without it,
  /// a function is one frame for all its lines; NamedFrame::line is 0 unless they all agree.
  bool lines = false;
  /// If false: only the function that others were inlined into, the outermost of a chain.
  bool inlines = true;
  /// The frames of a managed runtime's interpreter, between the program's own.
  bool interpreter = false;
  /// Names with template arguments and parameters.
  bool full_names = false;

  // As in pprof. They match names as shown, without the suffixes of `annotate` and `lines`, and no node of `group`.
  NameMatcher focus{};   ///< keeps only stacks in which a frame matches; empty: all
  NameMatcher ignore{};  ///< drops stacks in which a frame matches
  NameMatcher hide{};    ///< leaves out matching frames: their callees are attached to their caller

  /// Only the subtree below these names as shown, the first of them below the root: for fetching pruned nodes. The last
  /// of them is the root of the answer. If there is no such path: a root without samples, and a warning.
  std::vector<std::string> root{};

  // Pruning. The nodes left out below a node are one child "(pruned: N functions)" of kind kMarker: totals stay true.
  double min_percent = 0;     ///< the smallest share of the root's time of a shown node
  std::size_t max_nodes = 0;  ///< keeps the largest, not counting "(pruned)" ones; 0: no limit but the query's
};

}  // namespace flamed::store
