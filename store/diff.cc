// SPDX-License-Identifier: Apache-2.0
#include "store/diff.h"

#include <algorithm>
#include <cmath>
#include <optional>
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
                                  std::uint64_t after_ns) {
    DiffChange change;
    change.before = share(before_ns, before_);
    change.after = share(after_ns, after_);
    const std::uint64_t before_taken = before_.taken(before_samples);
    const std::uint64_t after_taken = after_.taken(after_samples);
    change.z = z_of(before_taken, after_taken);
    return change;
  }
  /// Nearly all nodes have very few samples of their own, so nearly all have the z of another one.
  [[nodiscard]] double z_of(std::uint64_t before, std::uint64_t after) {
    if (before >= kFew || after >= kFew) return compute_z(before, after);
    std::optional<double>& known = few_[before * kFew + after];
    if (!known) known = compute_z(before, after);
    return *known;
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
  [[nodiscard]] double compute_z(std::uint64_t before, std::uint64_t after) const {
    return normalise_ == Normalise::kTime ? z_of_rates(before, before_.periods, after, after_.periods)
                                          : z_of_shares(before, before_.samples, after, after_.samples);
  }
  [[nodiscard]] double share(std::uint64_t ns, const Size& side) const {
    const double of = normalise_ == Normalise::kTime ? side.window_ns : side.ns;
    return of > 0 ? static_cast<double>(ns) / of : 0;
  }

  static constexpr std::size_t kFew = 64;

  Normalise normalise_;
  Size before_;
  Size after_;
  std::vector<std::optional<double>> few_ = std::vector<std::optional<double>>(kFew * kFew);  ///< z, by samples
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
    show_nodes();
    judge();
    warn();
    return std::move(diff_);
  }

 private:
  struct Counts {
    DiffCount before, after;
  };
  struct Node : Counts {
    std::uint32_t frame = 0;
    std::uint32_t parent = 0;
  };

  void take_nodes(ProfileTree& tree) {
    ProfileTree::Ordered ordered = tree.order();
    diff_.frames = std::move(ordered.frames);
    nodes_.reserve(ordered.nodes.size());
    const auto count_of = [&](std::uint32_t node, std::size_t side) {
      const ProfileTree::Own& own = tree.own(node, side);
      return DiffCount{own.samples, own.samples, own.ns, own.ns};
    };
    for (const ProfileTree::Ordered::Node& node : ordered.nodes) {
      nodes_.push_back({{count_of(node.node, 0), count_of(node.node, 1)}, node.frame, node.parent});
    }
    for (std::size_t i = nodes_.size(); i-- > 1;) {
      Node& parent = nodes_[nodes_[i].parent];
      add_total(parent.before, nodes_[i].before);
      add_total(parent.after, nodes_[i].after);
    }
    const auto describe = [](DiffSide& side, const DiffCount& root) {
      side.total_samples = root.total_samples;
      side.total_ns = root.total_ns;
    };
    describe(diff_.before, nodes_.front().before);
    describe(diff_.after, nodes_.front().after);
  }

  void find_functions() {
    functions_.resize(diff_.frames.size());
    std::vector<std::uint32_t> on_path(diff_.frames.size(), 0);
    std::vector<std::uint32_t> path;
    for (std::uint32_t id = 0; id < nodes_.size(); ++id) {
      const Node& node = nodes_[id];
      count_comparisons(node);
      while (!path.empty() && path.back() != node.parent) {
        --on_path[nodes_[path.back()].frame];
        path.pop_back();
      }
      Counts& function = functions_[node.frame];
      const bool outermost = on_path[node.frame] == 0;
      add(function.before, node.before, outermost);
      add(function.after, node.after, outermost);
      ++on_path[node.frame];
      path.push_back(id);
    }
    for (std::uint32_t frame = 0; frame < functions_.size(); ++frame) {
      const FrameKind kind = diff_.frames[frame].kind;
      if (kind == FrameKind::kRoot || kind == FrameKind::kMarker) continue;
      if (functions_[frame].before.total_samples + functions_[frame].after.total_samples == 0) continue;
      count_comparisons(functions_[frame]);
      compared_.push_back(frame);
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
  template <typename NodeOrFunction>
  void count_comparisons(const NodeOrFunction& of) {
    if (is_compared(of)) ++comparisons_;
    if (of.before.total_samples + of.after.total_samples >= kFewestSamples) ++comparisons_;
  }

  void judge() {
    Measure by(diff_.before, diff_.after, options_.normalise);
    const auto look = [&](auto& of) {
      of.self = by.change(of.before.self_samples, of.before.self_ns, of.after.self_samples, of.after.self_ns);
      of.change_total = by.share_change(of.before.total_ns, of.after.total_ns);
    };
    std::vector<double> noise;
    for (const std::uint32_t frame : compared_) {
      const Counts& of = functions_[frame];
      if (of.before.self_samples >= kFewestForNoise && of.after.self_samples >= kFewestForNoise) {
        noise.push_back(by.z_of_share(of.before.self_samples, of.after.self_samples));
      }
    }
    const double least_z =
        least_significant_z(kFalseAlarms, comparisons_) * std::sqrt(overdispersion(std::move(noise)));
    const auto mark = [&](auto& of) { of.self.significant = is_compared(of) && std::abs(of.self.z) >= least_z; };
    for (DiffNode& node : diff_.nodes) {
      look(node);
      if (node.frame < first_rest_) mark(node);
    }
    std::vector<DiffFunction> functions;
    functions.reserve(compared_.size());
    for (const std::uint32_t frame : compared_) {
      DiffFunction& function = functions.emplace_back();
      function.frame = frame;
      function.before = functions_[frame].before;
      function.after = functions_[frame].after;
      look(function);
      mark(function);
    }
    rank(functions);
  }

  void rank(const std::vector<DiffFunction>& functions) {
    // What grows in one function shrinks in the shares of the others: of changes of one size the increase tells more.
    struct Rank {
      double size = 0;
      std::uint32_t function = 0;
      bool significant = false;
    };
    std::vector<Rank> ranks;
    ranks.reserve(functions.size());
    for (const DiffFunction& function : functions) {
      const double change = function.self.change();
      ranks.push_back({change > 0 ? change * (1 + 1e-9) : -change, static_cast<std::uint32_t>(ranks.size()),
                       function.self.significant});
    }
    std::sort(ranks.begin(), ranks.end(), [](const Rank& a, const Rank& b) {
      if (a.significant != b.significant) return a.significant;
      return a.size != b.size ? a.size > b.size : a.function < b.function;
    });
    diff_.functions.reserve(ranks.size());
    for (const Rank& rank : ranks) diff_.functions.push_back(functions[rank.function]);
  }

  /// The nodes that the answer has: all, or the largest.
  void show_nodes() {
    first_rest_ = static_cast<std::uint32_t>(diff_.frames.size());
    std::vector<double> share_of(nodes_.size());
    std::vector<std::uint32_t> kept;
    kept.reserve(nodes_.size());
    for (std::uint32_t node = 1; node < nodes_.size(); ++node) {
      share_of[node] = std::max(share(nodes_[node].before.total_ns, diff_.before.total_ns),
                                share(nodes_[node].after.total_ns, diff_.after.total_ns));
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
    std::vector<bool> is_kept(nodes_.size(), false);
    is_kept[0] = true;
    for (std::uint32_t node : kept) is_kept[node] = true;

    struct Rest {
      std::size_t functions = 0;
      DiffCount before, after;
    };
    constexpr std::uint32_t kNothing = 0xffffffffU;
    std::vector<Rest> rests;
    std::vector<std::uint32_t> rest_of(nodes_.size(), kNothing);  // of what is kept: what is pruned right below
    std::vector<std::uint32_t> caller(nodes_.size(), 0);          // the nearest that is kept
    std::vector<std::uint64_t> pairs;                             // of rest and function
    for (std::uint32_t node = 1; node < nodes_.size(); ++node) {
      const std::uint32_t parent = nodes_[node].parent;
      caller[node] = is_kept[node] ? node : caller[parent];
      if (is_kept[node]) continue;
      std::uint32_t& place = rest_of[caller[node]];
      if (place == kNothing) {
        place = static_cast<std::uint32_t>(rests.size());
        rests.emplace_back();
      }
      pairs.push_back((std::uint64_t{place} << 32) | nodes_[node].frame);
      add(rests[place].before, nodes_[node].before, is_kept[parent]);
      add(rests[place].after, nodes_[node].after, is_kept[parent]);
    }
    std::sort(pairs.begin(), pairs.end());
    pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
    for (const std::uint64_t pair : pairs) ++rests[pair >> 32].functions;
    std::vector<DiffNode>& out = diff_.nodes;
    out.reserve(kept.size() + 1 + rests.size());
    std::vector<std::uint32_t> place(nodes_.size(), 0);
    for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
      if (!is_kept[node]) continue;
      place[node] = static_cast<std::uint32_t>(out.size());
      DiffNode& shown = out.emplace_back();
      shown.frame = nodes_[node].frame;
      shown.parent = place[nodes_[node].parent];
      shown.before = nodes_[node].before;
      shown.after = nodes_[node].after;
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
  std::vector<Node> nodes_;              ///< all, as DiffNodes will be
  std::vector<Counts> functions_;        ///< by frame
  std::vector<std::uint32_t> compared_;  ///< frames that are functions with samples
  std::size_t comparisons_ = 0;
  std::uint32_t first_rest_ = 0xffffffffU;  ///< frame: this and later ones stand for what is pruned
  std::vector<std::uint32_t> markers_;
};

}  // namespace

ProfileDiff diff(ProfileTree& tree, DiffSide before, DiffSide after, const DiffOptions& options) {
  return Differ(std::move(before), std::move(after), options).build(tree);
}

}  // namespace flamed::store
