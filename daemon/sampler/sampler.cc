// SPDX-License-Identifier: Apache-2.0
#include "daemon/sampler/sampler.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstdarg>
#include <cstdio>
#include <ctime>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/handle.h"
#include "bpf/events.h"
#include "bpf/sampler.skel.h"
#include "daemon/sampler/cpu_list.h"
#include "daemon/sampler/perf_event.h"
#include "daemon/sampler/perf_ring.h"

namespace flamed::daemon {
namespace {

using Skeleton = Handle<::sampler*, ::sampler__destroy>;
using Link = Handle<bpf_link*, ::bpf_link__destroy>;
using NoticeRing = Handle<ring_buffer*, ::ring_buffer__free>;

constexpr const char* kOnlineCpus = "/sys/devices/system/cpu/online";
constexpr const char* kMaxStack = "/proc/sys/kernel/perf_event_max_stack";
/// How long a timer may stand still before it is taken for dead. Asking costs a system call and, for a CPU that is
/// busy, an interrupt there.
constexpr std::int64_t kLivenessPeriodNs = 10 * kNsPerSecond;
/// A jump of CLOCK_BOOTTIME against CLOCK_MONOTONIC of more than this means that the machine was suspended.
constexpr std::int64_t kSuspendNs = 10 * kNsPerMs;
/// Stands for the wake-up descriptor where epoll's user data otherwise holds a CPU's number.
constexpr int kWakeUp = -1;
/// Likewise for the ring of notices.
constexpr int kNotices = -2;

/// libbpf's last complaint, for the error message: its return code alone ("Permission denied") does not say of what.
class LibbpfLog {
 public:
  LibbpfLog() {
    text().clear();
    previous_ = ::libbpf_set_print(&LibbpfLog::print);
  }
  ~LibbpfLog() { ::libbpf_set_print(previous_); }
  LibbpfLog(const LibbpfLog&) = delete;
  LibbpfLog& operator=(const LibbpfLog&) = delete;
  [[nodiscard]] static std::string& text() {
    static thread_local std::string last;
    return last;
  }

 private:
  static int print(libbpf_print_level level, const char* format, va_list arguments) {
    if (level != LIBBPF_WARN) return 0;
    std::array<char, 1024> line{};
    const int length = std::vsnprintf(line.data(), line.size(), format, arguments);
    text().assign(line.data(), std::min<std::size_t>(line.size() - 1, static_cast<std::size_t>(std::max(length, 0))));
    while (!text().empty() && text().back() == '\n') text().pop_back();
    return 0;
  }
  libbpf_print_fn_t previous_;
};

Error bpf_error(const char* what, int code) {
  std::string remedy;
  if (code == EPERM || code == EACCES) {
    remedy =
        " (needs CAP_BPF and CAP_PERFMON, and no kernel lockdown in confidentiality mode: run as root or as the "
        "installed service)";
  } else if (code == ENOENT || code == ESRCH) {
    remedy = " (the kernel must have BTF: CONFIG_DEBUG_INFO_BTF, /sys/kernel/btf/vmlinux)";
  }
  Error error = Error::from_errno(what, code);
  std::string message = error.message() + remedy;
  if (!LibbpfLog::text().empty()) message += "; libbpf says: " + LibbpfLog::text();
  return Error(std::move(message), code);
}

std::uint32_t kernel_depth_limit() {
  std::uint32_t limit = FLAMED_MAX_KERNEL_FRAMES;
  if (const Result<std::string> text = read_file(kMaxStack, 64)) {
    std::uint32_t configured = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), configured);
    if (error == std::errc{} && configured > 0) limit = std::min(limit, configured);
  }
  return limit;
}

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

/// The kernel program's counters of all CPUs, mapped into our memory.
class CounterMemory {
 public:
  static Result<CounterMemory> map(int map_fd, std::size_t cpus) {
    // The kernel rounds the map up to whole pages and refuses a longer mapping, not a shorter one.
    const std::size_t bytes = cpus * sizeof(flamed_counters);
    void* memory = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, map_fd, 0);
    if (memory == MAP_FAILED) return Error::from_errno("mmap of the sampler's counters");
    return CounterMemory(static_cast<const flamed_counters*>(memory), cpus, bytes);
  }
  CounterMemory(CounterMemory&& other) noexcept
      : counters_(std::exchange(other.counters_, nullptr)), cpus_(other.cpus_), bytes_(other.bytes_) {}
  CounterMemory& operator=(CounterMemory&&) = delete;
  ~CounterMemory() {
    if (counters_ != nullptr) ::munmap(const_cast<flamed_counters*>(counters_), bytes_);
  }

  /// Each CPU adds to its own line while we read: every field is right by itself. `taken` is read last-but-first:
  /// outcomes before attempts, so that a sum never shows more outcomes than samples taken.
  [[nodiscard]] SampleCounts sum() const {
    SampleCounts sum;
    for (std::size_t cpu = 0; cpu < cpus_; ++cpu) {
      const flamed_counters& line = counters_[cpu];
      sum.submitted += load(line.submitted);
      sum.lost_ring_full += load(line.lost_ring_full);
      sum.lost_no_ring += load(line.lost_no_ring);
      sum.lost_output_error += load(line.lost_output_error);
      sum.taken += load(line.taken);
    }
    return sum;
  }

 private:
  CounterMemory(const flamed_counters* counters, std::size_t cpus, std::size_t bytes)
      : counters_(counters), cpus_(cpus), bytes_(bytes) {}
  static std::uint64_t load(const __u64& field) { return __atomic_load_n(&field, __ATOMIC_RELAXED); }

  const flamed_counters* counters_;
  std::size_t cpus_;
  std::size_t bytes_;
};

/// Timer and ring of one CPU. The timer is detached and closed before the ring goes.
struct CpuSampler {
  PerfRing ring;
  Fd timer;
  Link link;
  std::uint64_t last_running_ns = 0;
};

}  // namespace

class Sampler::Impl {
 public:
  Impl(const SamplerOptions& options, const Clock& clock, Skeleton skeleton, std::string why_no_tables,
       CounterMemory counters, Fd epoll)
      : options_(options),
        clock_(clock),
        skeleton_(std::move(skeleton)),
        why_no_tables_(std::move(why_no_tables)),
        counters_(std::move(counters)),
        epoll_(std::move(epoll)),
        wake_up_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        online_(::open(kOnlineCpus, O_RDONLY | O_CLOEXEC)),
        suspended_ns_(suspended_ns()),
        checked_liveness_(clock.monotonic()) {}

  Status open_all() {
    if (Status watched = watch(wake_up_.get(), kWakeUp); !watched) return watched;
    if (why_no_tables_.empty()) {
      // That something is there is all that counts: the samples themselves say what is missing.
      const auto ignore = [](void*, void*, std::size_t) { return 0; };
      notices_.reset(::ring_buffer__new(::bpf_map__fd(skeleton_.get()->maps.notices), ignore, nullptr, nullptr));
      if (!notices_) return Error::from_errno("opening the ring of notices");
      if (Status watched = watch(::ring_buffer__epoll_fd(notices_.get()), kNotices); !watched) return watched;
    }
    Result<std::vector<int>> cpus = online_cpus();
    if (!cpus) return std::move(cpus).error();
    for (const int cpu : *cpus) {
      if (Status opened = open_cpu(cpu); !opened) return opened;
    }
    return {};
  }

  bool wait(int timeout_ms) {
    bool noticed = false;
    std::array<epoll_event, 16> events{};
    const int ready = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout_ms);
    for (int i = 0; i < ready; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      if (event.data.fd == kNotices) {
        ::ring_buffer__consume(notices_.get());
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
      sampler.link.reset();
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
    for (auto& [cpu, sampler] : cpus_by_number_) drain_ring(sampler.ring, batch);
    batch.sort_and_split(cutoff, carried_);
    batch.drained_at = cutoff;
    batch.malformed = std::exchange(malformed_, 0);
    // Where the kernel tells of no changes, all of them are missed.
    batch.side_band_lost = std::exchange(side_band_lost_, false) || !side_band_;

    const SampleCounts total = counters_.sum();
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
      it->second.link.reset();
      it->second.timer.reset();
      drain_ring(it->second.ring, carried_);
      if (silent) ++reopened_;
      it = cpus_by_number_.erase(it);
    }
    for (const int cpu : *online) {
      if (cpus_by_number_.count(cpu) != 0) continue;
      if (Status opened = open_cpu(cpu); !opened) set_problem(opened.error().message());
    }
    live_cpus_ = cpus_by_number_.size();
  }

  [[nodiscard]] std::optional<UnwindMapFds> unwind_maps() const {
    if (!why_no_tables_.empty()) return std::nullopt;
    const auto& maps = skeleton_.get()->maps;
    return UnwindMapFds{::bpf_map__fd(maps.processes),      ::bpf_map__fd(maps.mapping_blocks),
                        ::bpf_map__fd(maps.unwind_modules), ::bpf_map__fd(maps.unwind_pages),
                        ::bpf_map__fd(maps.unwind_rules),   ::bpf_map__fd(maps.row_slabs)};
  }
  [[nodiscard]] const std::string& why_no_tables() const { return why_no_tables_; }
  [[nodiscard]] std::int64_t period_ns() const { return kNsPerSecond / options_.frequency_hz; }
  [[nodiscard]] bool has_side_band() const { return side_band_; }
  [[nodiscard]] std::uint64_t taken() const { return counters_.sum().taken; }
  [[nodiscard]] std::size_t cpus() const { return live_cpus_; }
  [[nodiscard]] std::uint64_t reopened() const { return reopened_; }
  [[nodiscard]] std::string last_problem() const {
    std::lock_guard lock(problem_mutex_);
    return problem_;
  }
  [[nodiscard]] int program_fd() const { return ::bpf_program__fd(skeleton_.get()->progs.sample_cpu); }

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
    if (::bpf_map_update_elem(::bpf_map__fd(skeleton_.get()->maps.rings), &cpu, &ring_fd, BPF_ANY) != 0) {
      return Error::from_errno("handing the perf buffer of CPU " + std::to_string(cpu) + " to the kernel program");
    }
    if (Status enabled = ring->enable(); !enabled) return enabled;

    Result<Fd> timer = open_timer(cpu, period_ns());
    if (!timer) return std::move(timer).error();
    const LibbpfLog log;
    // The link takes the descriptor over only where it succeeds, and then closes it: it works on a duplicate.
    const int attached = ::dup(timer->get());
    Link link(::bpf_program__attach_perf_event(skeleton_.get()->progs.sample_cpu, attached));
    if (!link) {
      const int code = errno;
      ::close(attached);
      return bpf_error(("attaching the sampler to CPU " + std::to_string(cpu)).c_str(), code);
    }

    if (Status watched = watch(ring_fd, cpu); !watched) return watched;
    cpus_by_number_.insert_or_assign(cpu,
                                     CpuSampler{std::move(ring).value(), std::move(timer).value(), std::move(link), 0});
    live_cpus_ = cpus_by_number_.size();
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

  void drain_ring(PerfRing& ring, EventBatch& batch) {
    const std::uint64_t broken_before = ring.broken();
    ring.drain([&](std::span<const std::byte> record) {
      const RecordHead head = read_head(record);
      switch (head.kind) {
        case RecordKind::kMalformed:
          ++malformed_;
          break;
        case RecordKind::kLost:
          // Samples among them are counted by the program itself, with their reason.
          side_band_lost_ = true;
          break;
        case RecordKind::kOther:
          break;
        default:
          batch.append(head);
      }
    });
    if (ring.broken() != broken_before) side_band_lost_ = true;
  }

  void set_problem(std::string text) {
    std::lock_guard lock(problem_mutex_);
    problem_ = std::move(text);
  }

  const SamplerOptions options_;
  const Clock& clock_;
  Skeleton skeleton_;
  const std::string why_no_tables_;
  CounterMemory counters_;
  Fd epoll_;
  NoticeRing notices_;
  Fd wake_up_;
  Fd online_;
  std::string online_text_;
  std::int64_t suspended_ns_;
  MonotonicTime checked_liveness_;
  bool recheck_ = false;
  bool side_band_ = true;
  bool side_band_lost_ = false;
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

namespace {

Result<Skeleton> load_program(std::uint32_t possible_cpus, bool use_unwind_tables) {
  const LibbpfLog log;
  Skeleton skeleton(::sampler__open());
  if (!skeleton) return bpf_error("opening the kernel program", errno);
  ::sampler* program = skeleton.get();
  program->rodata->kernel_depth_limit = kernel_depth_limit();
  program->rodata->use_unwind_tables = use_unwind_tables ? 1 : 0;
  ::bpf_map__set_max_entries(program->maps.counters, possible_cpus);
  if (!use_unwind_tables) {
    ::bpf_program__set_autoload(program->progs.walk_user_stack, false);
    for (bpf_map* map : {program->maps.processes, program->maps.mapping_blocks, program->maps.unwind_modules,
                         program->maps.unwind_pages, program->maps.unwind_rules, program->maps.row_slabs,
                         program->maps.notices, program->maps.programs}) {
      ::bpf_map__set_autocreate(map, false);
    }
  }
  if (const int err = ::sampler__load(program); err != 0) return bpf_error("loading the kernel program", -err);
  if (use_unwind_tables) {
    const std::uint32_t walk = 0;
    const int walk_fd = ::bpf_program__fd(program->progs.walk_user_stack);
    if (::bpf_map_update_elem(::bpf_map__fd(program->maps.programs), &walk, &walk_fd, BPF_ANY) != 0) {
      return bpf_error("chaining the kernel programs", errno);
    }
  }
  return skeleton;
}

}  // namespace

Result<std::unique_ptr<Sampler>> Sampler::start(const SamplerOptions& options, const Clock& clock) {
  constexpr const char* kWhat = "cannot start sampling";
  const int possible = ::libbpf_num_possible_cpus();
  if (possible <= 0) return bpf_error("counting the CPUs", -possible).with_context(kWhat);

  std::string why_no_tables = options.use_unwind_tables ? "" : "they are switched off";
  Result<Skeleton> skeleton = load_program(static_cast<std::uint32_t>(possible), options.use_unwind_tables);
  if (!skeleton && options.use_unwind_tables) {
    // One step down: stacks by frame pointers.
    why_no_tables = skeleton.error().message();
    skeleton = load_program(static_cast<std::uint32_t>(possible), false);
  }
  if (!skeleton) return std::move(skeleton).error().with_context(kWhat);

  Result<CounterMemory> counters =
      CounterMemory::map(::bpf_map__fd(skeleton->get()->maps.counters), static_cast<std::size_t>(possible));
  if (!counters) return std::move(counters).error().with_context(kWhat);
  Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return Error::from_errno("epoll_create1").with_context(kWhat);

  auto impl = std::make_unique<Impl>(options, clock, std::move(skeleton).value(), std::move(why_no_tables),
                                     std::move(counters).value(), std::move(epoll));
  if (Status opened = impl->open_all(); !opened) return Error(opened.error()).with_context(kWhat);
  return std::unique_ptr<Sampler>(new Sampler(std::move(impl)));
}

bool Sampler::wait(int timeout_ms) { return impl_->wait(timeout_ms); }
void Sampler::stop() { impl_->stop(); }
void Sampler::wake() { impl_->wake(); }
void Sampler::drain(EventBatch& batch) { impl_->drain(batch); }
void Sampler::check_cpus() { impl_->check_cpus(); }
std::optional<UnwindMapFds> Sampler::unwind_maps() const { return impl_->unwind_maps(); }
const std::string& Sampler::why_no_tables() const { return impl_->why_no_tables(); }
std::int64_t Sampler::period_ns() const { return impl_->period_ns(); }
bool Sampler::has_side_band() const { return impl_->has_side_band(); }
std::uint64_t Sampler::taken() const { return impl_->taken(); }
std::size_t Sampler::cpus() const { return impl_->cpus(); }
std::uint64_t Sampler::reopened() const { return impl_->reopened(); }
std::string Sampler::last_problem() const { return impl_->last_problem(); }
int Sampler::program_fd() const { return impl_->program_fd(); }

}  // namespace flamed::daemon
