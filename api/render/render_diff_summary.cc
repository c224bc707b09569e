// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "api/render/render_common.h"
#include "api/render/render_summary.h"
#include "api/render/summary_words.h"
#include "store/query/significance.h"

namespace flamed::api {
namespace words {
namespace {

constexpr double kClearlyBusier = 0.1;
/// CPU use varies more than single samples do.
constexpr double kClearZ = 4;

class DiffSummary {
 public:
  DiffSummary(const store::ProfileDiff& diff, const SummaryFacts& facts) : diff_(diff), facts_(facts) {
    for (const store::DiffFunction& function : diff.functions) {
      if (!function.self.significant) break;
      (function.self.change() > 0 ? more_ : less_).push_back(&function);
    }
  }

  std::string render() {
    const bool has_both = diff_.before.total_samples != 0 && diff_.after.total_samples != 0;
    if (!has_both) {
      say(std::string("There is nothing to compare: ") +
          (diff_.before.total_samples == diff_.after.total_samples ? "neither side has samples."
           : diff_.before.total_samples == 0                       ? "the side before has no samples."
                                                                   : "the side after has no samples."));
    } else if (more_.empty() && less_.empty()) {
      say_that_nothing_changed();
    } else {
      say_what_changed();
    }
    say_side("Before", diff_.before);
    say_side("After", diff_.after);
    if (has_both) {
      say_busier();
      say_quality();
    }
    if (facts_.is_filtered) say(std::string(kFiltered));
    if (diff_.after.only_user) {
      say("Only processes of uid " + std::to_string(*diff_.after.only_user) + " are counted, the user who asks.");
    }
    for (const std::string& warning : diff_.before.warnings) say("Note on the side before: " + one_line(warning));
    for (const std::string& warning : diff_.after.warnings) say("Note on the side after: " + one_line(warning));
    for (const std::string& warning : diff_.warnings) say("Note: " + one_line(warning));
    return std::move(out_);
  }

 private:
  using Functions = std::vector<const store::DiffFunction*>;

  void say(const std::string& sentence) { out_ += sentence + "\n"; }

  [[nodiscard]] bool is_time() const { return diff_.normalise == store::Normalise::kTime; }
  [[nodiscard]] std::string value(double of) const { return is_time() ? cpus(of) : percent(of); }
  [[nodiscard]] std::string name(const store::DiffFunction& function) const {
    return shown(diff_.frames[function.frame].name);
  }
  [[nodiscard]] std::string change(const store::DiffFunction& function) const {
    return name(function) + " " + value(function.self.before) + " to " + value(function.self.after);
  }

  void say_that_nothing_changed() {
    say("Nothing changed beyond chance: no function takes " +
        std::string(is_time() ? "more or less CPU" : "a larger or smaller share") + " than before.");
    if (diff_.functions.empty()) return;
    say("The largest change is that of " + change(diff_.functions.front()) + ", which chance explains.");
  }

  void say_what_changed() {
    const store::DiffFunction& most = diff_.functions.front();
    const bool is_more = most.self.change() > 0;
    std::string text = name(most) + " takes " + (is_more ? "more" : "less") +
                       (is_time() ? " CPU than before: " : " of the CPU time than before: ") + value(most.self.after) +
                       " instead of " + value(most.self.before) + " in the function itself, beyond chance";
    if (most.before.self_samples == 0) text += "; it is new";
    if (most.after.self_samples == 0) text += "; it is gone";
    say(text + ".");
    say_list("More than before", more_);
    say_list("Less than before", less_);
    if (!is_time() && !more_.empty() && !less_.empty()) {
      say("Shares add up to 100 %: where one grows, others shrink. normalise=time compares CPU time instead.");
    }
    const std::size_t rest = diff_.functions.size() - more_.size() - less_.size();
    say("Of the other " + count_of(rest, "function", "functions") + " none changed beyond chance.");
  }

  void say_list(const std::string& heading, const Functions& functions) {
    if (functions.empty()) return;
    Names names;
    for (std::size_t i = 0; i < std::min(kListed, functions.size()); ++i) names.push_back(change(*functions[i]));
    std::string text = heading + ": " + commas(names);
    if (functions.size() > kListed) text += ", and " + count_of(functions.size() - kListed, "other", "others");
    say(text + ".");
  }

  void say_side(const std::string& heading, const store::DiffSide& side) {
    std::string text = heading + ", " + window_text(side.used) + ": ";
    if (side.total_samples == 0) return say(text + "no samples.");
    text += busy_text(busy(side), facts_.cpus) + ", " + seconds(side.cpu_ns(side.total_samples)) + " of CPU time, " +
            count_of(side.total_samples, "sample", "samples");
    const auto ended = static_cast<std::uint64_t>(
        std::count_if(side.processes.begin(), side.processes.end(),
                      [](const store::ProcessInfo& process) { return process.ended.has_value(); }));
    if (ended != 0 && side.processes.size() == 1) {
      text += "; " + name_of(side.processes.front()) + " has ended";
    } else if (ended != 0) {
      text +=
          "; " + std::to_string(ended) + " of its " + std::to_string(side.processes.size()) + " processes have ended";
    }
    say(text + ".");
  }

  [[nodiscard]] double busy(const store::DiffSide& side) const {
    const auto* process =
        side.processes.size() == 1 && !facts_.selection.processes.empty() ? &side.processes.front() : nullptr;
    return busy_cpus(side.cpu_ns(side.total_samples), lifetime_ns(side, facts_.selection, process));
  }

  void say_busier() {
    const double before = busy(diff_.before);
    const double after = busy(diff_.after);
    const auto length = [](const store::DiffSide& side) {
      return static_cast<double>(side.used.to.ns - side.used.from.ns) /
             static_cast<double>(std::max<std::int64_t>(side.period_ns, 1));
    };
    const double z = store::z_of_rates(diff_.before.total_samples, length(diff_.before), diff_.after.total_samples,
                                       length(diff_.after));
    if (before <= 0 || std::abs(after / before - 1) < kClearlyBusier || std::abs(z) < kClearZ) {
      return say("The CPU use as a whole is about the same.");
    }
    say("The CPU use as a whole " + std::string(after > before ? "rose" : "fell") + " from " + cpus(before) + " to " +
        cpus(after) + ".");
  }

  void say_quality() {
    const auto cut = [](const store::DiffSide& side) {
      return share_of(side.quality.truncated_total(), side.quality.stored());
    };
    if (std::max(cut(diff_.before), cut(diff_.after)) >= kWorthTelling) {
      say("Stacks that are cut: " + percent(cut(diff_.before)) + " before, " + percent(cut(diff_.after)) + " after.");
    }
    const std::uint64_t lost = diff_.before.quality.lost_total() + diff_.after.quality.lost_total();
    if (lost != 0) say(count_of(lost, "sample of the machine was", "samples of the machine were") + " lost.");
    const std::uint64_t fewest = std::min(diff_.before.total_samples, diff_.after.total_samples);
    if (fewest < kFewSamples) {
      say("One side has only " + count_of(fewest, "sample", "samples") +
          ": only large changes can be told from chance.");
    }
  }

  const store::ProfileDiff& diff_;
  const SummaryFacts& facts_;
  Functions more_;
  Functions less_;
  std::string out_;
};

}  // namespace
}  // namespace words

std::string render_diff_summary(const store::ProfileDiff& diff, const SummaryFacts& facts) {
  return words::DiffSummary(diff, facts).render();
}

}  // namespace flamed::api
