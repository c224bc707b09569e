// SPDX-License-Identifier: Apache-2.0
#include "daemon/sampler/sampler.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <ctime>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/handle.h"
#include "daemon/sampler/cpu_list.h"
#include "daemon/sampler/kernel_program.h"
#include "daemon/sampler/perf_event.h"
#include "daemon/sampler/perf_ring.h"

namespace flamed::daemon {
namespace {

constexpr const char* kOnlineCpus = "/sys/devices/system/cpu/online";
/// How long a timer may stand still before it is taken for dead. Asking costs a system call and, for a CPU that is
/// busy, an interrupt there.
constexpr std::int64_t kLivenessPeriodNs = 10 * kNsPerSecond;
/// A jump of CLOCK_BOOTTIME against CLOCK_MONOTONIC of more than this means that the machine was suspended.
constexpr std::int64_t kSuspendNs = 10 * kNsPerMs;
/// Stands for the wake-up descriptor where epoll's user data otherwise holds a CPU's number.
constexpr int kWakeUp = -1;
/// Likewise for the ring of notices.
constexpr int kNotices = -2;

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

/// Timer and ring of one CPU. The timer is detached and closed before the ring goes.
struct CpuSampler {
  PerfRing ring;
  Fd timer;
  Attachment attachment;
  std::uint64_t last_running_ns = 0;
  MonotonicTime last_record;  ///< nothing was lost before it that is not known of
};

}  // namespace

class Sampler::Impl {
 public:
  Impl(const SamplerOptions& options, const Clock& clock, KernelProgram program, Fd epoll)
      : options_(options),
        clock_(clock),
        program_(std::move(program)),
        epoll_(std::move(epoll)),
        wake_up_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        online_(::open(kOnlineCpus, O_RDONLY | O_CLOEXEC)),
        suspended_ns_(suspended_ns()),
        checked_liveness_(clock.monotonic()),
        checked_(checked_liveness_) {}

  Status open_all() {
    if (Status watched = watch(wake_up_.get(), kWakeUp); !watched) return watched;
    if (program_.notices_fd() >= 0) {
      if (Status watched = watch(program_.notices_fd(), kNotices); !watched) return watched;
    }
    Result<std::vector<int>> cpus = online_cpus();
    if (!cpus) return std::move(cpus).error();
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

  bool wait(int timeout_ms) {
    bool noticed = false;
    std::array<epoll_event, 16> events{};
    const int ready = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout_ms);
    for (int i = 0; i < ready; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      if (event.data.fd == kNotices) {
        program_.consume_notices();
        noticed = true;
        continue;
      }
      if (event.data.fd == kWakeUp) {
        std::uint64_t count = 0;
        static_cast<void>(::read(wake_up_.get(), &count, sizeof(count)) != sizeof(count));
        continue;
      }
      // A ring whose event is dead stays "ready" for ever. check_cpus() replaces it.
      if ((event.events & (EPOLLHUP | EPOLLERR)) != 0) {
        const auto found = cpus_by_number_.find(event.data.fd);
        if (found != cpus_by_number_.end()) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, found->second.ring.fd(), nullptr);
        recheck_ = true;
      }
    }
    return noticed;
  }

  void stop() {
    for (auto& [cpu, sampler] : cpus_by_number_) {
      sampler.attachment.reset();
      sampler.timer.reset();
    }
  }

  void wake() {
    const std::uint64_t one = 1;
    // It can only fail because the counter is full, and then the wait ends anyhow.
    static_cast<void>(::write(wake_up_.get(), &one, sizeof(one)) != sizeof(one));
  }

  void drain(EventBatch& batch) {
    batch.clear();
    std::swap(batch, carried_);
    const MonotonicTime cutoff = clock_.monotonic();
    for (auto& [cpu, sampler] : cpus_by_number_) drain_ring(sampler, batch);
    batch.sort_and_split(cutoff, carried_);
    batch.drained_at = cutoff;
    batch.malformed = std::exchange(malformed_, 0);
    batch.has_side_band = side_band_;
    batch.side_band_lost_from = std::exchange(side_band_lost_from_, std::nullopt);

    const SampleCounts total = program_.counts();
    batch.counts = {total.taken - reported_.taken, total.submitted - reported_.submitted,
                    total.lost_ring_full - reported_.lost_ring_full, total.lost_no_ring - reported_.lost_no_ring,
                    total.lost_output_error - reported_.lost_output_error};
    reported_ = total;
  }

  void check_cpus() {
    // The two clocks are read one after the other: being preempted in between makes the difference smaller, never
    // larger.
    const std::int64_t suspended = std::max(suspended_ns_, suspended_ns());
    const bool resumed = suspended - suspended_ns_ > kSuspendNs;
    suspended_ns_ = suspended;
    const MonotonicTime now = clock_.monotonic();
    const MonotonicTime checked_before = std::exchange(checked_, now);
    const bool ask_each = resumed || recheck_ || now.ns - checked_liveness_.ns >= kLivenessPeriodNs;

    std::array<char, 4096> text{};
    const ssize_t size = online_ ? ::pread(online_.get(), text.data(), text.size(), 0) : 0;
    const bool same = size > 0 && std::string_view(text.data(), static_cast<std::size_t>(size)) == online_text_;
    if (same && !ask_each) return;
    recheck_ = false;
    if (ask_each) checked_liveness_ = now;

    Result<std::vector<int>> online = online_cpus();
    if (!online) {
      set_problem(online.error().message());
      return;
    }
    set_problem("");
    for (auto it = cpus_by_number_.begin(); it != cpus_by_number_.end();) {
      const bool gone = !std::binary_search(online->begin(), online->end(), it->first);
      const bool silent = !gone && (resumed || (ask_each && !is_alive(it->second)));
      if (!gone && !silent) {
        ++it;
        continue;
      }
      // What the dead ring still holds comes with the next drain. Nothing may be added behind our back.
      it->second.attachment.reset();
      it->second.timer.reset();
      drain_ring(it->second, carried_);
      if (silent) ++reopened_;
      it = cpus_by_number_.erase(it);
    }
    for (const int cpu : *online) {
      if (cpus_by_number_.count(cpu) != 0) continue;
      // What happened there in the meantime, nobody has told.
      note_loss(checked_before);
      if (Status opened = open_cpu(cpu); !opened) set_problem(opened.error().message());
    }
    live_cpus_ = cpus_by_number_.size();
  }

  [[nodiscard]] const KernelProgram& program() const { return program_; }
  [[nodiscard]] std::int64_t period_ns() const { return kNsPerSecond / options_.frequency_hz; }
  [[nodiscard]] bool has_side_band() const { return side_band_; }
  [[nodiscard]] std::uint64_t taken() const { return program_.counts().taken; }
  [[nodiscard]] std::size_t cpus() const { return live_cpus_; }
  [[nodiscard]] std::uint64_t reopened() const { return reopened_; }
  [[nodiscard]] std::string last_problem() const {
    std::lock_guard lock(problem_mutex_);
    return problem_;
  }

 private:
  Result<std::vector<int>> online_cpus() {
    Result<std::string> text = read_file(kOnlineCpus, 4096);
    if (!text) return std::move(text).error();
    online_text_ = *text;
    return parse_cpu_list(*text);
  }

  Status watch(int fd, int name) {
    epoll_event interest{};
    interest.events = EPOLLIN;
    interest.data.fd = name;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &interest) != 0) return Error::from_errno("epoll_ctl");
    return {};
  }

  Result<PerfRing> open_ring(int cpu) {
    Result<PerfRing> ring = PerfRing::open(cpu, {options_.ring_bytes, side_band_});
    if (ring || !side_band_ || !cpus_by_number_.empty()) return ring;
    // One step down: samples without news of mappings, which are then read from /proc.
    Result<PerfRing> plain = PerfRing::open(cpu, {options_.ring_bytes, false});
    if (plain) side_band_ = false;
    return plain ? std::move(plain) : std::move(ring);
  }

  Status open_cpu(int cpu) {
    Result<PerfRing> ring = open_ring(cpu);
    if (!ring) return std::move(ring).error();
    const int ring_fd = ring->fd();
    if (Status given = program_.give_ring(cpu, ring_fd); !given) return given;
    const MonotonicTime enabled_at = clock_.monotonic();
    if (Status enabled = ring->enable(); !enabled) return enabled;
    CpuSampler sampler{std::move(ring).value(), Fd(), Attachment(), 0, enabled_at};
    if (has_begun_) {
      if (Status begun = begin_cpu(cpu, sampler); !begun) return begun;
    }
    if (Status watched = watch(ring_fd, cpu); !watched) return watched;
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
    sampler.attachment = std::move(attachment).value();
    return {};
  }

  /// A timer that works has run since it was last asked, whether its CPU was idle or not.
  static bool is_alive(CpuSampler& sampler) {
    struct {
      std::uint64_t value, running_ns;
    } reading{};
    if (::read(sampler.timer.get(), &reading, sizeof(reading)) != sizeof(reading)) return false;
    const bool alive = reading.running_ns > sampler.last_running_ns;
    sampler.last_running_ns = reading.running_ns;
    return alive;
  }

  void note_loss(MonotonicTime from) { side_band_lost_from_ = std::min(side_band_lost_from_.value_or(from), from); }

  void drain_ring(CpuSampler& sampler, EventBatch& batch) {
    PerfRing& ring = sampler.ring;
    const std::uint64_t broken_before = ring.broken();
    ring.drain([&](std::span<const std::byte> record) {
      RecordHead head = read_head(record);
      head.cpu = static_cast<std::uint16_t>(ring.cpu());
      switch (head.kind) {
        case RecordKind::kMalformed:
          ++malformed_;
          break;
        case RecordKind::kLost:
          // Samples among them are counted by the program itself, with their reason.
          note_loss(sampler.last_record);
          break;
        case RecordKind::kOther:
          break;
        default:
          sampler.last_record = head.time;
          batch.append(head);
      }
    });
    if (ring.was_full() || ring.broken() != broken_before) note_loss(sampler.last_record);
  }

  void set_problem(std::string text) {
    std::lock_guard lock(problem_mutex_);
    problem_ = std::move(text);
  }

  const SamplerOptions options_;
  const Clock& clock_;
  KernelProgram program_;
  Fd epoll_;
  Fd wake_up_;
  Fd online_;
  std::string online_text_;
  std::int64_t suspended_ns_;
  MonotonicTime checked_liveness_;
  bool recheck_ = false;
  bool side_band_ = true;
  bool has_begun_ = false;
  MonotonicTime checked_;  ///< when check_cpus() last looked
  std::optional<MonotonicTime> side_band_lost_from_;
  std::uint64_t malformed_ = 0;
  SampleCounts reported_;
  EventBatch carried_;
  std::map<int, CpuSampler> cpus_by_number_;

  std::atomic<std::size_t> live_cpus_ = 0;
  std::atomic<std::uint64_t> reopened_ = 0;
  mutable std::mutex problem_mutex_;
  std::string problem_;
};

Sampler::Sampler(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Sampler::~Sampler() = default;

Result<std::unique_ptr<Sampler>> Sampler::start(const SamplerOptions& options, const Clock& clock) {
  constexpr const char* kWhat = "cannot start sampling";
  Result<KernelProgram> program = KernelProgram::load(options.use_unwind_tables);
  if (!program) return std::move(program).error().with_context(kWhat);
  Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return Error::from_errno("epoll_create1").with_context(kWhat);
  auto impl = std::make_unique<Impl>(options, clock, std::move(program).value(), std::move(epoll));
  if (Status opened = impl->open_all(); !opened) return Error(opened.error()).with_context(kWhat);
  return std::unique_ptr<Sampler>(new Sampler(std::move(impl)));
}

Status Sampler::begin() {
  Status begun = impl_->begin();
  return begun ? begun : Status(Error(begun.error()).with_context("cannot start sampling"));
}
bool Sampler::wait(int timeout_ms) { return impl_->wait(timeout_ms); }
void Sampler::stop() { impl_->stop(); }
void Sampler::wake() { impl_->wake(); }
void Sampler::drain(EventBatch& batch) { impl_->drain(batch); }
void Sampler::check_cpus() { impl_->check_cpus(); }
std::optional<UnwindMapFds> Sampler::unwind_maps() const { return impl_->program().unwind_maps(); }
const std::string& Sampler::why_no_tables() const { return impl_->program().why_no_tables(); }
std::int64_t Sampler::period_ns() const { return impl_->period_ns(); }
bool Sampler::has_side_band() const { return impl_->has_side_band(); }
std::uint64_t Sampler::taken() const { return impl_->taken(); }
std::size_t Sampler::cpus() const { return impl_->cpus(); }
std::uint64_t Sampler::reopened() const { return impl_->reopened(); }
std::string Sampler::last_problem() const { return impl_->last_problem(); }
int Sampler::program_fd() const { return impl_->program().fd(); }

}  // namespace flamed::daemon
