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

/// What the first level below the root is.
enum class Group : std::uint8_t {
  kNone,
  kProcess,     ///< "comm (pid)"; of very many the smallest share a node per name
  kThread,      ///< "comm (pid/tid)"; likewise
  kComm,        ///< the thread's name
  kExecutable,  ///< the program's path; "[kernel threads and unknown]" without one
  kUnit,        ///< systemd unit; "[no unit]" without one
  kContainer,   ///< container id; "[no container]" without one
};

/// Whether a frame's name matches. Called once for each distinct name, on the thread that asks.
using NameMatcher = std::function<bool(std::string_view)>;

struct ProfileOptions {
  /// Empty: kNone when the selection is one pid and nothing else, else kProcess.
  std::optional<Group> group{};
  /// A frame "--" of kind kMarker between the user frames and the kernel frames of each stack that has both.
  bool delimited = false;
  /// Appends "_[k]" to names of kernel functions, "_[i]" to inlined ones, "_[j]" to those of code without a file, as
  /// flamegraph.pl's colours know them.
  bool annotate = false;
  /// Functions are told apart by source line, and " file:line" (the file's last component) stands behind their names.
  /// Without it, a function is one frame, whatever its lines; NamedFrame::line is 0 unless they all agree.
  bool lines = false;
  /// Without: only the function that others were inlined into, the outermost of a chain.
  bool inlines = true;
  /// Names with template arguments and parameters.
  bool full_names = false;

  // As in pprof. They see names as shown but for `annotate` and `lines`, and no node of `group`.
  NameMatcher focus{};   ///< keeps only stacks in which a frame matches; empty: all
  NameMatcher ignore{};  ///< drops stacks in which a frame matches
  NameMatcher hide{};    ///< leaves out matching frames: what they called hangs below their caller

  /// Only the subtree below these names as shown, the first of them below the root: how to fetch again what was pruned.
  /// The root of the answer is the last of them. When nothing bears the names: a root without samples, and a warning.
  std::vector<std::string> root{};

  // Pruning. What is left out below a node is one child "(pruned: N functions)" of kind kMarker: totals stay true.
  double min_percent = 0;     ///< least share of the root's time that a node is shown for
  std::size_t max_nodes = 0;  ///< keeps the largest, the "(pruned)" ones come on top; 0: no limit but the query's
};

}  // namespace flamed::store
