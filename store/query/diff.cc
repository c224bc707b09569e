// SPDX-License-Identifier: Apache-2.0
#include "store/query/diff.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "store/containers/index_groups.h"
#include "store/query/profile_tree.h"
#include "store/query/significance.h"

namespace flamed::store {
namespace {

// Fewer samples than this on both sides together mean nothing among hundreds of functions.
constexpr std::uint64_t kFewestSamples = 20;
// The least number of samples on each side for a z that is nearly normal, to estimate the noise.
constexpr std::uint64_t kFewestForNoise = 20;
constexpr double kFalseAlarms = 0.01;
constexpr std::uint64_t kFirst = std::uint64_t{1} << 63;

/// Computes changes.
class Measure {
 public:
  Measure(const DiffSide& before, const DiffSide& after, Normalise normalise)
      : normalise_(normalise), before_(size_of(before, normalise)), after_(size_of(after, normalise)) {}

  /// Fills `self` and `change_total` of a node or function from its counts, except the mark.
  template <typename NodeOrFunction>
  void measure(NodeOrFunction& of) {
    of.self.before = before_.share(of.before.self_samples);
    of.self.after = after_.share(of.after.self_samples);
    of.self.z = z_of(before_.taken(of.before.self_samples), after_.taken(of.after.self_samples));
    of.change_total = after_.share(of.after.total_samples) - before_.share(of.before.total_samples);
  }
  /// By shares for every normalisation: a machine that is busier as a whole is not noise.
  [[nodiscard]] double z_of_share(std::uint64_t before_samples, std::uint64_t after_samples) const {
    return plain_z_of_shares(before_.taken(before_samples), before_.samples, after_.taken(after_samples),
                             after_.samples);
  }

 private:
  struct Size {
    std::uint64_t samples = 0;    ///< taken
    std::uint64_t period_ns = 0;  ///< CPU time of a sample
    double ns = 0;                ///< the base of shares
    double periods = 0;           ///< of sampling, in the window
    double weight = 1;            ///< average weight of a taken sample

    [[nodiscard]] std::uint64_t taken(std::uint64_t counted) const {
      return weight == 1 ? counted : static_cast<std::uint64_t>(std::llround(static_cast<double>(counted) / weight));
    }
    [[nodiscard]] double share(std::uint64_t counted) const {
      return counted != 0 && ns > 0 ? static_cast<double>(counted * period_ns) / ns : 0;
    }
  };
  static Size size_of(const DiffSide& side, Normalise normalise) {
    const auto window_ns = static_cast<double>(side.used.to.ns - side.used.from.ns);
    Size size;
    size.period_ns = side.cpu_ns(1);
    size.weight = side.mean_weight();
    size.samples = size.taken(side.total_samples);
    size.ns = normalise == Normalise::kTime ? window_ns : static_cast<double>(side.cpu_ns(side.total_samples));
    size.periods = window_ns / static_cast<double>(std::max<std::int64_t>(side.period_ns, 1)) / size.weight;
    return size;
  }
  /// Nearly all nodes have very few samples of their own, so a cache has nearly all z values.
  [[nodiscard]] double z_of(std::uint64_t before, std::uint64_t after) {
    if (before >= kFew || after >= kFew) return compute_z(before, after);
    std::optional<double>& known = few_[before * kFew + after];
    if (!known) known = compute_z(before, after);
    return *known;
  }
  [[nodiscard]] double compute_z(std::uint64_t before, std::uint64_t after) const {
    return normalise_ == Normalise::kTime ? z_of_rates(before, before_.periods, after, after_.periods)
                                          : z_of_shares(before, before_.samples, after, after_.samples);
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
    diff_.frames = tree.take_frames();
    add_up(tree);
    find_functions(tree);
    Measure by(diff_.before, diff_.after, options_.normalise);
    const double least_z = least_significant(by);
    show_nodes(tree, by, least_z);
    rank_functions(by, least_z);
    warn();
    return std::move(diff_);
  }

 private:
  struct Counts {
    DiffCount before, after;
  };

  void add_up(const ProfileTree& tree) {
    nodes_.reserve(tree.size());
    const auto count_of = [&](std::uint32_t node, std::size_t side) {
      const std::uint64_t own = tree.own(node, side);
      return DiffCount{own, own};
    };
    for (std::uint32_t node = 0; node < tree.size(); ++node) nodes_.push_back({count_of(node, 0), count_of(node, 1)});
    for (auto node = static_cast<std::uint32_t>(tree.size()); node-- > 1;) {
      Counts& parent = nodes_[tree.parent(node)];
      parent.before.total_samples += nodes_[node].before.total_samples;
      parent.after.total_samples += nodes_[node].after.total_samples;
    }
    diff_.before.total_samples = nodes_.front().before.total_samples;
    diff_.after.total_samples = nodes_.front().after.total_samples;
  }

  void find_functions(const ProfileTree& tree) {
    functions_.resize(diff_.frames.size());
    for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
      count_comparisons(nodes_[node]);
      Counts& function = functions_[tree.frame(node)];
      const bool outermost = !tree.repeats(node);
      add(function.before, nodes_[node].before, outermost);
      add(function.after, nodes_[node].after, outermost);
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
    if (outermost) sum.total_samples += count.total_samples;
  }

  template <typename NodeOrFunction>
  static bool is_compared(const NodeOrFunction& of) {
    return of.before.self_samples + of.after.self_samples >= kFewestSamples;
  }
  /// The number of chances to take noise for a change, including nodes that are not shown, and totals, which people
  /// compare as well.
  template <typename NodeOrFunction>
  void count_comparisons(const NodeOrFunction& of) {
    if (is_compared(of)) ++comparisons_;
    if (of.before.total_samples + of.after.total_samples >= kFewestSamples) ++comparisons_;
  }

  /// The z that chance exceeds in at most kFalseAlarms of comparisons like this one.
  [[nodiscard]] double least_significant(const Measure& by) const {
    std::vector<double> noise;
    for (const std::uint32_t frame : compared_) {
      const Counts& of = functions_[frame];
      if (of.before.self_samples >= kFewestForNoise && of.after.self_samples >= kFewestForNoise) {
        noise.push_back(by.z_of_share(of.before.self_samples, of.after.self_samples));
      }
    }
    return least_significant_z(kFalseAlarms, comparisons_) * std::sqrt(overdispersion(std::move(noise)));
  }
  template <typename NodeOrFunction>
  static void mark(NodeOrFunction& of, double least_z) {
    of.self.significant = is_compared(of) && std::abs(of.self.z) >= least_z;
  }

  /// The sort key of functions, larger ones first: only by their own samples.
  [[nodiscard]] static std::uint64_t rank_of(Measure& by, const Counts& counts, double least_z) {
    DiffFunction function;
    function.before = counts.before;
    function.after = counts.after;
    by.measure(function);
    mark(function, least_z);
    // Growth of one function shrinks the shares of the others: of changes of equal size the increase comes first.
    const double change = function.self.change();
    const double size = change > 0 ? change * (1 + 1e-9) : 0 - change;
    // Non-negative doubles compare like their bits, and leave the sign bit for the mark.
    return std::bit_cast<std::uint64_t>(size) | (function.self.significant ? kFirst : 0);
  }

  void rank_functions(Measure& by, double least_z) {
    // Nearly all have one or two samples, and so share their rank with thousands: ranks are sorted, not functions.
    constexpr std::size_t kFew = 16;
    std::vector<std::uint32_t> few(kFew * kFew, 0);  // by samples: 1 + index into `ranks`
    std::vector<std::uint64_t> ranks;
    std::vector<std::uint32_t> rank_at;  // by index in compared_: index into `ranks`
    rank_at.reserve(compared_.size());
    for (const std::uint32_t frame : compared_) {
      const Counts& counts = functions_[frame];
      const std::uint64_t before = counts.before.self_samples;
      const std::uint64_t after = counts.after.self_samples;
      const bool is_few = before < kFew && after < kFew;
      std::uint32_t known = is_few ? few[before * kFew + after] : 0;
      if (known == 0) {
        ranks.push_back(rank_of(by, counts, least_z));
        known = static_cast<std::uint32_t>(ranks.size());
        if (is_few) few[before * kFew + after] = known;
      }
      rank_at.push_back(known - 1);
    }
    std::vector<std::uint64_t> sorted = ranks;
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    std::vector<std::uint32_t> order_of;  // by index into `ranks`: index into `sorted`
    order_of.reserve(ranks.size());
    for (const std::uint64_t rank : ranks) {
      const auto at = std::lower_bound(sorted.begin(), sorted.end(), rank, std::greater<>());
      order_of.push_back(static_cast<std::uint32_t>(at - sorted.begin()));
    }
    const IndexGroups by_rank(sorted.size(), compared_.size(), [&](std::uint32_t i) { return order_of[rank_at[i]]; });
    diff_.functions.reserve(compared_.size());
    for (const std::uint32_t i : by_rank.all()) {
      DiffFunction& function = diff_.functions.emplace_back();
      function.frame = compared_[i];
      function.before = functions_[function.frame].before;
      function.after = functions_[function.frame].after;
      by.measure(function);
      mark(function, least_z);
    }
  }

  /// The nodes of the answer: all, or the largest. Always includes the root.
  [[nodiscard]] std::vector<bool> find_shown() const {
    std::vector<double> share_of(nodes_.size());
    std::vector<double> candidates;
    candidates.reserve(nodes_.size());
    for (std::uint32_t node = 1; node < nodes_.size(); ++node) {
      share_of[node] = std::max(share(nodes_[node].before.total_samples, diff_.before.total_samples),
                                share(nodes_[node].after.total_samples, diff_.after.total_samples));
      if (share_of[node] * 100 >= options_.min_percent) candidates.push_back(share_of[node]);
    }
    const std::size_t most =
        options_.max_nodes == 0 ? candidates.size() : std::min(candidates.size(), options_.max_nodes - 1);
    std::vector<bool> shown(nodes_.size(), false);
    shown[0] = true;
    if (most == 0) return shown;
    const auto least = candidates.begin() + static_cast<std::ptrdiff_t>(most - 1);
    std::nth_element(candidates.begin(), least, candidates.end(), std::greater<>());
    const auto larger = std::count_if(candidates.begin(), least, [&](double other) { return other > *least; });
    // Parents are at least as large as their children, and come first among equals: so the shown nodes form a tree.
    std::size_t equals = most - static_cast<std::size_t>(larger);
    for (std::uint32_t node = 1; node < nodes_.size(); ++node) {
      if (share_of[node] > *least) {
        shown[node] = true;
      } else if (share_of[node] == *least && equals != 0) {
        shown[node] = true;
        --equals;
      }
    }
    return shown;
  }

  /// The nodes pruned below a shown node, without those below another shown one.
  struct Rest {
    std::size_t functions = 0;
    DiffCount before, after;
  };
  struct Rests {
    static constexpr std::uint32_t kNone = 0xffffffffU;

    std::vector<std::uint32_t> of;  ///< by node of the tree: index into `all`; kNone: nothing is pruned below it
    std::vector<Rest> all;
  };
  [[nodiscard]] Rests find_rests(const ProfileTree& tree, const std::vector<bool>& is_shown) const {
    Rests rests{std::vector<std::uint32_t>(nodes_.size(), Rests::kNone), {}};
    struct Pruned {
      std::uint32_t rest = 0;
      std::uint32_t frame = 0;
    };
    std::vector<Pruned> pruned;
    std::vector<std::uint32_t> caller(nodes_.size(), 0);  // of pruned nodes: the nearest shown one
    for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
      if (is_shown[node]) continue;
      const std::uint32_t parent = tree.parent(node);
      caller[node] = is_shown[parent] ? parent : caller[parent];
      std::uint32_t& place = rests.of[caller[node]];
      if (place == Rests::kNone) {
        place = static_cast<std::uint32_t>(rests.all.size());
        rests.all.emplace_back();
      }
      pruned.push_back({place, tree.frame(node)});
      add(rests.all[place].before, nodes_[node].before, is_shown[parent]);
      add(rests.all[place].after, nodes_[node].after, is_shown[parent]);
    }
    const IndexGroups by_rest(rests.all.size(), pruned.size(), [&](std::uint32_t i) { return pruned[i].rest; });
    std::vector<std::uint32_t> counted_for(diff_.frames.size(), 0);  // by frame: 1 + the last rest
    for (const std::uint32_t i : by_rest.all()) {
      const Pruned& node = pruned[i];
      if (std::exchange(counted_for[node.frame], node.rest + 1) != node.rest + 1) ++rests.all[node.rest].functions;
    }
    return rests;
  }

  void show_nodes(const ProfileTree& tree, Measure& by, double least_z) {
    const std::vector<bool> is_shown = find_shown();
    const Rests rests = find_rests(tree, is_shown);
    const std::vector<ProfileTree::OrderedNode> ordered = tree.in_order(is_shown);
    std::vector<DiffNode>& out = diff_.nodes;
    out.reserve(ordered.size() + rests.all.size());
    std::vector<std::uint32_t> place;  // by index into `ordered`
    place.reserve(ordered.size());
    for (const ProfileTree::OrderedNode& node : ordered) {
      place.push_back(static_cast<std::uint32_t>(out.size()));
      DiffNode& shown = out.emplace_back();
      shown.frame = node.frame;
      shown.parent = place[node.parent];
      shown.before = nodes_[node.node].before;
      shown.after = nodes_[node.node].after;
      by.measure(shown);
      mark(shown, least_z);
      if (rests.of[node.node] == Rests::kNone) continue;
      const Rest& sum = rests.all[rests.of[node.node]];
      DiffNode& rest = out.emplace_back();  // never marked: it has no function
      rest.frame =
          marker("(pruned: " + std::to_string(sum.functions) + (sum.functions == 1 ? " function)" : " functions)"));
      rest.parent = place.back();
      rest.before = whole(sum.before);
      rest.after = whole(sum.after);
      by.measure(rest);
    }
  }

  /// Without children, all of a node's time is its own.
  static DiffCount whole(const DiffCount& count) { return {count.total_samples, count.total_samples}; }
  static double share(std::uint64_t samples, std::uint64_t of) {
    return of != 0 ? static_cast<double>(samples) / static_cast<double>(of) : 0;
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
    } else if (diff_.before.resolution_ns != diff_.after.resolution_ns) {
      diff_.warnings.emplace_back("One side is exact to the sample and the other is rounded to whole minutes.");
    }
  }

  const DiffOptions& options_;
  ProfileDiff diff_;
  std::vector<Counts> nodes_;            ///< by node of the tree
  std::vector<Counts> functions_;        ///< by frame
  std::vector<std::uint32_t> compared_;  ///< frames that are functions with samples
  std::size_t comparisons_ = 0;
  std::vector<std::uint32_t> markers_;
};

}  // namespace

ProfileDiff diff(ProfileTree& tree, DiffSide before, DiffSide after, const DiffOptions& options) {
  return Differ(std::move(before), std::move(after), options).build(tree);
}

}  // namespace flamed::store
