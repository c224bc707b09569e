// SPDX-License-Identifier: Apache-2.0
#include "api/render/render_folded.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "api/render/folded_name.h"
#include "api/render/render_common.h"

namespace flamed::api {
namespace {

/// A continuation of a path: the end of a stack ("name 42"), or an inner node ("name;"). In byte order of these texts
/// the lines are in byte order, too.
struct Step {
  std::string text;
  std::vector<std::uint32_t> nodes;  ///< for an inner node: the nodes whose children come next
};

class Folder {
 public:
  explicit Folder(const store::Profile& profile) : profile_(profile) {
    names_.reserve(profile.frames.size());
    for (const store::NamedFrame& frame : profile.frames) names_.push_back(folded_name(frame.name));
    index_children();
  }

  std::string fold() {
    struct Level {
      std::vector<Step> steps;
      std::size_t next;
      std::size_t path_bytes;  ///< length of the path before each of the steps
    };
    std::string out;
    std::string path;
    std::vector<Level> levels;
    levels.push_back({first_steps(), 0, 0});
    while (!levels.empty()) {
      Level& level = levels.back();
      path.resize(level.path_bytes);
      if (level.next == level.steps.size()) {
        levels.pop_back();
        continue;
      }
      Step& step = level.steps[level.next++];
      path += step.text;
      if (step.nodes.empty()) {
        out += path;
        out += '\n';
      } else {
        levels.push_back({steps_below(step.nodes), 0, path.size()});
      }
    }
    return out;
  }

 private:
  /// children_[first_child_[n] .. first_child_[n + 1]) are the children of node n.
  void index_children() {
    const std::size_t count = profile_.nodes.size();
    first_child_.assign(count + 1, 0);
    for (std::size_t i = 1; i < count; ++i) ++first_child_[profile_.nodes[i].parent + 1];
    for (std::size_t i = 0; i < count; ++i) first_child_[i + 1] += first_child_[i];
    children_.resize(count == 0 ? 0 : count - 1);
    std::vector<std::uint32_t> next(first_child_.begin(), first_child_.end());
    for (std::uint32_t i = 1; i < count; ++i) children_[next[profile_.nodes[i].parent]++] = i;
  }

  std::vector<Step> first_steps() {
    std::vector<std::uint32_t> below(children_.begin() + first_child_[0], children_.begin() + first_child_[1]);
    std::vector<Step> steps = steps_of(std::move(below));
    // Samples without frames: only the root's name is known.
    const store::ProfileNode& root = profile_.nodes.front();
    if (root.self_samples > 0) {
      steps.push_back({names_[root.frame] + " " + std::to_string(root.self_samples), {}});
      std::sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.text < b.text; });
    }
    return steps;
  }

  std::vector<Step> steps_below(const std::vector<std::uint32_t>& nodes) {
    std::vector<std::uint32_t> below;
    for (std::uint32_t node : nodes) {
      below.insert(below.end(), children_.begin() + first_child_[node], children_.begin() + first_child_[node + 1]);
    }
    return steps_of(std::move(below));
  }

  /// Merges nodes with the same text (equal names in two modules).
  std::vector<Step> steps_of(std::vector<std::uint32_t> nodes) {
    const auto name = [&](std::uint32_t node) -> const std::string& { return names_[profile_.nodes[node].frame]; };
    std::stable_sort(nodes.begin(), nodes.end(), [&](auto a, auto b) { return name(a) < name(b); });
    std::vector<Step> steps;
    for (auto first = nodes.begin(); first != nodes.end();) {
      const auto last = std::find_if(first, nodes.end(), [&](auto node) { return name(node) != name(*first); });
      std::uint64_t self = 0;
      std::vector<std::uint32_t> with_children;
      for (auto node = first; node != last; ++node) {
        self += profile_.nodes[*node].self_samples;
        if (first_child_[*node] != first_child_[*node + 1]) with_children.push_back(*node);
      }
      if (self > 0) steps.push_back({name(*first) + " " + std::to_string(self), {}});
      if (!with_children.empty()) steps.push_back({name(*first) + ";", std::move(with_children)});
      first = last;
    }
    std::sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.text < b.text; });
    return steps;
  }

  const store::Profile& profile_;
  std::vector<std::string> names_;  ///< by frame
  std::vector<std::uint32_t> first_child_;
  std::vector<std::uint32_t> children_;
};

}  // namespace

std::string render_folded(const store::Profile& profile) {
  if (profile.nodes.front().total_samples == 0) return warning_lines("# ", profile.warnings);
  return Folder(profile).fold();
}

}  // namespace flamed::api
