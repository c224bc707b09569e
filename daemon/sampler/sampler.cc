// SPDX-License-Identifier: Apache-2.0
#include "daemon/sampler/sampler.h"

#include <linux/membarrier.h>
#include <linux/perf_event.h>
#include <spdlog/spdlog.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <ctime>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/handle.h"
#include "daemon/sampler/busy_cpus.h"
#include "daemon/sampler/kernel_program.h"
#include "daemon/sampler/online_cpus.h"
#include "daemon/sampler/perf_event.h"
#include "daemon/sampler/run_delay.h"
#include "daemon/sampler/sample_ring.h"
#include "daemon/sampler/side_band.h"
#include "daemon/sampler/timer_watch.h"
#include "daemon/sampler/wake_ups.h"

namespace flamed::daemon {
namespace {

/// If the kernel reports CPUs, the others are checked less often.
constexpr std::int64_t kCheckPeriodNs = kNsPerSecond / 2;
constexpr std::int64_t kRestfulCheckPeriodNs = 8 * kNsPerSecond;
/// A jump of CLOCK_BOOTTIME against CLOCK_MONOTONIC of more than this means that the machine was suspended.
constexpr std::int64_t kSuspendNs = 10 * kNsPerMs;
/// A report of a CPU is at most this old when this thread could have run.
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

std::int64_t suspended_ns() {
  timespec boot{};
  timespec monotonic{};
  ::clock_gettime(CLOCK_BOOTTIME, &boot);
  ::clock_gettime(CLOCK_MONOTONIC, &monotonic);
  return (boot.tv_sec - monotonic.tv_sec) * kNsPerSecond + (boot.tv_nsec - monotonic.tv_nsec);
}

/// Timer and perf buffer of one CPU.
struct CpuSampler {
  SideBand::Buffer side_band;
  TimerWatch watch;
  Fd timer{};
  Attachment attachment{};
  std::optional<MonotonicTime> newest_sample{};
  bool is_broken = false;  ///< check_cpus() opens it again
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
        side_band_(clock),
        figures_(program_, side_band_, kNsPerSecond / options.frequency_hz) {
    program_.set_period(figures_.period_ns());
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
    side_band_.count_skipping([&] {
      while (make_room_in(brought)) {
        const std::int64_t left_ns = until_ns - clock_.monotonic().ns;
        if (left_ns <= 0) break;
        brought = wake_ups_->wait(static_cast<int>(left_ns / kNsPerMs + 1), notices_from);
      }
    });
    note_cpu_reports(brought);
    note_broken(brought.dead_buffers);
    if (brought.noticed) program_.consume_notices();
    return brought.noticed;
  }

  void stretch_period(unsigned times) {
    const std::int64_t wanted_ns = kNsPerSecond / options_.frequency_hz * times;
    if (wanted_ns == figures_.period_ns()) return;
    // All timers stand while the period changes, so that in the order of time samples of the old one end where those of
    // the new one begin.
    for (auto& [cpu, sampler] : cpus_by_number_) {
      if (sampler.timer) ::ioctl(sampler.timer.get(), PERF_EVENT_IOC_DISABLE, 0);
    }
    figures_.set_period(wanted_ns);
    program_.set_period(wanted_ns);
    auto period = static_cast<std::uint64_t>(wanted_ns);
    for (auto& [cpu, sampler] : cpus_by_number_) {
      if (!sampler.timer) continue;
      const bool is_set = ::ioctl(sampler.timer.get(), PERF_EVENT_IOC_PERIOD, &period) == 0 &&
                          ::ioctl(sampler.timer.get(), PERF_EVENT_IOC_ENABLE, 0) == 0;
      sampler.watch = watch_from(cpu);
      if (is_set) continue;
      sampler.attachment.reset();
      if (Status begun = begin_cpu(cpu, sampler); !begun) {
        figures_.set_problem(begun.error().message());
        sampler.is_broken = true;
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

  void drain(EventBatch& batch, const std::function<void(EventBatch&)>& add_others) {
    batch.clear();
    std::swap(batch, carried_);
    const MonotonicTime cutoff = clock_.monotonic();
    for (auto& [cpu, ring] : rings_by_cpu_) ring.samples.records().look();
    order_what_was_seen();
    side_band_.count_skipping([&] {
      for (auto& [cpu, sampler] : cpus_by_number_) side_band_.drain(sampler.side_band, batch);
    });
    for (auto& [cpu, ring] : rings_by_cpu_) drain_samples(ring, batch);
    // After the samples: each has its copies in this batch or in an earlier one.
    program_.take_code_copies(batch.code_copies);
    if (add_others) add_others(batch);
    side_band_.report(batch);
    batch.sort_and_split(cutoff, carried_);
    batch.drained_at = cutoff;
    batch.drained_before = std::exchange(drained_, cutoff);
    batch.gaps = std::exchange(gaps_, {});
    batch.malformed = std::exchange(malformed_, 0);
    batch.period_ns = figures_.period_ns();

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
      figures_.set_problem(online.error().message());
      return;
    }
    figures_.set_problem("");
    close_dead(*online, now, resumed);
    for (const int cpu : *online) {
      if (cpus_by_number_.count(cpu) != 0) continue;
      // What happened there in the meantime, nobody has told.
      side_band_.note_loss(checked_before);
      if (Status opened = open_cpu(cpu); !opened) figures_.set_problem(opened.error().message());
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
    figures_.set_cpus(cpus_by_number_.size());
    heard_at_.clear();
  }

  [[nodiscard]] const SamplerFigures& figures() const { return figures_; }
  [[nodiscard]] KernelProgram& program() { return program_; }
  [[nodiscard]] StackSlices& slices() { return slices_; }
  [[nodiscard]] bool may_rest() const {
    const auto is_well = [](const auto& cpu) { return cpu.second.side_band.is_proven && !cpu.second.is_broken; };
    return wake_ups_->hears_of_cpus() && side_band_.is_told() && program_.walks().walks_by_tables() &&
           dead_since_.empty() && std::all_of(cpus_by_number_.begin(), cpus_by_number_.end(), is_well);
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
        side_band_.drain(sampler.side_band, carried_);
    }
    return carried_.events().size() < kMostCarried;
  }

  void note_broken(std::span<const int> cpus) {
    for (const int cpu : cpus) {
      if (const auto found = cpus_by_number_.find(cpu); found != cpus_by_number_.end()) found->second.is_broken = true;
    }
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
      const bool is_lost =
          gone || resumed || (sampler.is_broken ? !sampler.side_band.is_young(now) : is_dead(cpu, sampler, now, busy));
      if (!is_lost) {
        ++it;
        continue;
      }
      if (!gone) {
        // News of the CPU may have waited for us: they don't tell since when.
        // Where only the perf buffer is dead, samples came.
        const bool only_side_band = !sampler.side_band.is_proven && sampler.timer && is_running(sampler.timer.get());
        dead_since_.insert_or_assign(cpu, only_side_band ? now : sampler.watch.alive_until());
        side_band_.note_loss(sampler.side_band.is_proven ? sampler.watch.alive_until() : sampler.side_band.opened);
        figures_.count_reopened();
      }
      // What the dead perf buffer still holds comes with the next drain, as do its samples.
      sampler.attachment.reset();
      sampler.timer.reset();
      side_band_.drain(sampler.side_band, carried_);
      it = cpus_by_number_.erase(it);
    }
  }

  /// Asks those that are no longer young, once, whether they run.
  void prove_side_bands(MonotonicTime now) {
    std::vector<SideBand::Buffer*> due;
    for (auto& [cpu, sampler] : cpus_by_number_) {
      SideBand::Buffer& buffer = sampler.side_band;
      if (!buffer.is_proven && !sampler.is_broken && !buffer.is_young(now)) due.push_back(&buffer);
    }
    note_broken(SideBand::prove(due));
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
    if (heard_at_.count(cpu) != 0 && (!is_running(sampler.timer.get()) || !is_running(sampler.side_band.ring.fd())))
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

  void note_cpu_reports(const WakeUp& brought) {
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
    for (SampleRing& ring : made) slices_.add_ring(ring.cpu(), ring.slices());
    if (Status given = program_.give_rings(made); !given) return given;
    for (SampleRing& ring : made) {
      const int cpu = ring.cpu();
      rings_by_cpu_.emplace(cpu, CpuRing{std::move(ring)});
    }
    return {};
  }

  Status open_cpu(int cpu) {
    if (Status made = make_rings({&cpu, 1}); !made) return made;
    // What is short for a moment later on, as after a suspend, is tried again.
    Result<SideBand::Buffer> side_band = side_band_.open(cpu, !has_begun_ && cpus_by_number_.empty());
    if (!side_band) return std::move(side_band).error();
    CpuSampler sampler{std::move(side_band).value(), watch_from(cpu)};
    if (has_begun_) {
      if (Status begun = begin_cpu(cpu, sampler); !begun) return begun;
    }
    if (Status watched = wake_ups_->watch_buffer(cpu, sampler.side_band.ring.fd()); !watched) return watched;
    cpus_by_number_.insert_or_assign(cpu, std::move(sampler));
    figures_.set_cpus(cpus_by_number_.size());
    return {};
  }

  Status begin_cpu(int cpu, CpuSampler& sampler) {
    Result<Fd> timer = open_timer(cpu, figures_.period_ns());
    if (!timer) return std::move(timer).error();
    Result<Attachment> attachment = program_.attach(cpu, *timer);
    if (!attachment) return std::move(attachment).error();
    sampler.timer = std::move(timer).value();
    sampler.watch = watch_from(cpu);
    sampler.attachment = std::move(attachment).value();
    return {};
  }

  [[nodiscard]] TimerWatch watch_from(int cpu) const {
    return {clock_.monotonic(), figures_.period_ns(), program_.counts_of(cpu).taken};
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
    figures_.set_problem(
        Error::from_errno("membarrier, without which samples may be read before they stand").message());
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
  SideBand side_band_;
  SamplerFigures figures_;
  std::uint64_t malformed_ = 0;
  SampleCounts reported_;
  EventBatch carried_;
  StackSlices slices_{};                 ///< in these rings' memory
  std::map<int, CpuRing> rings_by_cpu_;  ///< of all CPUs that were sampled so far
  std::map<int, CpuSampler> cpus_by_number_;
};

Sampler::Sampler(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Sampler::~Sampler() = default;

Result<std::unique_ptr<Sampler>> Sampler::start(const SamplerOptions& options, const Clock& clock) {
  constexpr const char* kWhat = "cannot start sampling";
  // Where events are forbidden that is to be known before the second that loading may take.
  if (const Result<Fd> timer = open_timer(0, kNsPerSecond); !timer && timer.error().code() != ENODEV) {
    return Error(timer.error()).with_context(kWhat);
  }
  Result<KernelProgram> program =
      KernelProgram::load(options.use_unwind_tables, options.use_stack_slices, options.use_runtimes);
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
void Sampler::drain(EventBatch& batch, const std::function<void(EventBatch&)>& add_others) {
  impl_->drain(batch, add_others);
}
void Sampler::check_cpus() { impl_->check_cpus(); }
bool Sampler::may_rest() const { return impl_->may_rest(); }
const SamplerFigures& Sampler::figures() const { return impl_->figures(); }
const KernelProgram& Sampler::program() const { return impl_->program(); }
WalkPrograms& Sampler::walks() { return impl_->program().walks(); }
StackSlices& Sampler::slices() { return impl_->slices(); }

}  // namespace flamed::daemon
