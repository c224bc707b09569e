// SPDX-License-Identifier: Apache-2.0
#include "daemon/sampler/sampler.h"

#include <linux/membarrier.h>
#include <linux/perf_event.h>
#include <spdlog/spdlog.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/handle.h"
#include "base/identity.h"
#include "base/thread_cpu.h"
#include "daemon/sampler/busy_cpus.h"
#include "daemon/sampler/kernel_program.h"
#include "daemon/sampler/online_cpus.h"
#include "daemon/sampler/perf_event.h"
#include "daemon/sampler/perf_ring.h"
#include "daemon/sampler/run_delay.h"
#include "daemon/sampler/sample_ring.h"
#include "daemon/sampler/side_band_shares.h"
#include "daemon/sampler/timer_watch.h"
#include "daemon/sampler/wake_ups.h"

namespace flamed::daemon {
namespace {

/// While a CPU comes online, what is opened there may be dead at once: it is not judged, and not opened again, before
/// this has passed.
constexpr std::int64_t kReopenPauseNs = 100 * kNsPerMs;
/// Where the kernel tells of CPUs, what it does not tell of is looked for less often.
constexpr std::int64_t kCheckPeriodNs = kNsPerSecond / 2;
constexpr std::int64_t kRestfulCheckPeriodNs = 8 * kNsPerSecond;
/// At 100 Hz, twice.
constexpr std::chrono::milliseconds kSlowestTick{20};
/// A jump of CLOCK_BOOTTIME against CLOCK_MONOTONIC of more than this means that the machine was suspended.
constexpr std::int64_t kSuspendNs = 10 * kNsPerMs;
/// When the kernel tells of a CPU, that came or went less than this before we could have run.
constexpr std::int64_t kNewsAgeNs = 100 * kNsPerMs;
/// Records of the side band that wait for the next drain: some MiB, a busy machine's of seconds.
constexpr std::size_t kMostCarried = 50'000;
#ifdef __x86_64__
constexpr bool kStoresAreInOrder = true;
#else
constexpr bool kStoresAreInOrder = false;
#endif

/// The timer that samples one CPU. The kernel turns a frequency of a software clock into a fixed period.
Result<Fd> open_timer(int cpu, std::int64_t period_ns) {
  perf_event_attr attributes{};
  attributes.size = sizeof(attributes);
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_CPU_CLOCK;
  attributes.sample_period = static_cast<std::uint64_t>(period_ns);
  attributes.read_format = PERF_FORMAT_TOTAL_TIME_RUNNING;
  attributes.exclude_idle = 1;
  attributes.disabled = 1;
  return open_perf_event(attributes, cpu, "timer");
}

/// The effective user; FLAMED_NO_OWNER where it is gone.
std::uint32_t owner_of_process(std::int32_t pid) {
  struct stat status {};
  return ::stat(("/proc/" + std::to_string(pid)).c_str(), &status) == 0 ? status.st_uid : FLAMED_NO_OWNER;
}

/// Records of mappings and names begin with it.
std::int32_t pid_of(const RecordHead& head) {
  std::int32_t pid = 0;
  if (head.body.size() >= sizeof(pid)) std::memcpy(&pid, head.body.data(), sizeof(pid));
  return pid;
}

std::int64_t suspended_ns() {
  timespec boot{};
  timespec monotonic{};
  ::clock_gettime(CLOCK_BOOTTIME, &boot);
  ::clock_gettime(CLOCK_MONOTONIC, &monotonic);
  return (boot.tv_sec - monotonic.tv_sec) * kNsPerSecond + (boot.tv_nsec - monotonic.tv_nsec);
}

/// Timer and perf buffer of one CPU.
struct CpuSampler {
  PerfRing side_band;
  Fd timer;
  Attachment attachment;
  MonotonicTime whole_until;  ///< nothing of the side band was lost before it that is not known of
  TimerWatch watch;
  MonotonicTime opened;
  std::optional<MonotonicTime> newest_sample{};
  bool hung_up = false;    ///< the kernel says that its perf buffer is dead
  bool is_proven = false;  ///< its perf buffer was seen to be alive when it was no longer young
};

/// Samples of one CPU.
struct CpuRing {
  SampleRing samples;
  std::uint64_t drained = 0;  ///< records so far
};

}  // namespace

class Sampler::Impl {
 public:
  Impl(const SamplerOptions& options, const Clock& clock, KernelProgram program)
      : options_(options),
        clock_(clock),
        program_(std::move(program)),
        busy_cpus_(TimerWatch::kWorthAskingNs, clock),
        suspended_ns_(suspended_ns()),
        checked_(clock.monotonic()),
        drained_(checked_),
        period_ns_(kNsPerSecond / options.frequency_hz) {
    program_.set_period(period_ns());
  }

  Status open_all() {
    Result<WakeUps> wake_ups = WakeUps::open(program_.notices_fd(), clock_);
    if (!wake_ups) return std::move(wake_ups).error();
    wake_ups_.emplace(std::move(wake_ups).value());
    Result<std::vector<int>> cpus = online_cpus_.read();
    if (!cpus) return std::move(cpus).error();
    if (Status made = make_rings(*cpus); !made) return made;
    for (const int cpu : *cpus) {
      if (Status opened = open_cpu(cpu); !opened) return opened;
    }
    return {};
  }

  Status begin() {
    for (auto& [cpu, sampler] : cpus_by_number_) {
      if (Status begun = begin_cpu(cpu, sampler); !begun) return begun;
    }
    has_begun_ = true;
    return {};
  }

  bool wait(int timeout_ms, MonotonicTime notices_from) {
    const std::int64_t until_ns = clock_.monotonic().ns + timeout_ms * kNsPerMs;
    WakeUp brought = wake_ups_->wait(timeout_ms, notices_from);
    // Room is made in a perf buffer that is filling up, and what it held waits here: ingest need not be woken for it.
    count_skipping([&] {
      while (make_room_in(brought)) {
        const std::int64_t left_ns = until_ns - clock_.monotonic().ns;
        if (left_ns <= 0) break;
        brought = wake_ups_->wait(static_cast<int>(left_ns / kNsPerMs + 1), notices_from);
      }
    });
    hear_of_cpus(brought);
    for (const int cpu : brought.dead_buffers) {
      // check_cpus() opens it again.
      if (const auto found = cpus_by_number_.find(cpu); found != cpus_by_number_.end()) found->second.hung_up = true;
    }
    if (brought.noticed) program_.consume_notices();
    return brought.noticed;
  }

  void stretch_period(unsigned times) {
    const std::int64_t wanted_ns = kNsPerSecond / options_.frequency_hz * times;
    if (wanted_ns == period_ns_) return;
    // All timers stand while the period changes, so that in the order of time samples of the old one end where those of
    // the new one begin.
    for (auto& [cpu, sampler] : cpus_by_number_) {
      if (sampler.timer) ::ioctl(sampler.timer.get(), PERF_EVENT_IOC_DISABLE, 0);
    }
    period_ns_ = wanted_ns;
    program_.set_period(period_ns());
    auto period = static_cast<std::uint64_t>(period_ns());
    for (auto& [cpu, sampler] : cpus_by_number_) {
      if (!sampler.timer) continue;
      const bool is_set = ::ioctl(sampler.timer.get(), PERF_EVENT_IOC_PERIOD, &period) == 0 &&
                          ::ioctl(sampler.timer.get(), PERF_EVENT_IOC_ENABLE, 0) == 0;
      sampler.watch = watch_from(cpu);
      if (is_set) continue;
      sampler.attachment.reset();
      if (Status begun = begin_cpu(cpu, sampler); !begun) {
        set_problem(begun.error().message());
        sampler.hung_up = true;  // check_cpus() opens it again
      }
    }
  }

  void stop() {
    for (auto& [cpu, sampler] : cpus_by_number_) {
      sampler.attachment.reset();
      sampler.timer.reset();
    }
  }

  void wake() { wake_ups_->wake(); }

  void drain(EventBatch& batch) {
    batch.clear();
    std::swap(batch, carried_);
    const MonotonicTime cutoff = clock_.monotonic();
    for (auto& [cpu, ring] : rings_by_cpu_) ring.samples.records().look();
    order_what_was_seen();
    count_skipping([&] {
      for (auto& [cpu, sampler] : cpus_by_number_) drain_side_band(sampler, batch);
    });
    for (auto& [cpu, ring] : rings_by_cpu_) drain_samples(ring, batch);
    take_muted(batch);
    batch.sort_and_split(cutoff, carried_);
    batch.drained_at = cutoff;
    batch.drained_before = std::exchange(drained_, cutoff);
    batch.gaps = std::exchange(gaps_, {});
    batch.malformed = std::exchange(malformed_, 0);
    batch.has_side_band = side_band_;
    batch.period_ns = period_ns();
    batch.side_band_lost_from = std::exchange(side_band_lost_from_, std::nullopt);

    const SampleCounts total = program_.counts();
    batch.counts = {total.taken - reported_.taken, total.submitted - reported_.submitted,
                    total.lost_ring_full - reported_.lost_ring_full, total.lost_no_ring - reported_.lost_no_ring};
    reported_ = total;
  }

  void check_cpus() {
    // The two clocks are read one after the other: being preempted in between makes the difference smaller, never
    // larger.
    const std::int64_t suspended = std::max(suspended_ns_, suspended_ns());
    const std::int64_t slept_ns = suspended - std::exchange(suspended_ns_, suspended);
    const bool resumed = slept_ns > kSuspendNs;
    const MonotonicTime now = clock_.monotonic();
    const bool in_a_hurry = resumed || !heard_at_.empty();
    if (!in_a_hurry && now.ns - checked_.ns < (may_rest() ? kRestfulCheckPeriodNs : kCheckPeriodNs)) return;
    const MonotonicTime checked_before = std::exchange(checked_, now);
    late_ns_ = run_delay_.since_last();
    if (resumed) gaps_.push_back({now, now, slept_ns, store::GapReason::kSuspended, {}});

    const Result<std::vector<int>> online = online_cpus_.read();
    if (!online) {
      set_problem(online.error().message());
      return;
    }
    set_problem("");
    close_dead(*online, now, resumed);
    for (const int cpu : *online) {
      if (cpus_by_number_.count(cpu) != 0) continue;
      // What happened there in the meantime, nobody has told.
      note_loss(checked_before);
      if (Status opened = open_cpu(cpu); !opened) set_problem(opened.error().message());
      const auto dead = dead_since_.find(cpu);
      const bool came = dead == dead_since_.end();
      const MonotonicTime from = came ? not_before_news(cpu, checked_before) : dead->second;
      const MonotonicTime to = clock_.monotonic();
      gaps_.push_back({from, to, 0, came ? store::GapReason::kCpuCameOnline : store::GapReason::kTimerSilent,
                       static_cast<std::uint16_t>(cpu)});
      spdlog::info("CPU {} {}: {:.2f} s of it were not sampled", cpu,
                   came ? "has come online" : "was not sampled any more, and its timer is opened again",
                   static_cast<double>(to.ns - from.ns) / kNsPerSecond);
      if (cpus_by_number_.count(cpu) != 0)
        dead_since_.erase(cpu);
      else
        dead_since_.insert_or_assign(cpu, to);
    }
    live_cpus_ = cpus_by_number_.size();
    heard_at_.clear();
  }

  Status load_walk() { return program_.load_walk(); }
  Status load_kernel_walk(const Result<flamed_kernel_orc>& orc) { return program_.load_kernel_walk(orc); }

  [[nodiscard]] const KernelProgram& program() const { return program_; }
  [[nodiscard]] std::int64_t period_ns() const { return period_ns_; }
  [[nodiscard]] bool has_side_band() const { return side_band_; }
  [[nodiscard]] bool may_rest() const {
    const auto is_well = [](const auto& cpu) { return cpu.second.is_proven && !cpu.second.hung_up; };
    return wake_ups_->hears_of_cpus() && side_band_ && program_.walks_by_tables() && dead_since_.empty() &&
           std::all_of(cpus_by_number_.begin(), cpus_by_number_.end(), is_well);
  }
  [[nodiscard]] std::uint64_t taken() const { return program_.counts().taken; }
  [[nodiscard]] std::size_t cpus() const { return live_cpus_; }
  [[nodiscard]] std::uint64_t reopened() const { return reopened_; }
  [[nodiscard]] SideBandSkipped side_band_skipped() const { return {skipped_, muted_, skipping_ns_}; }
  [[nodiscard]] std::string last_problem() const {
    std::lock_guard lock(problem_mutex_);
    return problem_;
  }

 private:
  /// Drains perf buffers that are half full, where that is all that a wait has brought. False: there is more to be
  /// done, or what waits here has become much.
  bool make_room_in(const WakeUp& brought) {
    if ((brought.full_buffers.empty() && !brought.some_buffer_full) || brought.noticed || brought.woken ||
        brought.lost_cpus)
      return false;
    if (!brought.changed_cpus.empty() || !brought.dead_buffers.empty()) return false;
    for (auto& [cpu, sampler] : cpus_by_number_) {
      const auto& full = brought.full_buffers;
      if (brought.some_buffer_full || std::find(full.begin(), full.end(), cpu) != full.end())
        drain_side_band(sampler, carried_);
    }
    return carried_.events().size() < kMostCarried;
  }

  /// Lets go of the CPUs that are not in `online`, which is sorted, and of those whose timer or buffer has died.
  void close_dead(const std::vector<int>& online, MonotonicTime now, bool resumed) {
    const BusyCpus::Used* busy = nullptr;
    if (!resumed) prove_side_bands(now);
    std::erase_if(dead_since_,
                  [&](const auto& dead) { return !std::binary_search(online.begin(), online.end(), dead.first); });
    for (auto it = cpus_by_number_.begin(); it != cpus_by_number_.end();) {
      auto& [cpu, sampler] = *it;
      const bool gone = !std::binary_search(online.begin(), online.end(), cpu);
      const bool is_young = now.ns - sampler.opened.ns < kReopenPauseNs;
      const bool is_lost = gone || resumed || (sampler.hung_up ? !is_young : is_dead(cpu, sampler, now, busy));
      if (!is_lost) {
        ++it;
        continue;
      }
      if (!gone) {
        // News of the CPU may have waited for us: they don't tell since when.
        // Where only the perf buffer is dead, samples came.
        const bool only_side_band = !sampler.is_proven && sampler.timer && is_running(sampler.timer.get());
        dead_since_.insert_or_assign(cpu, only_side_band ? now : sampler.watch.alive_until());
        note_loss(sampler.is_proven ? sampler.watch.alive_until() : sampler.opened);
        ++reopened_;
      }
      // What the dead perf buffer still holds comes with the next drain, as do its samples.
      sampler.attachment.reset();
      sampler.timer.reset();
      drain_side_band(sampler, carried_);
      it = cpus_by_number_.erase(it);
    }
  }

  /// Asks those that are no longer young, once, whether they run.
  void prove_side_bands(MonotonicTime now) {
    std::vector<std::pair<CpuSampler*, std::optional<std::uint64_t>>> asked;
    for (auto& [cpu, sampler] : cpus_by_number_) {
      const bool is_due = !sampler.is_proven && !sampler.hung_up && now.ns - sampler.opened.ns >= kReopenPauseNs;
      if (is_due) asked.emplace_back(&sampler, running_ns(sampler.side_band.fd()));
    }
    const auto prove = [&] {
      std::erase_if(asked, [](const auto& one) {
        const std::optional<std::uint64_t> later = running_ns(one.first->side_band.fd());
        one.first->is_proven = one.second && later && *later > *one.second;
        return one.first->is_proven;
      });
    };
    prove();
    if (asked.empty()) return;
    std::this_thread::sleep_for(kSlowestTick);  // see is_running()
    prove();
    for (const auto& [sampler, before] : asked) sampler->hung_up = true;
  }

  /// `time`, or when what the kernel has told of the CPU happened at the earliest, where that was later.
  [[nodiscard]] MonotonicTime not_before_news(int cpu, MonotonicTime time) const {
    const auto heard = heard_at_.find(cpu);
    if (heard == heard_at_.end() || !late_ns_) return time;
    return std::max(time, MonotonicTime{heard->second.ns - kNewsAgeNs - *late_ns_});
  }

  /// `busy` is read when the first CPU needs it.
  bool is_dead(int cpu, CpuSampler& sampler, MonotonicTime now, const BusyCpus::Used*& busy) {
    // It came back before anybody saw that it had gone.
    if (heard_at_.count(cpu) != 0 && (!is_running(sampler.timer.get()) || !is_running(sampler.side_band.fd())))
      return true;
    const SampleCounts counts = program_.counts_of(cpu);
    TimerWatch::Signs signs{now, counts.taken, sampler.newest_sample, {}};
    if (sampler.watch.is_quiet(signs)) {
      if (busy == nullptr) busy = &busy_cpus_.read(cpus_by_number_.size());
      const auto found = std::lower_bound(busy->begin(), busy->end(), std::pair<int, std::int64_t>{cpu, INT64_MIN});
      if (found != busy->end() && found->first == cpu) signs.busy_ns = found->second;
    }
    switch (sampler.watch.look(signs)) {
      case TimerWatch::Verdict::kWell:
        return false;
      case TimerWatch::Verdict::kDead:
        return true;
      case TimerWatch::Verdict::kAsk:
        break;
    }
    if (!is_running(sampler.timer.get())) return true;
    sampler.watch.alive(clock_.monotonic());
    return false;
  }

  void hear_of_cpus(const WakeUp& brought) {
    if (brought.changed_cpus.empty() && !brought.lost_cpus) return;
    const MonotonicTime now = clock_.monotonic();
    for (const int cpu : brought.changed_cpus) heard_at_.try_emplace(cpu, now);
    if (!brought.lost_cpus) return;
    for (const auto& [cpu, sampler] : cpus_by_number_) heard_at_.try_emplace(cpu, now);
  }

  /// Those that are not there yet. They stay when their CPU goes: it may come back.
  Status make_rings(std::span<const int> cpus) {
    std::vector<SampleRing> made;
    for (const int cpu : cpus) {
      if (rings_by_cpu_.count(cpu) != 0) continue;
      Result<SampleRing> ring = SampleRing::make(cpu);
      if (!ring) return std::move(ring).error();
      made.push_back(std::move(ring).value());
    }
    if (made.empty()) return {};
    if (Status given = program_.give_rings(made); !given) return given;
    for (SampleRing& ring : made) {
      const int cpu = ring.cpu();
      rings_by_cpu_.emplace(cpu, CpuRing{std::move(ring)});
    }
    return {};
  }

  Result<PerfRing> open_side_band(int cpu) {
    PerfRing::Options options;
    options.side_band = side_band_;
    Result<PerfRing> ring = PerfRing::open(cpu, options);
    // What is short for a moment later on, as after a suspend, is tried again.
    if (ring || !side_band_ || has_begun_ || !cpus_by_number_.empty()) return ring;
    // One step down: samples without news of mappings, which are then read from /proc.
    options.side_band = false;
    Result<PerfRing> plain = PerfRing::open(cpu, options);
    if (plain) side_band_ = false;
    return plain ? std::move(plain) : std::move(ring);
  }

  Status open_cpu(int cpu) {
    if (Status made = make_rings({&cpu, 1}); !made) return made;
    Result<PerfRing> side_band = open_side_band(cpu);
    if (!side_band) return std::move(side_band).error();
    const int fd = side_band->fd();
    const MonotonicTime enabled_at = clock_.monotonic();
    if (Status enabled = side_band->enable(); !enabled) return enabled;
    CpuSampler sampler{std::move(side_band).value(), Fd(), Attachment(), enabled_at, watch_from(cpu), enabled_at};
    if (has_begun_) {
      if (Status begun = begin_cpu(cpu, sampler); !begun) return begun;
    }
    if (Status watched = wake_ups_->watch_buffer(cpu, fd); !watched) return watched;
    cpus_by_number_.insert_or_assign(cpu, std::move(sampler));
    live_cpus_ = cpus_by_number_.size();
    return {};
  }

  Status begin_cpu(int cpu, CpuSampler& sampler) {
    Result<Fd> timer = open_timer(cpu, period_ns());
    if (!timer) return std::move(timer).error();
    Result<Attachment> attachment = program_.attach(cpu, *timer);
    if (!attachment) return std::move(attachment).error();
    sampler.timer = std::move(timer).value();
    sampler.watch = watch_from(cpu);
    sampler.attachment = std::move(attachment).value();
    return {};
  }

  /// An event that works runs on between two looks, whether its CPU is idle or not.
  static bool is_running(int event) {
    const std::optional<std::uint64_t> first = running_ns(event);
    std::optional<std::uint64_t> second = running_ns(event);
    if (second == first) {
      // Where the kernel has no better clock this one advances by the tick.
      std::this_thread::sleep_for(kSlowestTick);
      second = running_ns(event);
    }
    return first && second && *second > *first;
  }

  static std::optional<std::uint64_t> running_ns(int event) {
    struct {
      std::uint64_t value, running_ns;
    } reading{};
    if (::read(event, &reading, sizeof(reading)) != sizeof(reading)) return std::nullopt;
    return reading.running_ns;
  }

  [[nodiscard]] TimerWatch watch_from(int cpu) const {
    return {clock_.monotonic(), period_ns(), program_.counts_of(cpu).taken};
  }

  void note_loss(MonotonicTime from) { side_band_lost_from_ = std::min(side_band_lost_from_.value_or(from), from); }

  /// Counts the CPU time of what it calls for the records that were skipped, by their number. Only while some are: this
  /// clock is a system call. So what the first drain skips is not counted.
  template <typename Read>
  void count_skipping(Read&& read) {
    if (muted_ == 0) return read();
    const std::uint64_t read_before = side_band_read_;
    const std::uint64_t skipped_before = skipped_;
    const std::int64_t began_ns = read_cpu_clock(CLOCK_THREAD_CPUTIME_ID);
    read();
    const std::uint64_t skipped = skipped_ - skipped_before;
    if (skipped == 0) return;
    const std::int64_t took_ns = read_cpu_clock(CLOCK_THREAD_CPUTIME_ID) - began_ns;
    const double part = static_cast<double>(skipped) / static_cast<double>(side_band_read_ - read_before);
    skipping_ns_ += static_cast<std::int64_t>(static_cast<double>(took_ns) * part);
  }

  void drain_side_band(CpuSampler& sampler, EventBatch& batch) {
    RecordRing& ring = sampler.side_band.records();
    const std::uint64_t broken_before = ring.broken();
    const MonotonicTime now = clock_.monotonic();
    ring.look();
    ring.drain([&](std::span<const std::byte> record) {
      ++side_band_read_;
      RecordHead head = read_head(record);
      head.cpu = static_cast<std::uint16_t>(sampler.side_band.cpu());
      switch (head.kind) {
        case RecordKind::kMalformed:
        case RecordKind::kLost:
          note_loss(sampler.whole_until);
          break;
        case RecordKind::kSample:
        case RecordKind::kOther:
          break;
        default:
          sampler.whole_until = head.time;
          if (is_to_be_read(head))
            batch.append(head);
          else
            ++skipped_;
      }
    });
    // The kernel says that it refused a record only with the next one that it writes, which is too late for this batch.
    if (ring.was_full() || ring.broken() != broken_before)
      note_loss(sampler.whole_until);
    else
      sampler.whole_until = std::max(sampler.whole_until, now);
  }

  bool is_to_be_read(const RecordHead& head) {
    switch (head.kind) {
      case RecordKind::kExit: {
        const std::optional<TaskRecord> task = parse_task(head.body);
        if (task && task->pid == task->tid) shares_.ended(task->pid);
        return true;
      }
      case RecordKind::kMapping:
      case RecordKind::kComm:
        if (!head.comm_is_exec) return shares_.admits(pid_of(head), head.time);
        shares_.began_program(pid_of(head));
        return true;
      default:
        return true;
    }
  }

  void drain_samples(CpuRing& ring, EventBatch& batch) {
    const int cpu = ring.samples.cpu();
    const auto sampler = cpus_by_number_.find(cpu);
    RecordRing& records = ring.samples.records();
    const std::uint64_t broken_before = records.broken();
    records.drain([&](std::span<const std::byte> record) {
      RecordHead head = read_head(record);
      head.cpu = static_cast<std::uint16_t>(cpu);
      ++ring.drained;
      if (head.kind != RecordKind::kSample) {
        ++malformed_;
        return;
      }
      if (sampler != cpus_by_number_.end()) {
        std::optional<MonotonicTime>& newest = sampler->second.newest_sample;
        newest = std::max(newest.value_or(head.time), head.time);
      }
      batch.append(head);
    });
    if (records.broken() == broken_before) return;
    const std::uint64_t submitted = program_.counts_of(cpu).submitted;
    if (submitted > ring.drained) malformed_ += submitted - std::exchange(ring.drained, submitted);
  }

  /// The program publishes a record by an ordinary store, see ring_put(). Where stores may be seen in another order,
  /// after this what was written before those that were seen is seen, too.
  void order_what_was_seen() {
    if constexpr (kStoresAreInOrder) return;
    if (::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) == 0) return;
    set_problem(Error::from_errno("membarrier, without which samples may be read before they stand").message());
  }

  void take_muted(EventBatch& batch) {
    const std::vector<SideBandShares::Muted> muted = shares_.take_muted();
    muted_ = muted.size();
    tell_of_muted(muted);
    batch.muted.insert(batch.muted.end(), muted.begin(), muted.end());
  }

  /// Not of each, since there may be very many.
  void tell_of_muted(std::span<const SideBandShares::Muted> muted) {
    if (muted.empty()) return;
    const MonotonicTime now = clock_.monotonic();
    for (const SideBandShares::Muted& process : muted) {
      if (!process.is_new || (told_of_muted_ && now.ns - told_of_muted_->ns < kNsPerMinute)) continue;
      told_of_muted_ = now;
      spdlog::warn(
          "process {}{} maps code or changes its name so often that this is skipped from now on ({} times since the "
          "last drain); what it has mapped is read from /proc, and some of its stacks are cut",
          process.pid,
          process.user == FLAMED_NO_OWNER ? ", which has ended," : " of user " + std::to_string(process.user),
          process.skipped);
    }
  }

  void set_problem(std::string text) {
    std::lock_guard lock(problem_mutex_);
    problem_ = std::move(text);
  }

  const SamplerOptions options_;
  const Clock& clock_;
  KernelProgram program_;
  std::optional<WakeUps> wake_ups_{};        ///< there from open_all() on
  std::map<int, MonotonicTime> heard_at_{};  ///< CPUs that the kernel has told of since check_cpus() last looked
  RunDelay run_delay_{};                     ///< of the reader thread
  std::optional<std::int64_t> late_ns_{};    ///< that delay from one check_cpus() to the next; empty: not known
  OnlineCpus online_cpus_;
  BusyCpus busy_cpus_;
  std::int64_t suspended_ns_;
  bool has_begun_ = false;
  MonotonicTime checked_;  ///< when check_cpus() last looked
  MonotonicTime drained_;
  std::vector<SamplingGap> gaps_;              ///< since the last drain
  std::map<int, MonotonicTime> dead_since_{};  ///< CPUs that are online and could not be opened again yet
  std::optional<MonotonicTime> side_band_lost_from_;
  SideBandShares shares_{{}, owner_of_process};
  std::optional<MonotonicTime> told_of_muted_;
  std::uint64_t malformed_ = 0;
  SampleCounts reported_;
  EventBatch carried_;
  std::map<int, CpuRing> rings_by_cpu_;  ///< of all CPUs that were sampled so far
  std::map<int, CpuSampler> cpus_by_number_;

  std::atomic<bool> side_band_ = true;
  std::atomic<std::int64_t> period_ns_;
  std::atomic<std::size_t> live_cpus_ = 0;
  std::atomic<std::uint64_t> reopened_ = 0;
  std::uint64_t side_band_read_ = 0;  ///< records
  std::atomic<std::int64_t> skipping_ns_ = 0;
  std::atomic<std::uint64_t> skipped_ = 0;
  std::atomic<std::size_t> muted_ = 0;
  mutable std::mutex problem_mutex_;
  std::string problem_;
};

Sampler::Sampler(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Sampler::~Sampler() = default;

Result<std::unique_ptr<Sampler>> Sampler::start(const SamplerOptions& options, const Clock& clock) {
  constexpr const char* kWhat = "cannot start sampling";
  // Where events are forbidden that is to be known before the second that loading may take.
  if (const Result<Fd> timer = open_timer(0, kNsPerSecond); !timer && timer.error().code() != ENODEV) {
    return Error(timer.error()).with_context(kWhat);
  }
  Result<KernelProgram> program = KernelProgram::load(options.use_unwind_tables);
  if (!program) return std::move(program).error().with_context(kWhat);
  auto impl = std::make_unique<Impl>(options, clock, std::move(program).value());
  if (Status opened = impl->open_all(); !opened) return Error(opened.error()).with_context(kWhat);
  return std::unique_ptr<Sampler>(new Sampler(std::move(impl)));
}

Status Sampler::begin() {
  Status begun = impl_->begin();
  return begun ? begun : Status(Error(begun.error()).with_context("cannot start sampling"));
}
bool Sampler::wait(int timeout_ms, MonotonicTime notices_from) { return impl_->wait(timeout_ms, notices_from); }
void Sampler::stretch_period(unsigned times) { impl_->stretch_period(times); }
void Sampler::stop() { impl_->stop(); }
void Sampler::wake() { impl_->wake(); }
void Sampler::drain(EventBatch& batch) { impl_->drain(batch); }
void Sampler::check_cpus() { impl_->check_cpus(); }
bool Sampler::may_rest() const { return impl_->may_rest(); }
Status Sampler::load_walk() { return impl_->load_walk(); }
Status Sampler::load_kernel_walk(const Result<flamed_kernel_orc>& orc) { return impl_->load_kernel_walk(orc); }
std::optional<UnwindMapFds> Sampler::unwind_maps() const { return impl_->program().unwind_maps(); }
std::string Sampler::why_no_kernel_walk() const { return impl_->program().why_no_kernel_walk(); }
std::string Sampler::why_no_tables() const { return impl_->program().why_no_tables(); }
bool Sampler::reads_by_type() const { return impl_->program().reads_by_type(); }
std::int64_t Sampler::period_ns() const { return impl_->period_ns(); }
bool Sampler::has_side_band() const { return impl_->has_side_band(); }
double Sampler::frequency_hz() const { return kNsPerSecond / static_cast<double>(impl_->period_ns()); }
std::int64_t Sampler::program_ns() const { return static_cast<std::int64_t>(impl_->program().counts().run_ns); }
std::uint64_t Sampler::taken() const { return impl_->taken(); }
std::size_t Sampler::cpus() const { return impl_->cpus(); }
std::uint64_t Sampler::reopened() const { return impl_->reopened(); }
SideBandSkipped Sampler::side_band_skipped() const { return impl_->side_band_skipped(); }
std::string Sampler::last_problem() const { return impl_->last_problem(); }
int Sampler::program_fd() const { return impl_->program().fd(); }

}  // namespace flamed::daemon
