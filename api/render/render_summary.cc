// SPDX-License-Identifier: Apache-2.0
#include "api/render/render_summary.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "api/render/render_common.h"
#include "api/text/time_expression.h"
#include "store/query/significance.h"

namespace flamed::api {
namespace {

using Names = std::vector<std::string>;

constexpr std::size_t kLongestName = 120;
constexpr std::size_t kListed = 5;
/// Of a CPU, or of the machine: less than this is nearly idle.
constexpr double kNearlyIdle = 0.02;
/// A lone process that is on a CPU for less of its time waits.
constexpr double kWaits = 0.1;
/// From this share of all stacks on, a fault of the profile is told.
constexpr double kWorthTelling = 0.01;
/// A function in so many stacks says nothing about where the time goes: main().
constexpr double kNearlyAll = 0.95;
/// Functions with so much of the time share it between them.
constexpr double kSharing = 0.66;
/// With fewer samples, the error of a share is told.
constexpr std::uint64_t kFewSamples = 400;
constexpr std::string_view kFiltered = "Only stacks left by focus, ignore and root are counted.";
constexpr double kClearlyBusier = 0.1;
/// CPU use varies more than single samples do.
constexpr double kClearZ = 4;

// ---- Words ----

std::string format(const char* form, double value) {
  std::array<char, 64> text{};
  // NOLINTNEXTLINE(clang-diagnostic-format-nonliteral): the forms are below
  std::snprintf(text.data(), text.size(), form, value);
  return text.data();
}

/// "71 %", "4.2 %"
std::string percent(double share) {
  const double value = 100 * share;
  if (value > 0 && value < 0.1) return "less than 0.1 %";
  return format(value < 9.95 && value != 0 ? "%.1f %%" : "%.0f %%", value);
}

double share_of(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string cpus(double count) { return format("%.2f", count) + (count > 0.995 && count < 1.005 ? " CPU" : " CPUs"); }

std::string seconds(std::uint64_t ns) { return format("%.2f s", cpu_seconds(ns)); }

/// "15 min 30 s"
std::string length_of(std::int64_t ns) {
  const std::int64_t whole_s = (ns + kNsPerSecond / 2) / kNsPerSecond;
  if (whole_s < 60) return format(whole_s < 10 ? "%.1f s" : "%.0f s", static_cast<double>(ns) / kNsPerSecond);
  std::string text;
  for (const auto& [unit_s, unit] : {std::pair(std::int64_t{86400}, " d"), std::pair(std::int64_t{3600}, " h"),
                                     std::pair(std::int64_t{60}, " min"), std::pair(std::int64_t{1}, " s")}) {
    const std::int64_t count = unit_s == 86400 ? whole_s / unit_s
                               : unit_s == 1   ? whole_s % 60
                                               : whole_s / unit_s % (unit_s == 60 ? 60 : 24);
    if (count != 0) text += (text.empty() ? "" : " ") + std::to_string(count) + unit;
  }
  return text;
}

std::string count_of(std::uint64_t count, std::string_view one, std::string_view many) {
  return std::to_string(count) + " " + std::string(count == 1 ? one : many);
}

std::string shown(std::string_view name) {
  std::string text = one_line(name);
  if (text.size() <= kLongestName) return text;
  std::size_t cut = kLongestName;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0U) == 0x80U) --cut;
  return text.substr(0, cut) + "...";
}

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

/// "a, b and c"
std::string list(const Names& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i != 0) text += i + 1 == names.size() ? " and " : ", ";
    text += names[i];
  }
  return text;
}

std::string commas(const Names& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string window_text(const store::WallWindow& window) {
  return "from " + format_time(window.from) + " to " + format_time(window.to) + " (" +
         length_of(window.to.ns - window.from.ns) + ")";
}

// ---- Who and how busy ----

std::string name_of(const store::ProcessInfo& process) {
  return shown(process.comm) + " (pid " + std::to_string(process.id.pid) + ")";
}

/// The process if the selection is one that is known.
const store::ProcessInfo* only_process(const store::Selection& selection,
                                       const std::vector<store::ProcessInfo>& processes) {
  return selection.processes.size() == 1 && processes.size() == 1 ? &processes.front() : nullptr;
}

/// The subject of a sentence, such as "The machine".
std::string subject_of(const SummaryFacts& facts, const store::AnswerFacts& answer,
                       const std::vector<store::ProcessInfo>& processes) {
  const store::Selection& selection = facts.selection;
  if (const auto* process = only_process(selection, processes)) return name_of(*process);
  std::string text = "The selection";
  const auto only = [&](const std::vector<std::string>& names, std::string_view kind) {
    store::Selection rest = selection;
    rest.executables.clear();
    rest.units.clear();
    rest.containers.clear();
    const std::size_t all = selection.executables.size() + selection.units.size() + selection.containers.size();
    if (names.size() == 1 && all == 1 && !rest.is_narrowed()) text = std::string(kind) + shown(names.front());
  };
  only(selection.executables, "Program ");
  only(selection.units, "Unit ");
  only(selection.containers, "Container ");
  if (!selection.is_narrowed()) {
    text = answer.only_user ? "All that uid " + std::to_string(*answer.only_user) + " runs" : "The machine";
  }
  return text;
}

/// The part of the window in which the selection could run.
std::int64_t lifetime_ns(const store::AnswerFacts& answer, const store::Selection& selection,
                         const store::ProcessInfo* process) {
  store::WallWindow lived = answer.used;
  if (process != nullptr && process->started) lived.from = std::max(lived.from, *process->started);
  if (process != nullptr && process->ended) lived.to = std::min(lived.to, *process->ended);
  auto ns = static_cast<double>(lived.to.ns - lived.from.ns);
  if (selection.part) ns *= static_cast<double>(selection.part->to_ns - selection.part->from_ns) / kNsPerSecond;
  return std::max<std::int64_t>(static_cast<std::int64_t>(ns), 0);
}

double busy_cpus(std::uint64_t cpu_ns, std::int64_t of_ns) {
  return of_ns == 0 ? 0 : static_cast<double>(cpu_ns) / static_cast<double>(of_ns);
}

/// "1.72 of the machine's 4 CPUs (43 %)"; `whose` is "the machine's" or "its".
std::string busy_text(double busy, std::size_t of_cpus, std::string_view whose = "the machine's") {
  if (of_cpus == 0) return cpus(busy);
  return format("%.2f", busy) + " of " + std::string(whose) + " " + count_of(of_cpus, "CPU", "CPUs") + " (" +
         percent(busy / static_cast<double>(of_cpus)) + ")";
}

std::string frequency_of(const store::AnswerFacts& answer) {
  if (answer.periods.size() > 1) return "varying frequency";
  if (answer.period_ns == 0) return "no frequency";
  return format("%.0f Hz", static_cast<double>(kNsPerSecond) / static_cast<double>(answer.period_ns));
}

// ---- Functions ----

/// A function, or all code of a module that has no names.
struct Part {
  std::string name;
  std::string module;
  store::FrameKind kind = store::FrameKind::kUnknown;
  bool pending = false;  ///< of nameless code: its names are still being read
  std::uint64_t self = 0;
  std::uint64_t total = 0;
  std::size_t depth = 0;  ///< where it is on a stack

  [[nodiscard]] bool is_nameless() const { return kind == store::FrameKind::kUnknown; }
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
      if (part.is_nameless()) sums.nameless += node.self_samples;
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

std::string name_of(const Part& part) {
  if (!part.is_nameless()) return shown(part.name);
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
    names.push_back(name_of(*part) + " (" + percent(share_of(part->self, sums.all)) + ")");
    together += part->self;
  }
  if (first.size() == 1) {
    const bool is_most = share_of(together, sums.all) >= 0.5;
    if (first.front()->is_nameless()) return (is_most ? "most is " : "the largest part is ") + names.front();
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
      return facts_.group == store::Group::kContainer && process.container == group.label;
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
      own.push_back(name_of(part) + " " + percent(share(part.self)));
    }
    if (!own.empty()) say("Time in the functions themselves: " + commas(own) + ".");
    // Those that mostly call others, and that not everything is below of, unless there are no others.
    std::vector<const Part*> callers;
    for (const Part& part : sums_.parts) {
      if (2 * part.self < part.total && !part.is_nameless()) callers.push_back(&part);
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
    Names names;
    Names files;
    bool has_pending = false;
    bool has_jit = false;
    bool has_hidden = false;
    bool has_kernel = false;
    for (const Part& part : sums_.parts) {
      if (!part.is_nameless() || part.self == 0 || share(part.self) < kWorthTelling / 2) continue;
      const std::string module = part.module.empty() ? "unknown memory" : shown(part.module);
      if (names.size() < 3) names.push_back(module + " " + percent(share(part.self)));
      if (part.pending) {
        has_pending = true;
      } else if (part.module == "[not shown]") {
        has_hidden = true;
      } else if (part.module == "[kernel]") {
        has_kernel = true;
      } else if (part.module.empty() || part.module.starts_with('[')) {
        has_jit = true;
      } else if (files.size() < 3) {
        files.push_back(module);
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
        break;
    }
    return {};
  }

  void say_cut() {
    const store::Quality& quality = profile_.quality;
    const double cut = share_of(quality.truncated_total(), quality.stored());
    if (cut < kWorthTelling) return;
    const auto most = std::max_element(quality.truncated.begin(), quality.truncated.end());
    const auto reason = static_cast<store::Truncation>(most - quality.truncated.begin());
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

// ---- Lines of a comparison ----

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

std::string render_summary(const store::Profile& profile, const SummaryFacts& facts) {
  return ProfileSummary(profile, facts).render();
}

std::string render_diff_summary(const store::ProfileDiff& diff, const SummaryFacts& facts) {
  return DiffSummary(diff, facts).render();
}

}  // namespace flamed::api
