// SPDX-License-Identifier: Apache-2.0
#include "api/render/render_summary.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "api/render/render_common.h"
#include "api/render/summary_words.h"
#include "api/text/time_expression.h"
#include "store/model/container_text.h"

namespace flamed::api {
namespace words {
namespace {

/// Of a CPU, or of the machine: less than this is nearly idle.
constexpr double kNearlyIdle = 0.02;
/// A lone process that is on a CPU for less of its time waits.
constexpr double kWaits = 0.1;
/// A function in so many stacks says nothing about where the time goes: main().
constexpr double kNearlyAll = 0.95;
/// Functions with so much of the time share it between them.
constexpr double kSharing = 0.66;

/// A function, or all code of a module whose functions are not even told apart.
struct Part {
  std::string name;
  std::string module;
  store::FrameKind kind = store::FrameKind::kUnknown;
  bool pending = false;  ///< of nameless code: its names are still being read
  std::uint64_t self = 0;
  std::uint64_t total = 0;
  std::size_t depth = 0;  ///< where it is on a stack

  [[nodiscard]] bool is_function() const { return kind != store::FrameKind::kUnknown; }
  [[nodiscard]] bool has_no_name() const { return is_nameless(kind); }
};

/// The sums of a profile.
struct Sums {
  std::vector<Part> parts;  ///< largest self first
  std::uint64_t all = 0;
  std::uint64_t kernel = 0;    ///< samples with a kernel function
  std::uint64_t nameless = 0;  ///< whose innermost function has no name
};

Sums sums_of(const store::Profile& profile) {
  Sums sums;
  sums.all = profile.nodes.front().total_samples;
  std::map<std::string, std::size_t, std::less<>> nameless;
  constexpr std::size_t kNone = ~std::size_t{0};
  std::vector<std::size_t> part_of(profile.frames.size(), kNone);
  for (std::size_t i = 0; i < profile.frames.size(); ++i) {
    const store::NamedFrame& frame = profile.frames[i];
    if (frame.kind == store::FrameKind::kRoot || frame.kind == store::FrameKind::kMarker) continue;
    part_of[i] = sums.parts.size();
    if (frame.kind == store::FrameKind::kUnknown)
      part_of[i] = nameless.try_emplace(frame.module, part_of[i]).first->second;
    if (part_of[i] == sums.parts.size()) sums.parts.push_back({frame.name, frame.module, frame.kind});
    sums.parts[part_of[i]].pending = sums.parts[part_of[i]].pending || frame.pending;
  }
  std::vector<std::uint32_t> open(sums.parts.size(), 0);  // how often the part is on the path
  std::uint32_t kernel_depth = 0;
  struct Step {
    std::uint32_t node;
    std::size_t part;
    bool is_kernel;
  };
  std::vector<Step> path;
  for (std::uint32_t i = 0; i < profile.nodes.size(); ++i) {
    const store::ProfileNode& node = profile.nodes[i];
    while (!path.empty() && (i == 0 || path.back().node != node.parent)) {
      if (path.back().part != kNone) --open[path.back().part];
      kernel_depth -= path.back().is_kernel ? 1 : 0;
      path.pop_back();
    }
    const std::size_t place = part_of[node.frame];
    const bool is_kernel = profile.frames[node.frame].kind == store::FrameKind::kKernel;
    if (place != kNone) {
      Part& part = sums.parts[place];
      part.self += node.self_samples;
      if (part.has_no_name()) sums.nameless += node.self_samples;
      part.depth = std::max(part.depth, path.size());
      if (open[place]++ == 0) part.total += node.total_samples;
    }
    kernel_depth += is_kernel ? 1 : 0;
    if (kernel_depth != 0) sums.kernel += node.self_samples;
    path.push_back({i, place, is_kernel});
  }
  std::stable_sort(sums.parts.begin(), sums.parts.end(),
                   [](const Part& a, const Part& b) { return a.self != b.self ? a.self > b.self : a.total > b.total; });
  return sums;
}

std::string name_of_part(const Part& part) {
  if (part.is_function()) return shown(part.name);
  return "code without names" + (part.module.empty() ? std::string() : " in " + shown(part.module));
}

/// The parts that have as much as the first, give or take chance.
std::vector<const Part*> hottest(const Sums& sums) {
  std::vector<const Part*> first;
  for (const Part& part : sums.parts) {
    if (part.self == 0 || first.size() == kListed) break;
    if (!first.empty()) {
      const auto most = static_cast<double>(first.front()->self);
      const auto own = static_cast<double>(part.self);
      if (own < 0.8 * most || (most - own) * (most - own) > 4 * (most + own)) break;
    }
    first.push_back(&part);
  }
  return first;
}

/// "the hottest function is f (66 %)": the end of a sentence.
std::string hottest_text(const Sums& sums) {
  const std::vector<const Part*> first = hottest(sums);
  if (first.empty()) return "no sample has its function";
  std::uint64_t together = 0;
  Names names;
  for (const Part* part : first) {
    names.push_back(name_of_part(*part) + " (" + percent(share_of(part->self, sums.all)) + ")");
    together += part->self;
  }
  if (first.size() == 1) {
    const bool is_most = share_of(together, sums.all) >= 0.5;
    if (!first.front()->is_function()) return (is_most ? "most is " : "the largest part is ") + names.front();
    return "the hottest function is " + names.front();
  }
  constexpr std::array<std::string_view, kListed + 1> kNumbers{"", "", "two", "three", "four", "five"};
  if (share_of(together, sums.all) >= kSharing) {
    return std::string(kNumbers.at(first.size())) + " functions share it: " + list(names);
  }
  return "no function stands out: the hottest are " + list(names);
}

// ---- Lines of a profile ----

class ProfileSummary {
 public:
  ProfileSummary(const store::Profile& profile, const SummaryFacts& facts)
      : profile_(profile),
        facts_(facts),
        process_(only_process(facts.selection, profile.processes)),
        sums_(sums_of(profile)) {}

  std::string render() {
    if (sums_.all == 0) {
      say_that_it_is_empty();
    } else {
      say_who();
      say_how_much();
      say_groups();
      say_functions();
      say_kernel();
      say_nameless();
      say_cut();
      say_ended();
      say_coverage();
    }
    say_losses();
    say_viewer();
    for (const std::string& warning : profile_.warnings) say("Note: " + one_line(warning));
    return std::move(out_);
  }

 private:
  void say(const std::string& sentence) { out_ += sentence + "\n"; }

  [[nodiscard]] std::string subject() const { return subject_of(facts_, profile_, profile_.processes); }
  [[nodiscard]] double share(std::uint64_t samples) const { return share_of(samples, sums_.all); }
  /// Are some stacks of the selection, or parts of them, left out?
  [[nodiscard]] bool is_partial() const { return facts_.is_filtered || facts_.selection.side != store::Side::kBoth; }

  void say_that_it_is_empty() {
    const store::WallWindow& used = profile_.used;
    if (used.to <= used.from || profile_.periods.empty())
      return say("Nothing is known of this window: flamed keeps no sample of it.");
    if (profile_.quality.stored() != 0) return say("No stack in the window is left by focus, ignore and root.");
    if (process_ != nullptr && process_->ended && *process_->ended <= used.from) {
      say(name_of(*process_) + " has ended: at " + format_time(*process_->ended) + ", before the window.");
    } else if (process_ != nullptr && process_->started && *process_->started >= used.to) {
      say(name_of(*process_) + " started after the window, at " + format_time(*process_->started) + ".");
    } else if (process_ != nullptr) {
      say(name_of(*process_) + " used no CPU in the window: it waited, and no sample met it" +
          (process_->ended ? "; it ended at " + format_time(*process_->ended) + "." : "."));
    } else if (facts_.selection.processes.size() == 1 && profile_.processes.empty()) {
      // It runs, and was never sampled.
      say("Process " + std::to_string(facts_.selection.processes.front().pid) +
          " used no CPU in the window: it waited, or did not exist yet.");
    } else if (facts_.selection.is_narrowed()) {
      say("Nothing in the selection used CPU in the window.");
    } else {
      say(subject() + (profile_.only_user ? " used no CPU in the window." : " was idle: no sample was taken."));
    }
    say("The window is " + window_text(used) + ".");
  }

  void say_who() {
    const double busy = busy_cpus(profile_.cpu_ns(sums_.all), lifetime_ns(profile_, facts_.selection, process_));
    std::string text = subject();
    const bool is_machine = !facts_.selection.is_narrowed() && !profile_.only_user && !is_partial();
    if (is_partial()) {
      // "The machine" and the like are in the middle of the sentence.
      if (process_ == nullptr) text.front() = static_cast<char>(std::tolower(text.front()));
      text = "The matching stacks of " + text + " used ";
    } else if (process_ != nullptr && process_->ended) {
      text += " has ended, at " + format_time(*process_->ended) + "; before that it used ";
    } else if (is_machine && busy < kNearlyIdle * std::max<double>(1, static_cast<double>(facts_.cpus))) {
      text += " was nearly idle: it used ";
    } else if (process_ != nullptr && busy < kWaits) {
      text += " mostly waited, for a CPU or something else: it used ";
    } else {
      text += " used ";
    }
    text += busy_text(busy, facts_.cpus, is_machine ? "its" : "the machine's");
    const std::vector<Shown> groups = shown_groups();
    if (groups.size() > 1) {
      text += share(groups.front().samples) >= 0.5 ? ", most of it (" : ", the most (";
      text += percent(share(groups.front().samples)) + ") in " + groups.front().name;
    }
    if (share(sums_.kernel) > 0.5 && !is_partial())
      text += ", mostly in the kernel (" + percent(share(sums_.kernel)) + ")";
    say(text + "; " + hottest_text(sums_) + ".");
  }

  void say_how_much() {
    std::string text = "That is " + seconds(profile_.cpu_ns(sums_.all)) + " of CPU time " + window_text(profile_.used) +
                       ", from " + count_of(sums_.all, "sample", "samples") + " at " + frequency_of(profile_) + ".";
    if (sums_.all < kFewSamples) {
      text += " With so few samples a share may be wrong by " +
              format("%.0f", 100 / std::sqrt(static_cast<double>(sums_.all))) + " points.";
    }
    if (facts_.selection.side != store::Side::kBoth) {
      text +=
          facts_.selection.side == store::Side::kUser ? " Only user code is counted." : " Only the kernel is counted.";
    }
    if (facts_.is_filtered) text += " " + std::string(kFiltered);
    say(text);
  }

  struct Shown {
    std::string name;
    std::string label;
    std::uint64_t samples = 0;
  };
  /// The groups below the root, largest first; empty if there are none.
  [[nodiscard]] std::vector<Shown> shown_groups() const {
    std::vector<Shown> groups;
    for (std::uint32_t i = 1; i < profile_.nodes.size(); ++i) {
      const store::ProfileNode& node = profile_.nodes[i];
      if (node.parent != 0) continue;
      const store::NamedFrame& frame = profile_.frames[node.frame];
      if (frame.kind != store::FrameKind::kRoot) return {};
      groups.push_back({shown(frame.name), frame.name, node.total_samples});
    }
    std::stable_sort(groups.begin(), groups.end(),
                     [](const Shown& a, const Shown& b) { return a.samples > b.samples; });
    return groups;
  }

  /// Where the group's label tells its processes.
  [[nodiscard]] std::string processes_of(const Shown& group) const {
    const auto fits = [&](const store::ProcessInfo& process) {
      if (facts_.group == store::Group::kProgram) {
        return (process.executable.empty() ? process.comm : file_name(process.executable)) == group.label;
      }
      if (facts_.group == store::Group::kExecutable) return process.executable == group.label;
      if (facts_.group == store::Group::kUnit) return process.unit == group.label;
      return facts_.group == store::Group::kContainer &&
             store::split_container(process.container).shown() == group.label;
    };
    const auto& all = profile_.processes;
    const auto count = static_cast<std::uint64_t>(std::count_if(all.begin(), all.end(), fits));
    if (count == 0) return {};
    if (count > 1) return " (" + std::to_string(count) + " processes)";
    return " (pid " + std::to_string(std::find_if(all.begin(), all.end(), fits)->id.pid) + ")";
  }

  void say_groups() {
    if (process_ != nullptr) return;
    const std::vector<Shown> groups = shown_groups();
    if (groups.empty()) return;
    Names names;
    std::uint64_t rest = sums_.all;
    for (std::size_t i = 0; i < std::min(kListed, groups.size()); ++i) {
      names.push_back(groups[i].name + " " + percent(share(groups[i].samples)) + processes_of(groups[i]));
      rest -= groups[i].samples;
    }
    std::string text = std::string(heading_of_groups()) + ": " + commas(names);
    if (groups.size() > kListed) {
      text += "; " + count_of(groups.size() - kListed, "other", "others") + " " + percent(share(rest));
    }
    say(text + ".");
  }

  [[nodiscard]] std::string_view heading_of_groups() const {
    switch (facts_.group) {
      case store::Group::kNone:
        break;
      case store::Group::kProcess:
        return "By process";
      case store::Group::kThread:
        return "By thread";
      case store::Group::kComm:
        return "By name of thread";
      case store::Group::kProgram:
      case store::Group::kExecutable:
        return "By program";
      case store::Group::kUnit:
        return "By unit";
      case store::Group::kContainer:
        return "By container";
      case store::Group::kUser:
        return "By user";
      case store::Group::kTree:
        return "By tree";
    }
    return "By group";
  }

  void say_functions() {
    Names own;
    for (const Part& part : sums_.parts) {
      if (part.self == 0 || own.size() == kListed) break;
      own.push_back(name_of_part(part) + " " + percent(share(part.self)));
    }
    if (!own.empty()) say("Time in the functions themselves: " + commas(own) + ".");
    // Those that mostly call others, and that not everything is below of, unless there are no others.
    std::vector<const Part*> callers;
    for (const Part& part : sums_.parts) {
      if (2 * part.self < part.total && !part.has_no_name()) callers.push_back(&part);
    }
    std::stable_sort(callers.begin(), callers.end(), [](const Part* a, const Part* b) { return a->total > b->total; });
    const auto telling =
        std::find_if(callers.begin(), callers.end(), [&](const Part* part) { return share(part->total) < kNearlyAll; });
    auto first = callers.begin();
    if (telling != callers.end() && share((*telling)->total) >= 0.05) {
      first = telling;
    } else {
      std::stable_sort(callers.begin(), telling, [](const Part* a, const Part* b) { return a->depth > b->depth; });
    }
    Names with_callees;
    for (auto at = first; at != callers.end() && with_callees.size() < kListed; ++at) {
      with_callees.push_back(shown((*at)->name) + " " + percent(share((*at)->total)));
    }
    if (!with_callees.empty()) say("Time with what they call: " + commas(with_callees) + ".");
  }

  void say_kernel() {
    if (share(sums_.kernel) < kWorthTelling || facts_.selection.side == store::Side::kKernel) return;
    Names names;
    for (const Part& part : sums_.parts) {
      if (part.kind == store::FrameKind::kKernel && part.self != 0 && names.size() < 3) {
        names.push_back(shown(part.name) + " " + percent(share(part.self)));
      }
    }
    say(percent(share(sums_.kernel)) + " of the time is in the kernel" + (names.empty() ? "" : ": " + commas(names)) +
        ".");
  }

  void say_nameless() {
    if (share(sums_.nameless) < kWorthTelling) return;
    struct Module {
      std::string name;
      std::uint64_t self = 0;
      bool pending = false;
    };
    std::vector<Module> modules;
    for (const Part& part : sums_.parts) {
      if (!part.has_no_name()) continue;
      const auto known = std::find_if(modules.begin(), modules.end(),
                                      [&](const Module& module) { return module.name == part.module; });
      Module& module = known != modules.end() ? *known : modules.emplace_back(Module{part.module});
      module.self += part.self;
      module.pending = module.pending || part.pending;
    }
    std::stable_sort(modules.begin(), modules.end(), [](const Module& a, const Module& b) { return a.self > b.self; });
    Names names;
    Names files;
    bool has_pending = false;
    bool has_jit = false;
    bool has_hidden = false;
    bool has_kernel = false;
    for (const Module& module : modules) {
      if (module.self == 0 || share(module.self) < kWorthTelling / 2) break;
      const std::string name = module.name.empty() ? "unknown memory" : shown(module.name);
      if (names.size() < 3) names.push_back(name + " " + percent(share(module.self)));
      if (module.pending) {
        has_pending = true;
      } else if (module.name == "[not shown]") {
        has_hidden = true;
      } else if (module.name == "[kernel]") {
        has_kernel = true;
      } else if (module.name.empty() || module.name.starts_with('[')) {
        has_jit = true;
      } else if (files.size() < 3) {
        files.push_back(name);
      }
    }
    std::string text = percent(share(sums_.nameless)) + " of the time is in code without names";
    if (!names.empty()) text += ": " + commas(names);
    text += ".";
    if (!files.empty()) {
      text += " Install debug symbols of " + list(files) + ", or build " + (files.size() == 1 ? "it" : "them") +
              " without stripping.";
    }
    if (has_jit) text += " If it is a runtime's generated code, let the runtime write a perf map.";
    if (has_kernel) text += " flamed may not read the kernel's addresses: /healthz says why.";
    if (has_hidden) text += " A process that is not dumpable is shown only to root and the group flamed.";
    if (has_pending) text += " Names are still being read: ask again in a moment.";
    say(text);
  }

  [[nodiscard]] static std::string_view remedy_of(store::Truncation reason) {
    switch (reason) {
      case store::Truncation::kNewProcess:
      case store::Truncation::kRowsPending:
        return "later samples of the same programs are whole";
      case store::Truncation::kNoUnwindInformation:
      case store::Truncation::kBrokenFramePointer:
        return "build that code with frame pointers (-fno-omit-frame-pointer; Java: -XX:+PreserveFramePointer)";
      case store::Truncation::kStoreFull:
      case store::Truncation::kUserShare:
        return "raise memory_budget";
      case store::Truncation::kDepthLimit:
      case store::Truncation::kKernelDepthLimit:
      case store::Truncation::kSliceEnded:
        return "the innermost functions are there";
      case store::Truncation::kUnreadableStack:
      case store::Truncation::kNoUserRegisters:
      case store::Truncation::kNoMapping:
      case store::Truncation::kUnsupportedUnwind:
      case store::Truncation::kUnknownRegister:
      case store::Truncation::kDamagedStack:
      case store::Truncation::kGuessed:
      case store::Truncation::kStackRan:
      case store::Truncation::kStackNotRead:
        break;
      case store::Truncation::kStackLater:
        return "ask again some minutes later";
    }
    return {};
  }

  void say_cut() {
    const store::Quality& quality = profile_.quality;
    const double guessed = share_of(quality.guessed(), quality.stored());
    if (guessed >= kWorthTelling) {
      say(percent(guessed) + " of the stacks are guessed: they lack frames of code without unwind information.");
    }
    const double cut = share_of(quality.truncated_total(), quality.stored());
    if (cut < kWorthTelling) return;
    std::array<std::uint64_t, store::kTruncationCount> reasons = quality.truncated;
    reasons[static_cast<std::size_t>(store::Truncation::kGuessed)] = 0;
    const auto most = std::max_element(reasons.begin(), reasons.end());
    const auto reason = static_cast<store::Truncation>(most - reasons.begin());
    std::string text = percent(cut) + " of the stacks are cut: outer functions are missing, mostly because " +
                       std::string(reason_text(reason)) + " (" + percent(share_of(*most, quality.stored())) + ")";
    if (const std::string_view remedy = remedy_of(reason); !remedy.empty()) text += "; " + std::string(remedy);
    say(text + ".");
  }

  /// describe() as the end of "because ...".
  [[nodiscard]] static std::string_view reason_text(store::Truncation reason) {
    switch (reason) {
      case store::Truncation::kDepthLimit:
        return "they are deeper than a sample can hold";
      case store::Truncation::kBrokenFramePointer:
        return "code is built without frame pointers";
      case store::Truncation::kUnreadableStack:
        return "a stack page was not in memory";
      case store::Truncation::kNoUserRegisters:
        return "the kernel did not know the user registers";
      case store::Truncation::kKernelDepthLimit:
        return "the kernel's part is deeper than the record";
      case store::Truncation::kStoreFull:
        return "the memory budget had no room for new stacks";
      case store::Truncation::kNewProcess:
        return "processes had only just begun";
      case store::Truncation::kNoMapping:
        return "an address was outside of all known code";
      case store::Truncation::kRowsPending:
        return "unwind rows were not ready";
      case store::Truncation::kNoUnwindInformation:
        return "code has neither unwind information nor frame pointers";
      case store::Truncation::kUnsupportedUnwind:
        return "unwind information is of an unsupported kind";
      case store::Truncation::kUnknownRegister:
        return "unwinding needed a register that is not known";
      case store::Truncation::kDamagedStack:
        return "stacks do not grow upwards";
      case store::Truncation::kUserShare:
        return "their user had more than a share of the memory budget";
      case store::Truncation::kSliceEnded:
        return "stacks of new programs were longer than what is kept of them";
      case store::Truncation::kGuessed:
        return "frames of code without unwind information are missing";
      case store::Truncation::kStackLater:
        return "stacks of threads that have waited for long are still to be read";
      case store::Truncation::kStackRan:
        return "threads ran before their stacks were read";
      case store::Truncation::kStackNotRead:
        return "stacks were not read in time";
    }
    return "of an unknown reason";
  }

  void say_ended() {
    if (profile_.processes.empty()) return;
    const auto& all = profile_.processes;
    const auto ended = static_cast<std::uint64_t>(std::count_if(
        all.begin(), all.end(), [](const store::ProcessInfo& process) { return process.ended.has_value(); }));
    if (ended == 0) return;
    if (process_ != nullptr && !is_partial()) return;  // the first sentence has it
    if (all.size() == 1) {
      say(name_of(all.front()) + " has ended, at " + format_time(*all.front().ended) + ".");
    } else {
      say((ended == all.size() ? "All " + std::to_string(ended) + " processes have ended."
                               : std::to_string(ended) + " of the " + std::to_string(all.size()) + " processes " +
                                     (ended == 1 ? "has" : "have") + " ended."));
    }
  }

  void say_coverage() {
    if (!profile_.coverage || !profile_.coverage->share) return;
    say("The samples stand for " + percent(*profile_.coverage->share) +
        " of the CPU time in the kernel's own accounts.");
  }

  void say_losses() {
    const store::Quality& quality = profile_.quality;
    if (quality.lost_total() == 0) return;
    const auto most = std::max_element(quality.lost.begin(), quality.lost.end());
    say(count_of(quality.lost_total(), "sample of the machine was", "samples of the machine were") +
        " lost in these minutes, mostly because: " +
        std::string(describe(static_cast<store::Loss>(most - quality.lost.begin()))) + ".");
  }

  void say_viewer() {
    if (!profile_.only_user) return;
    say("Only processes of uid " + std::to_string(*profile_.only_user) + " are counted, the user who asks.");
  }

  const store::Profile& profile_;
  const SummaryFacts& facts_;
  const store::ProcessInfo* process_;  ///< the selected one; null if it is not a single one
  const Sums sums_;
  std::string out_;
};

}  // namespace
}  // namespace words

std::string render_summary(const store::Profile& profile, const SummaryFacts& facts) {
  return words::ProfileSummary(profile, facts).render();
}

}  // namespace flamed::api
