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
    change.before = share(before_ns, before_);
    change.after = share(after_ns, after_);
    const std::uint64_t before_taken = before_.taken(before_samples);
    const std::uint64_t after_taken = after_.taken(after_samples);
    change.z = normalise_ == Normalise::kTime ? z_of_rates(before_taken, before_.periods, after_taken, after_.periods)
                                              : z_of_shares(before_taken, before_.samples, after_taken, after_.samples);
    return change;
  }
  [[nodiscard]] double share_change(std::uint64_t before_ns, std::uint64_t after_ns) const {
    return share(after_ns, after_) - share(before_ns, before_);
  }
  /// By shares whatever the normalisation: a machine that is busier as a whole is no noise.
  [[nodiscard]] double z_of_share(std::uint64_t before_samples, std::uint64_t after_samples) const {
    return plain_z_of_shares(before_.taken(before_samples), before_.samples, after_.taken(after_samples),
                             after_.samples);
  }

 private:
  struct Size {
    std::uint64_t samples = 0;  ///< taken
    double ns = 0;
    double window_ns = 0;
    double periods = 0;  ///< of sampling, in the window
    double weight = 1;   ///< as how many a sample that was taken is counted, on average

    [[nodiscard]] std::uint64_t taken(std::uint64_t counted) const {
      return weight == 1 ? counted : static_cast<std::uint64_t>(std::llround(static_cast<double>(counted) / weight));
    }
  };
  static Size size_of(const DiffSide& side) {
    Size size{0, static_cast<double>(side.total_ns), 0, 0, side.mean_weight()};
    size.samples = size.taken(side.total_samples);
    size.window_ns = static_cast<double>(side.used.to.ns - side.used.from.ns);
    size.periods = size.window_ns / static_cast<double>(std::max<std::int64_t>(side.period_ns, 1)) / size.weight;
    return size;
  }
  [[nodiscard]] double share(std::uint64_t ns, const Size& side) const {
    const double of = normalise_ == Normalise::kTime ? side.window_ns : side.ns;
    return of > 0 ? static_cast<double>(ns) / of : 0;
  }

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
    count_comparisons();
    if (options_.min_percent > 0 || options_.max_nodes != 0) prune();
    judge();
    rank_functions();
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
    diff_.functions.reserve(functions.size());
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
  static bool is_compared(const NodeOrFunction& of) {
    return of.before.self_samples + of.after.self_samples >= kFewestSamples;
  }
  /// As many chances to take noise for a change: also what is not shown, and total times, which people compare too.
  void count_comparisons() {
    const auto count = [&](const auto& of) {
      if (is_compared(of)) ++comparisons_;
      if (of.before.total_samples + of.after.total_samples >= kFewestSamples) ++comparisons_;
    };
    for (const DiffNode& node : diff_.nodes) count(node);
    for (const DiffFunction& function : diff_.functions) count(function);
  }

  void judge() {
    const Measure by(diff_.before, diff_.after, options_.normalise);
    const auto look = [&](auto& of) {
      of.self = by.change(of.before.self_samples, of.before.self_ns, of.after.self_samples, of.after.self_ns);
      of.change_total = by.share_change(of.before.total_ns, of.after.total_ns);
    };
    for (DiffNode& node : diff_.nodes) look(node);
    std::vector<double> noise;
    for (DiffFunction& function : diff_.functions) {
      look(function);
      const DiffCount& before = function.before;
      const DiffCount& after = function.after;
      if (before.self_samples >= kFewestForNoise && after.self_samples >= kFewestForNoise) {
        noise.push_back(by.z_of_share(before.self_samples, after.self_samples));
      }
    }
    const double least_z =
        least_significant_z(kFalseAlarms, comparisons_) * std::sqrt(overdispersion(std::move(noise)));
    const auto mark = [&](auto& of) { of.self.significant = is_compared(of) && std::abs(of.self.z) >= least_z; };
    for (DiffNode& node : diff_.nodes) {
      if (node.frame < first_rest_) mark(node);
    }
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
    first_rest_ = static_cast<std::uint32_t>(diff_.frames.size());
    std::vector<double> share_of(nodes.size());
    std::vector<std::uint32_t> kept;
    kept.reserve(nodes.size());
    for (std::uint32_t node = 1; node < nodes.size(); ++node) {
      share_of[node] = std::max(share(nodes[node].before.total_ns, diff_.before.total_ns),
                                share(nodes[node].after.total_ns, diff_.after.total_ns));
      if (share_of[node] * 100 >= options_.min_percent) kept.push_back(node);
    }
    const std::size_t most = options_.max_nodes == 0 ? kept.size() : std::min(kept.size(), options_.max_nodes - 1);
    if (most < kept.size()) {
      // Parents are as large as their children, and come first among equals: what is kept is a tree.
      std::nth_element(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(most), kept.end(),
                       [&](std::uint32_t a, std::uint32_t b) {
                         return share_of[a] != share_of[b] ? share_of[a] > share_of[b] : a < b;
                       });
      kept.resize(most);
    }
    if (kept.size() + 1 == nodes.size()) return;
    std::vector<bool> is_kept(nodes.size(), false);
    is_kept[0] = true;
    for (std::uint32_t node : kept) is_kept[node] = true;

    struct Rest {
      std::size_t functions = 0;
      DiffCount before, after;
    };
    constexpr std::uint32_t kNothing = 0xffffffffU;
    std::vector<Rest> rests;
    std::vector<std::uint32_t> rest_of(nodes.size(), kNothing);  // of what is kept: what is pruned right below
    std::vector<std::uint32_t> caller(nodes.size(), 0);          // the nearest that is kept
    std::vector<std::uint64_t> pairs;                            // of rest and function
    for (std::uint32_t node = 1; node < nodes.size(); ++node) {
      const std::uint32_t parent = nodes[node].parent;
      caller[node] = is_kept[node] ? node : caller[parent];
      if (is_kept[node]) continue;
      std::uint32_t& place = rest_of[caller[node]];
      if (place == kNothing) {
        place = static_cast<std::uint32_t>(rests.size());
        rests.emplace_back();
      }
      pairs.push_back((std::uint64_t{place} << 32) | nodes[node].frame);
      add(rests[place].before, nodes[node].before, is_kept[parent]);
      add(rests[place].after, nodes[node].after, is_kept[parent]);
    }
    std::sort(pairs.begin(), pairs.end());
    pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
    for (const std::uint64_t pair : pairs) ++rests[pair >> 32].functions;
    std::vector<DiffNode> out;
    out.reserve(kept.size() + 1 + rests.size());
    std::vector<std::uint32_t> place(nodes.size(), 0);
    for (std::uint32_t node = 0; node < nodes.size(); ++node) {
      if (!is_kept[node]) continue;
      place[node] = static_cast<std::uint32_t>(out.size());
      out.push_back(nodes[node]);
      out.back().parent = place[nodes[node].parent];
      if (rest_of[node] == kNothing) continue;
      const Rest& sum = rests[rest_of[node]];
      DiffNode rest;
      rest.frame =
          marker("(pruned: " + std::to_string(sum.functions) + (sum.functions == 1 ? " function)" : " functions)"));
      rest.parent = place[node];
      rest.before = whole(sum.before);
      rest.after = whole(sum.after);
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
  std::size_t comparisons_ = 0;
  std::uint32_t first_rest_ = 0xffffffffU;  ///< frame: this and later ones stand for what is pruned
  std::vector<std::uint32_t> markers_;
};

}  // namespace

ProfileDiff diff(ProfileTree& tree, DiffSide before, DiffSide after, const DiffOptions& options) {
  return Differ(std::move(before), std::move(after), options).build(tree);
}

}  // namespace flamed::store
