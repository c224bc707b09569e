// SPDX-License-Identifier: Apache-2.0
//
// What questions about history on disk cost, as one JSON object on stdout: of the host of synthetic_host.h, six hours
// of which are repeated for so many days, in stretches of ten minutes, and the last two days in minutes as well; and
// the size of a day, of both kinds, also of an idle host. Each question is asked by a process that has read nothing
// yet, first with no file in the page cache, then again. Writes the history to the folder, unless that exists.
//
//   history_bench FOLDER [days]          (default 28)
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "archive/codec/additions.h"
#include "archive/codec/minute.h"
#include "archive/codec/names.h"
#include "archive/codec/stack_places.h"
#include "archive/codec/sum.h"
#include "archive/files/period_file.h"
#include "archive/files/period_names.h"
#include "archive/numbering/numbering.h"
#include "archive/numbering/sums.h"
#include "archive/reading/coarsening.h"
#include "archive/reading/past.h"
#include "base/handle.h"
#include "store/query/query.h"
#include "store/query/timeline.h"
#include "store/ring/slot_sums.h"
#include "store/ring/snapshot_data.h"
#include "store/ring/store.h"
#include "test/bench/store/synthetic_host.h"
#include "test/support/manual_clock.h"

namespace flamed::archive {
namespace {

constexpr WallTime kNoon{1'767'268'800 * kNsPerSecond};
constexpr int kMinutes = 6 * 60;  // of a busy host's file
constexpr std::int64_t kPeriodOfFileNs = kMinutes * kNsPerMinute;
constexpr std::int64_t kDayNs = 4 * kPeriodOfFileNs;

struct Recorded {
  Minute minute;
  std::vector<std::byte> additions, names;
  std::optional<Sum> sum;  ///< of the minutes before
};

struct Recording {
  std::vector<Recorded> minutes;
  StackPlaces places;
};

Name name_of(std::uint32_t number, const Frame& frame) {
  const std::string module = "lib" + std::to_string(frame.module.value) + ".so";
  const std::string function = "service::detail::function_" + std::to_string(frame.offset >> 12);
  NamedFrame named{function, module, FrameKind::kNative, ""};
  named.full_name = function + "(unsigned long, char const*)";
  return {number, share({named})};
}

store::ProcessInfo info_of(const store::Program& program, WallTime started) {
  store::ProcessInfo info;
  info.id = {program.pid, program.start};
  info.comm = "tool" + std::to_string(program.module);
  info.executable = "/usr/bin/" + info.comm;
  info.command_line = info.comm + " --input file" + std::to_string(program.pid);
  info.started = started;
  info.uid = 1000;
  return info;
}

/// Programs that live for a minute, as the daemon learns of them.
class ShortLived {
 public:
  void follow(const store::SyntheticHost& host, const Clock& clock, store::Store& store) {
    const std::vector<store::Program>& now = host.short_lived();
    if (!known_.empty() && known_.front().pid == now.front().pid) return;
    for (const store::Program& program : known_) store.end_process({program.pid, program.start}, clock.wall());
    known_ = now;
    for (const store::Program& program : known_) store.update_process(info_of(program, clock.wall()));
  }

 private:
  std::vector<store::Program> known_;
};

/// Two busy CPUs.
class BusyHost {
 public:
  void run_second(ManualClock& clock, store::Store& store) {
    host_.run_second(clock.monotonic());
    short_lived_.follow(host_, clock, store);
    clock.advance_ns(kNsPerSecond);
    host_.store_second(store);
  }

 private:
  store::SyntheticHost host_;
  ShortLived short_lived_;
};

/// A hundredth of a CPU, of thirty services that do little else than wake up: forty stacks each. And a program that is
/// sampled once in each minute.
class IdleHost {
 public:
  IdleHost() {
    for (std::uint32_t i = 0; i < 30; ++i) {
      services_.push_back({16 + i, static_cast<std::int32_t>(500 + i), 1, 1});
      for (int stack = 0; stack < 40; ++stack) services_.back().stack(random_, stacks_.emplace_back());
    }
  }
  void run_second(ManualClock& clock, store::Store& store) {
    clock.advance_ns(kNsPerSecond);
    const std::size_t stack = random_() % stacks_.size();
    add(clock, store, services_[stack / 40], stacks_[stack]);
    if (second_++ % 60 != 0) return;
    const store::Program program{60, static_cast<std::int32_t>(10'000 + second_), 2, 1};
    store.update_process(info_of(program, clock.wall()));
    add(clock, store, program, stacks_.front());
    store.end_process({program.pid, program.start}, {clock.wall().ns + kNsPerSecond / 10});
  }

 private:
  static void add(const ManualClock& clock, store::Store& store, const store::Program& program,
                  const std::vector<Frame>& frames) {
    store.add({clock.monotonic(), {program.pid, program.start}, program.pid, "program", frames, {}, 0});
  }

  std::mt19937_64 random_{1};
  std::vector<store::Program> services_;
  std::vector<std::vector<Frame>> stacks_;
  int second_ = 0;
};

/// From noon on.
template <typename Host>
Recording record(std::size_t minutes) {
  ManualClock clock({1000 * kNsPerSecond}, kNoon);
  store::Store store({24 * 60 * kNsPerMinute, 256U << 20}, clock, store::kPeriodNs);
  Host host;
  Numbering numbering([](ModuleId id) {
    return Module{ModuleKind::kFile, "/usr/lib/lib" + std::to_string(id.value), {}};
  });
  Recording recording;
  std::vector<Recorded>& recorded = recording.minutes;
  Sums sums;
  std::uint32_t last = 0;
  while (recorded.size() < minutes) {
    host.run_second(clock, store);
    store.advance(clock.monotonic());
    const store::Snapshot snapshot = store.snapshot();
    for (const store::SealedSlot& sealed : *snapshot.data().sealed) {
      if (sealed.slot->sequence <= last) continue;
      last = sealed.slot->sequence;
      Numbering::Numbered numbered = numbering.take(snapshot, *sealed.slot);
      std::vector<Name> names;
      std::uint32_t number = numbered.additions.before.frames;
      for (const Frame& frame : numbered.frames) names.push_back(name_of(number++, frame));
      numbered.minute.cpus = 2;
      std::optional<Sum> sum = sums.takes(numbered.minute) ? std::nullopt : sums.finish();
      sums.add(snapshot, *sealed.slot, numbered.minute, numbered.additions.gaps);
      recorded.push_back({std::move(numbered.minute), encode(numbered.additions).value(),
                          names.empty() ? std::vector<std::byte>() : encode(std::span<const Name>(names)).value(),
                          std::move(sum)});
    }
  }
  recorded.emplace_back().sum = sums.finish();
  recording.places = numbering.places();
  return recording;
}

bool write(const std::filesystem::path& folder, const Recording& recording, int files) {
  std::filesystem::create_directories(folder);
  for (int file = 0; file < files; ++file) {
    const std::string path = period_path(folder, {static_cast<std::uint64_t>(file) + 1});
    std::ofstream(path).flush();
    Result<std::unique_ptr<PeriodFile>> into = PeriodFile::create(path);
    if (!into) return false;
    (*into)->begin_session({"bench", file + 1, "history_bench", "host"});
    for (const Recorded& one : recording.minutes) {
      if (std::optional<Sum> sum = one.sum) {
        sum->minute.wall_offset_ns += file * kPeriodOfFileNs;
        if (sum->short_processes) sum->short_processes->minute.wall_offset_ns += file * kPeriodOfFileNs;
        if (!(*into)->add_sum(encode(*sum).value())) return false;
      }
      if (&one == &recording.minutes.back()) break;
      Minute minute = one.minute;
      minute.wall_offset_ns += file * kPeriodOfFileNs;
      if (!(*into)->append(minute, {one.additions, encode(minute, recording.places).value(), one.names})) return false;
    }
  }
  ::sync();
  return true;
}

/// Gives stretches to all minutes, and removes the minutes of all but the last files.
bool coarsen(const std::string& folder, std::size_t fine_files) {
  const std::vector<Period> periods = list_periods(folder).value().periods;
  for (const Period& period : periods) {
    const bool is_done =
        period.is_coarse || std::binary_search(periods.begin(), periods.end(), Period{period.number, true});
    if (is_done) continue;
    Result<std::unique_ptr<Coarsening>> coarsening = Coarsening::begin(folder, period.number);
    Result<bool> is_whole = false;
    while (coarsening && is_whole && !*is_whole) is_whole = (*coarsening)->step();
    if (!coarsening || !is_whole) return false;
    std::filesystem::rename(unfinished_path(folder, period.number), period_path(folder, {period.number, true}));
    if (period.number + fine_files <= periods.back().number) std::filesystem::remove(period_path(folder, period));
  }
  return true;
}

/// Of a daemon that was started after all of it.
store::Snapshot nothing_recent() {
  auto data = std::make_shared<store::SnapshotData>();
  data->sealed = std::make_shared<const std::vector<store::SealedSlot>>();
  data->sums = std::make_shared<store::SlotSums>(0);
  data->side_sums = std::make_shared<store::SlotSums>(0);
  data->gaps = std::make_shared<const std::vector<store::Gap>>();
  data->since = data->until = {std::int64_t{1} << 60};
  data->period_ns = store::kPeriodNs;
  return store::Snapshot(std::move(data));
}

class PastNamer final : public store::FrameNamer {
 public:
  explicit PastNamer(const Past& past) : past_(past) {}
  std::vector<std::shared_ptr<const InlineChain>> name(std::span<const Frame> frames) override {
    std::vector<std::shared_ptr<const InlineChain>> chains(frames.size());
    past_.name(frames, chains);
    static const auto kNone = share({NamedFrame{"[unknown]", "[unknown]", FrameKind::kUnknown, ""}});
    for (auto& chain : chains) {
      if (chain == nullptr) chain = kNone;
    }
    return chains;
  }

 private:
  const Past& past_;
};

std::size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t size = 0;
  std::size_t resident = 0;
  statm >> size >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

void leave_cache(const std::string& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const Fd file(::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC));
    if (file) ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  }
}

/// CPU time, so that the figures hold on a busy machine too.
double cpu_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

/// Asks once cold, once again, and prints both: [time, CPU time].
void ask(const char* what, const std::string& folder, const store::WallWindow& window, const store::Detail& detail,
         const std::function<std::uint64_t(const store::Snapshot&, store::FrameNamer&)>& answer) {
  leave_cache(folder);
  const std::size_t resident = resident_bytes();
  Past past(folder, {.boot_id = "bench", .run = 0});
  PastNamer namer(past);
  struct Took {
    double wall_ms = 0, cpu_ms = 0;
  };
  const auto time = [&](const std::function<void()>& work) {
    const auto began = std::chrono::steady_clock::now();
    const double cpu_began = cpu_ms();
    work();
    return Took{std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count(),
                cpu_ms() - cpu_began};
  };
  std::uint64_t samples = 0;
  const auto answer_once = [&] { samples = answer(past.with(nothing_recent(), {&window, 1}, detail), namer); };
  const Took looked = time([&] { past.look(); });
  const Took cold = time(answer_once);
  const Took again = time(answer_once);
  std::printf(
      ",\n  \"%s\": {\"look_ms\": [%.0f, %.0f], \"cold_ms\": [%.0f, %.0f], \"again_ms\": [%.0f, %.0f], "
      "\"samples\": %llu, \"kept_mib\": %.1f, \"resident_mib\": %.1f}",
      what, looked.wall_ms, looked.cpu_ms, cold.wall_ms, cold.cpu_ms, again.wall_ms, again.cpu_ms,
      static_cast<unsigned long long>(samples), static_cast<double>(past.bytes()) / (1 << 20),
      static_cast<double>(resident_bytes() - std::min(resident, resident_bytes())) / (1 << 20));
  std::fflush(stdout);
}

double mib_of(const std::string& folder, const Period& period) {
  return static_cast<double>(std::filesystem::file_size(period_path(folder, period))) / (1 << 20);
}

double mib_in(const std::string& folder) {
  const Periods found = list_periods(folder).value();
  double mib = 0;
  for (const Period& period : found.periods) mib += mib_of(folder, period);
  return mib;
}

std::uint64_t profile(const store::Snapshot& snapshot, const store::Selection& selection, store::FrameNamer& namer) {
  store::QueryBudget budget;
  return store::build_profile(snapshot, selection, {}, namer, budget).value().nodes.front().total_samples;
}

void ask_all(const std::string& folder, int days) {
  const std::uint64_t newest = list_periods(folder).value().periods.back().number;
  std::printf(
      "{\n  \"days\": %d,\n  \"mib\": %.1f,\n  \"mib_per_day\": %.1f,\n  \"minutes_mib_per_day\": %.1f,\n"
      "  \"stretches_mib_per_day\": %.1f",
      days, mib_in(folder), mib_in(folder) / days, 4 * mib_of(folder, {newest}), 4 * mib_of(folder, {newest, true}));
  const std::string idle = folder + "-idle";
  // Its files have a day each.
  if (write(idle, record<IdleHost>(4 * kMinutes), 1)) std::printf(",\n  \"idle_mib_per_day\": %.2f", mib_in(idle));
  if (coarsen(idle, 0)) std::printf(",\n  \"idle_coarse_mib_per_day\": %.2f", mib_in(idle));
  std::filesystem::remove_all(idle);
  const WallTime now{kNoon.ns + days * kDayNs};
  const store::WallWindow hour{{now.ns - 7 * kDayNs}, {now.ns - 7 * kDayNs + 60 * kNsPerMinute}};
  ask("process_hour", folder, hour, {}, [&](const store::Snapshot& snapshot, store::FrameNamer& namer) {
    return profile(snapshot, store::Selection{.window = hour, .processes = {{500}}}, namer);
  });
  const store::WallWindow day{{now.ns - 2 * kDayNs}, {now.ns - kDayNs}};
  const store::WallWindow old_day{{now.ns - 7 * kDayNs}, {now.ns - 6 * kDayNs}};
  const store::WallWindow today{{now.ns - kDayNs}, now};
  for (const auto& [what, window] :
       {std::pair("machine_day", old_day), {"machine_yesterday", day}, {"machine_today", today}}) {
    ask(what, folder, window, {}, [window = window](const store::Snapshot& snapshot, store::FrameNamer& namer) {
      return profile(snapshot, store::Selection{window}, namer);
    });
  }
  // The file that is being written has no stretches; its minutes are in memory, unless flamed was started just now.
  const std::string newest_stretches = period_path(folder, {newest, true});
  std::filesystem::rename(newest_stretches, newest_stretches + ".away");
  ask("machine_today_with_minutes", folder, today, {}, [&](const store::Snapshot& snapshot, store::FrameNamer& namer) {
    return profile(snapshot, store::Selection{today}, namer);
  });
  std::filesystem::rename(newest_stretches + ".away", newest_stretches);
  constexpr std::int64_t kHourNs = 60 * kNsPerMinute;
  const store::Detail by_process{.only_processes = true, .step_ns = kHourNs};
  ask("processes_day", folder, day, by_process, [&](const store::Snapshot& snapshot, store::FrameNamer&) {
    store::QueryBudget budget;
    return store::process_usage(snapshot, store::Selection{day}, budget).value().total_samples;
  });
  const store::WallWindow month{kNoon, now};
  ask("timeline_month", folder, month, by_process, [&](const store::Snapshot& snapshot, store::FrameNamer&) {
    store::QueryBudget budget;
    const auto line = store::timeline(snapshot, store::Selection{month}, kHourNs, 5, budget).value();
    return line.quality.stored();
  });
  std::printf("\n}\n");
}

}  // namespace
}  // namespace flamed::archive

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: history_bench FOLDER [days]\n", stderr);
    return 2;
  }
  const int days = argc > 2 ? std::max(std::atoi(argv[2]), 8) : 28;
  if (!std::filesystem::exists(argv[1]) &&
      !flamed::archive::write(argv[1], flamed::archive::record<flamed::archive::BusyHost>(flamed::archive::kMinutes),
                              4 * days)) {
    std::fprintf(stderr, "cannot write %s\n", argv[1]);
    return 1;
  }
  const double began = flamed::archive::cpu_ms();
  if (!flamed::archive::coarsen(argv[1], 8)) {
    std::fprintf(stderr, "cannot make %s coarser\n", argv[1]);
    return 1;
  }
  std::fprintf(stderr, "made coarser in %.0f ms of CPU time\n", flamed::archive::cpu_ms() - began);
  flamed::archive::ask_all(argv[1], days);
  return 0;
}
