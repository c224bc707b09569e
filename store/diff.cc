// SPDX-License-Identifier: Apache-2.0
#include "store/diff.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "store/profile_tree.h"
#include "store/significance.h"

namespace flamed::store {
namespace {

// Fewer samples than these on both sides together say nothing once one looks at hundreds of functions.
constexpr std::uint64_t kFewestSamples = 20;
// As many of a function on each side, for its z to be near enough to normal to judge the noise by.
constexpr std::uint64_t kFewestForNoise = 20;
constexpr double kFalseAlarms = 0.01;

/// What a change is measured by.
class Measure {
 public:
  Measure(const DiffSide& before, const DiffSide& after, Normalise normalise)
      : normalise_(normalise), before_(size_of(before)), after_(size_of(after)) {}

  [[nodiscard]] DiffChange change(std::uint64_t before_samples, std::uint64_t before_ns, std::uint64_t after_samples,
                                  std::uint64_t after_ns) const {
    DiffChange change;
    const bool by_time = normalise_ == Normalise::kTime;
    change.before = share(before_ns, by_time ? before_.window_ns : before_.ns);
    change.after = share(after_ns, by_time ? after_.window_ns : after_.ns);
    change.z = by_time ? z_of_rates(before_samples, before_.periods, after_samples, after_.periods)
                       : z_of_shares(before_samples, before_.samples, after_samples, after_.samples);
    return change;
  }
  /// By shares whatever the normalisation: a machine that is busier as a whole is no noise.
  [[nodiscard]] double z_of_share(std::uint64_t before_samples, std::uint64_t after_samples) const {
    return plain_z_of_shares(before_samples, before_.samples, after_samples, after_.samples);
  }

 private:
  struct Size {
    std::uint64_t samples = 0;
    double ns = 0;
    double window_ns = 0;
    double periods = 0;  ///< of sampling, in the window
  };
  static Size size_of(const DiffSide& side) {
    Size size{side.total_samples, static_cast<double>(side.total_ns), 0, 0};
    size.window_ns = static_cast<double>(side.used.to.ns - side.used.from.ns);
    size.periods = size.window_ns / static_cast<double>(std::max<std::int64_t>(side.period_ns, 1));
    return size;
  }
  static double share(std::uint64_t ns, double of) { return of > 0 ? static_cast<double>(ns) / of : 0; }

  Normalise normalise_;
  Size before_;
  Size after_;
};

class Differ {
 public:
  Differ(DiffSide before, DiffSide after, const DiffOptions& options) : options_(options) {
    diff_.before = std::move(before);
    diff_.after = std::move(after);
    diff_.normalise = options.normalise;
  }

  ProfileDiff build(ProfileTree& tree) {
    take_nodes(tree);
    find_functions();
    judge();
    rank_functions();
    if (options_.min_percent > 0 || options_.max_nodes != 0) prune();
    warn();
    return std::move(diff_);
  }

 private:
  void take_nodes(ProfileTree& tree) {
    ProfileTree::Ordered ordered = tree.order();
    diff_.frames = std::move(ordered.frames);
    diff_.nodes.resize(ordered.nodes.size());
    const auto count_of = [&](std::uint32_t node, std::size_t side) {
      const ProfileTree::Own& own = tree.own(node, side);
      return DiffCount{own.samples, own.samples, own.ns, own.ns};
    };
    for (std::size_t i = 0; i < ordered.nodes.size(); ++i) {
      const ProfileTree::Ordered::Node& node = ordered.nodes[i];
      diff_.nodes[i].frame = node.frame;
      diff_.nodes[i].parent = node.parent;
      diff_.nodes[i].before = count_of(node.node, 0);
      diff_.nodes[i].after = count_of(node.node, 1);
    }
    for (std::size_t i = diff_.nodes.size(); i-- > 1;) {
      DiffNode& parent = diff_.nodes[diff_.nodes[i].parent];
      add_total(parent.before, diff_.nodes[i].before);
      add_total(parent.after, diff_.nodes[i].after);
    }
    const auto describe = [](DiffSide& side, const DiffCount& root) {
      side.total_samples = root.total_samples;
      side.total_ns = root.total_ns;
    };
    describe(diff_.before, diff_.nodes.front().before);
    describe(diff_.after, diff_.nodes.front().after);
  }

  void find_functions() {
    std::vector<DiffFunction> functions(diff_.frames.size());
    std::vector<std::uint32_t> on_path(diff_.frames.size(), 0);
    std::vector<std::uint32_t> path;
    for (std::uint32_t id = 0; id < diff_.nodes.size(); ++id) {
      const DiffNode& node = diff_.nodes[id];
      while (!path.empty() && path.back() != node.parent) {
        --on_path[diff_.nodes[path.back()].frame];
        path.pop_back();
      }
      DiffFunction& function = functions[node.frame];
      const bool outermost = on_path[node.frame] == 0;
      add(function.before, node.before, outermost);
      add(function.after, node.after, outermost);
      ++on_path[node.frame];
      path.push_back(id);
    }
    for (std::uint32_t frame = 0; frame < functions.size(); ++frame) {
      const FrameKind kind = diff_.frames[frame].kind;
      if (kind == FrameKind::kRoot || kind == FrameKind::kMarker) continue;
      if (functions[frame].before.total_samples + functions[frame].after.total_samples == 0) continue;
      functions[frame].frame = frame;
      diff_.functions.push_back(functions[frame]);
    }
  }

  static void add(DiffCount& sum, const DiffCount& count, bool outermost) {
    sum.self_samples += count.self_samples;
    sum.self_ns += count.self_ns;
    if (outermost) add_total(sum, count);
  }
  static void add_total(DiffCount& sum, const DiffCount& count) {
    sum.total_samples += count.total_samples;
    sum.total_ns += count.total_ns;
  }

  template <typename NodeOrFunction>
  static void measure(NodeOrFunction& of, const Measure& measure) {
    of.self = measure.change(of.before.self_samples, of.before.self_ns, of.after.self_samples, of.after.self_ns);
    of.total = measure.change(of.before.total_samples, of.before.total_ns, of.after.total_samples, of.after.total_ns);
  }

  void judge() {
    const Measure by(diff_.before, diff_.after, options_.normalise);
    std::vector<double> noise;
    std::size_t comparisons = 0;
    const auto look = [&](auto& of) {
      measure(of, by);
      if (of.before.self_samples + of.after.self_samples >= kFewestSamples) ++comparisons;
      if (of.before.total_samples + of.after.total_samples >= kFewestSamples) ++comparisons;
    };
    for (DiffNode& node : diff_.nodes) look(node);
    for (DiffFunction& function : diff_.functions) {
      look(function);
      const DiffCount& before = function.before;
      const DiffCount& after = function.after;
      if (before.self_samples >= kFewestForNoise && after.self_samples >= kFewestForNoise) {
        noise.push_back(by.z_of_share(before.self_samples, after.self_samples));
      }
    }
    const double least_z = least_significant_z(kFalseAlarms, comparisons) * std::sqrt(overdispersion(std::move(noise)));
    const auto mark = [&](auto& of) {
      of.self.significant =
          of.before.self_samples + of.after.self_samples >= kFewestSamples && std::abs(of.self.z) >= least_z;
      of.total.significant =
          of.before.total_samples + of.after.total_samples >= kFewestSamples && std::abs(of.total.z) >= least_z;
    };
    for (DiffNode& node : diff_.nodes) mark(node);
    for (DiffFunction& function : diff_.functions) mark(function);
  }

  void rank_functions() {
    // What grows in one function shrinks in the shares of the others: of changes of one size the increase tells more.
    const auto size_of = [](const DiffFunction& function) {
      const double change = function.self.change();
      return change > 0 ? change * (1 + 1e-9) : -change;
    };
    std::sort(diff_.functions.begin(), diff_.functions.end(), [&](const DiffFunction& a, const DiffFunction& b) {
      if (a.self.significant != b.self.significant) return a.self.significant;
      const double x = size_of(a);
      const double y = size_of(b);
      return x != y ? x > y : a.frame < b.frame;
    });
  }

  void prune() {
    std::vector<DiffNode>& nodes = diff_.nodes;
    const auto share_of = [&](std::uint32_t node) {
      return std::max(share(nodes[node].before.total_ns, diff_.before.total_ns),
                      share(nodes[node].after.total_ns, diff_.after.total_ns));
    };
    std::vector<std::uint32_t> kept;
    for (std::uint32_t node = 1; node < nodes.size(); ++node) {
      if (share_of(node) * 100 >= options_.min_percent) kept.push_back(node);
    }
    const std::size_t most = options_.max_nodes == 0 ? kept.size() : std::min(kept.size(), options_.max_nodes - 1);
    if (most < kept.size()) {
      // Parents are as large as their children, and come first among equals: what is kept is a tree.
      std::nth_element(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(most), kept.end(),
                       [&](std::uint32_t a, std::uint32_t b) {
                         const double x = share_of(a);
                         const double y = share_of(b);
                         return x != y ? x > y : a < b;
                       });
      kept.resize(most);
    }
    std::vector<bool> is_kept(nodes.size(), false);
    is_kept[0] = true;
    for (std::uint32_t node : kept) is_kept[node] = true;

    struct Pruned {
      std::size_t functions = 0;
      DiffCount before, after;
    };
    std::vector<Pruned> pruned(nodes.size());  // by the nearest caller that is kept
    std::vector<std::uint32_t> caller(nodes.size(), 0);
    std::vector<std::uint64_t> pairs;  // of caller and function
    for (std::uint32_t node = 1; node < nodes.size(); ++node) {
      const std::uint32_t parent = nodes[node].parent;
      caller[node] = is_kept[node] ? node : caller[parent];
      if (is_kept[node]) continue;
      Pruned& sum = pruned[caller[node]];
      pairs.push_back((std::uint64_t{caller[node]} << 32) | nodes[node].frame);
      add(sum.before, nodes[node].before, is_kept[parent]);
      add(sum.after, nodes[node].after, is_kept[parent]);
    }
    std::sort(pairs.begin(), pairs.end());
    pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
    for (const std::uint64_t pair : pairs) ++pruned[pair >> 32].functions;
    const Measure by(diff_.before, diff_.after, options_.normalise);
    std::vector<DiffNode> out;
    std::vector<std::uint32_t> place(nodes.size(), 0);
    for (std::uint32_t node = 0; node < nodes.size(); ++node) {
      if (!is_kept[node]) continue;
      place[node] = static_cast<std::uint32_t>(out.size());
      out.push_back(nodes[node]);
      out.back().parent = place[nodes[node].parent];
      const Pruned& sum = pruned[node];
      if (sum.functions == 0) continue;
      DiffNode rest;
      rest.frame =
          marker("(pruned: " + std::to_string(sum.functions) + (sum.functions == 1 ? " function)" : " functions)"));
      rest.parent = place[node];
      rest.before = whole(sum.before);
      rest.after = whole(sum.after);
      measure(rest, by);
      out.push_back(rest);
    }
    nodes = std::move(out);
  }

  /// A node without children has all of its time as its own.
  static DiffCount whole(const DiffCount& count) {
    return {count.total_samples, count.total_samples, count.total_ns, count.total_ns};
  }
  static double share(std::uint64_t ns, std::uint64_t of) {
    return of != 0 ? static_cast<double>(ns) / static_cast<double>(of) : 0;
  }
  std::uint32_t marker(std::string name) {
    NamedFrame frame;
    frame.name = std::move(name);
    frame.kind = FrameKind::kMarker;
    for (std::uint32_t i : markers_) {
      if (diff_.frames[i] == frame) return i;
    }
    markers_.push_back(static_cast<std::uint32_t>(diff_.frames.size()));
    diff_.frames.push_back(std::move(frame));
    return markers_.back();
  }

  void warn() {
    if (diff_.before.total_samples == 0 || diff_.after.total_samples == 0) {
      diff_.warnings.emplace_back("One side has no samples: there is nothing to compare with.");
    }
    if (diff_.before.resolution_ns != diff_.after.resolution_ns) {
      diff_.warnings.emplace_back("One side is exact to the sample and the other is rounded to whole minutes.");
    }
  }

  const DiffOptions& options_;
  ProfileDiff diff_;
  std::vector<std::uint32_t> markers_;
};

}  // namespace

ProfileDiff diff(ProfileTree& tree, DiffSide before, DiffSide after, const DiffOptions& options) {
  return Differ(std::move(before), std::move(after), options).build(tree);
}

}  // namespace flamed::store
