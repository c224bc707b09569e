// SPDX-License-Identifier: Apache-2.0
//
// What /healthz says of each part.
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/file.h"
#include "base/units.h"
#include "daemon/daemon_sources.h"
#include "store/query/slot_selection.h"

namespace flamed::daemon {
namespace {

/// A disk that takes a minute's history for so long does not answer.
constexpr std::int64_t kLongWriteNs = 10 * kNsPerSecond;

/// "3.2MiB": format_size() is exact, and long for odd numbers.
std::string mebibytes(std::size_t bytes) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1fMiB", static_cast<double>(bytes) / (1U << 20));
  return text.data();
}

/// With tenths.
std::string seconds_text(std::int64_t ns) {
  const std::int64_t tenths = (ns + kNsPerSecond / 20) / (kNsPerSecond / 10);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

/// Whose visits are limited to a share.
std::string describe_large_owners(const WaitVisitor::State& state) {
  if (state.large_owners == 0) return "";
  return "; " + std::to_string(state.large_owners) + (state.large_owners == 1 ? " user has" : " users have") +
         " so many that theirs are visited less often" +
         (state.list_round_ns == 0
              ? ""
              : ", and a round over those of all others takes " + seconds_text(state.list_round_ns));
}

/// How waits for block devices are known, and what to do about it.
std::string describe_disk(const WaitIntake::Figures& figures) {
  if (figures.threads != 0 && figures.threads_with_disk == figures.threads)
    return "; waits for block devices by the kernel's account";
  std::string text = figures.threads_with_disk == 0
                         ? "; waits for block devices are samples"
                         : "; waits for block devices by the kernel's account of " +
                               std::to_string(figures.threads_with_disk) + " threads, and samples of others";
  // Since 5.14; before, it can only be switched at boot.
  const Result<std::string> is_on = read_file("/proc/sys/kernel/task_delayacct", 16);
  if (!is_on) return text + ": this kernel has no switch kernel.task_delayacct";
  return text + (is_on->starts_with('0')
                     ? ": kernel.task_delayacct is 0 (sysctl kernel.task_delayacct=1 is for threads that start then)"
                     : ": they began before kernel.task_delayacct was 1");
}

}  // namespace

api::Component DaemonSources::history_health() const {
  if (parts_.history == nullptr) {
    return {"history", true,
            "minutes are kept in memory alone: set `history` to a folder to keep them on disk as well"};
  }
  const History::State state = parts_.history->state();
  api::Component component{"history", true, ""};
  component.detail = mebibytes(state.archive.bytes) + " of " + format_size(parts_.config.history_bytes) + " in " +
                     std::to_string(state.archive.files) + (state.archive.files == 1 ? " file in " : " files in ") +
                     parts_.history->folder();
  if (state.archive.oldest) component.detail += ", from " + store::to_text(*state.archive.oldest) + " on";
  for (const std::string& unusable : state.archive.unusable) {
    component.ok = false;
    component.detail += "; left as it is: " + unusable;
  }
  for (const std::string& problem : parts_.history->past().problems()) {
    component.ok = false;
    component.detail += "; what is on disk is not answered whole: " + problem;
  }
  if (state.waits_since && parts_.clock.wall().ns - state.waits_since->ns > kLongWriteNs) {
    component.ok = false;
    component.detail += "; the disk has not answered since " + store::to_text(*state.waits_since);
  }
  if (state.problem) {
    component.ok = false;
    component.detail += "; nothing is written since " + store::to_text(state.problem->since) + ": " +
                        state.problem->reason +
                        ". It is tried again twice a minute, and what memory still has is written then";
  }
  return component;
}

api::Component DaemonSources::unwind_health() const {
  const std::string why_no_tables = parts_.program.walks().why_no_tables();
  const std::string why_no_kernel_walk = parts_.program.walks().why_no_kernel_walk();
  const std::string of_kernel = why_no_kernel_walk.empty()
                                    ? "; kernel stacks by the kernel's own tables"
                                    : "; kernel stacks are walked by the kernel: " + why_no_kernel_walk;
  if (parts_.unwind == nullptr || !why_no_tables.empty()) {
    return {"unwind", true,
            std::string(UnwindPublisher::kFramePointersAlone) +
                ", so those of most programs are cut short: " + why_no_tables + of_kernel};
  }
  const UnwindPublisher::Stats unwind = parts_.unwind->stats();
  return {"unwind", true,
          "user stacks are walked by unwind tables: " + std::to_string(unwind.modules) + " modules, " +
              std::to_string(unwind.rows) + " rows in " + mebibytes(unwind.row_bytes) + " of " +
              format_size(unwind.budget_bytes) + of_kernel};
}

/// Everybody may ask, so files are named without their folders.
api::Component DaemonSources::runtimes_health() const {
  if (parts_.runtime_modules == nullptr && parts_.code_heaps == nullptr) {
    const bool is_off = parts_.config.runtimes.is_empty();
    return {"runtimes", true,
            is_off ? "functions of managed runtimes are not shown (runtimes)"
                   : "functions of managed runtimes are not shown: there are no unwind tables"};
  }
  const std::string why_not = parts_.program.walks().why_no_runtimes();
  if (!why_not.empty() && parts_.code_heaps == nullptr)
    return {"runtimes", true, "functions of managed runtimes are not shown: " + why_not};
  const std::string why_no_slots = parts_.program.walks().why_no_slots();
  constexpr std::size_t kMostShown = 16;
  std::set<std::string> texts;
  bool is_ok = true;
  if (!why_not.empty()) texts.insert("Python functions are not shown: " + why_not);
  if (parts_.code_heaps != nullptr) {
    for (const CodeHeaps::Fact& fact : parts_.code_heaps->facts()) {
      std::string text = fact.path.substr(fact.path.rfind('/') + 1);
      if (!fact.version.empty()) text += " (HotSpot " + fact.version + ")";
      text += fact.missing.empty() ? ": stacks by the code heap" : ": not read: " + fact.missing;
      is_ok = is_ok && fact.missing.empty();
      texts.insert(std::move(text));
    }
  }
  const std::vector<RuntimeModules::Fact> modules =
      parts_.runtime_modules == nullptr ? std::vector<RuntimeModules::Fact>() : parts_.runtime_modules->facts();
  for (const RuntimeModules::Fact& fact : modules) {
    std::string text = fact.path.substr(fact.path.rfind('/') + 1);
    if (!fact.version.empty()) text += " (" + fact.version + ")";
    text += fact.how.empty() ? ": not read" : ": by " + fact.how;
    const bool lacks_slots = fact.is_by_slots && !why_no_slots.empty();
    const std::string missing = lacks_slots ? "the kernel program does not read them: " + why_no_slots : fact.missing;
    if (!missing.empty()) text += ", but " + missing;
    is_ok = is_ok && missing.empty();
    texts.insert(std::move(text));
  }
  std::string detail = texts.empty() ? "no managed runtime was met yet" : "";
  std::size_t shown = 0;
  for (const std::string& text : texts) {
    if (++shown > kMostShown) break;
    detail += (detail.empty() ? "" : "; ") + text;
  }
  if (texts.size() > kMostShown) detail += "; and " + std::to_string(texts.size() - kMostShown) + " more";
  return {"runtimes", is_ok, detail};
}

api::Component DaemonSources::waits_health() const {
  if (parts_.waits == nullptr) return {"waits", true, "waiting threads are not visited: waits is off"};
  const WaitVisitor::State state = parts_.waits->state();
  if (!state.problem.empty()) return {"waits", false, "waiting threads are not visited: " + state.problem};
  if (state.round_ns == 0) return {"waits", true, "waiting threads are visited for the first time"};
  return {"waits", true,
          "waiting threads are visited: " + std::to_string(state.threads) + " threads, a round takes " +
              seconds_text(state.round_ns) + describe_large_owners(state) +
              (state.stacks_to_read == 0 ? ""
                                         : "; the stacks of " + std::to_string(state.stacks_to_read) +
                                               " that have waited for long are still to be read") +
              describe_disk(parts_.wait_intake.figures())};
}

api::Component DaemonSources::off_cpu_health() const {
  const OffCpuCapture::State state = parts_.off_cpu.state();
  if (!state.problem.empty()) return {"off_cpu", false, "waits were not measured exactly: " + state.problem};
  if (state.is_measuring) return {"off_cpu", true, "waits of some processes are being measured exactly"};
  return {"off_cpu", true, "waits are measured exactly when somebody asks (/off_cpu): now nobody does"};
}

api::Component DaemonSources::pressure_health() const {
  const PressureWatch::State state = parts_.pressure.state();
  if (!state.is_on) return {"pressure", true, "minutes under pressure are not marked: pressure is off"};
  if (!state.problem.empty()) return {"pressure", true, "minutes under pressure are not marked: " + state.problem};
  const auto percents = [](const auto& share_of) {
    std::string text;
    for (std::size_t i = 0; i < kResources; ++i) {
      const std::optional<double> share = share_of(i);
      if (!share) continue;
      text += (text.empty() ? "" : ", ") + std::string(kResourceNames[i]) + " " +
              std::to_string(std::lround(100 * *share)) + " %";
    }
    return text;
  };
  const std::string limits = "minutes are marked in which threads waited for so much of the time: " +
                             percents([&](std::size_t i) { return parts_.config.pressure[i]; });
  if (!state.last) return {"pressure", true, limits};
  return {"pressure", true, limits + "; in the last minute " + percents([&](std::size_t i) {
                              return std::optional(state.last->shares[i]);
                            })};
}

api::Health DaemonSources::health() const {
  const Vitals::Verdict vitals = parts_.vitals.verdict();
  const store::StoreStats store = parts_.store.stats();
  api::Health health;
  health.oldest = store.oldest;
  if (parts_.history != nullptr) {
    const std::optional<WallTime> on_disk = parts_.history->state().archive.oldest;
    if (on_disk && (!health.oldest || *on_disk < *health.oldest)) health.oldest = on_disk;
  }

  const std::string problem = parts_.sampling.last_problem();
  api::Component sampler{"sampler", vitals.sampling && problem.empty(), ""};
  if (!vitals.sampling)
    sampler.detail = vitals.problem;
  else if (!problem.empty())
    sampler.detail = problem;
  else
    sampler.detail =
        std::to_string(parts_.sampling.cpus()) + " CPUs at " + format_frequency(parts_.sampling.frequency_hz());
  health.components.push_back(std::move(sampler));

  health.components.push_back(
      {"reader", vitals.reader_alive,
       vitals.reader_alive ? "drains the kernel's buffers every 5 s at least, and at requests" : vitals.problem});
  const std::size_t muted = parts_.sampling.side_band_skipped().processes;
  health.components.push_back(
      {"side_band", muted == 0,
       muted == 1
           ? "a process maps code or changes its name so often that its records are skipped, and its mappings are "
             "read from /proc: the log names it"
       : muted != 0 ? std::to_string(muted) +
                          " processes map code or change their names so often that their records are skipped, and "
                          "their mappings are read from /proc: the log names them"
       : parts_.sampling.has_side_band() ? "the kernel reports mapping changes as they happen"
                                         : "the kernel does not report mapping changes: they are read from /proc, and "
                                           "processes that live for less than a second may stay unnamed"});
  health.components.push_back(unwind_health());
  health.components.push_back(runtimes_health());
  health.components.push_back(waits_health());
  health.has_waits = parts_.waits != nullptr && health.components.back().ok;
  health.components.push_back(off_cpu_health());
  health.components.push_back(pressure_health());
  const symbolizer::WorkerModuleReader::State worker = parts_.module_reader.state();
  health.components.push_back({"symbols", worker.ok, worker.detail});
  const Status kernel_symbols = parts_.kernel_symbols.check();
  health.components.push_back(
      {"kernel_symbols", kernel_symbols.ok(),
       kernel_symbols ? "the kernel shows the addresses of its functions" : kernel_symbols.error().message()});
  // Everybody may ask, so the users are not named.
  const std::string above_share =
      store.above_share.empty()
          ? ""
          : "; users whose stacks took more than a share of it while others needed room, and who lose "
            "their own oldest: " +
                std::to_string(store.above_share.size()) + ", the log says who";
  health.components.push_back({"store", true,
                               mebibytes(store.used_bytes) + " of " + format_size(store.budget_bytes) + " in " +
                                   std::to_string(store.slots) + " minutes" + above_share});
  health.components.push_back(history_health());
  const BudgetKeeper::State budget = parts_.budget.state();
  health.components.push_back({"cpu_budget",
                               budget.frequency_hz == budget.full_frequency_hz && !budget.is_background_slowed,
                               describe(budget)});
  health.healthy = vitals.sampling && vitals.reader_alive;
  health.ready = health.healthy && vitals.has_drained;
  return health;
}

}  // namespace flamed::daemon
