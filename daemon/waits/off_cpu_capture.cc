// SPDX-License-Identifier: Apache-2.0
#include "daemon/waits/off_cpu_capture.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "base/file.h"
#include "base/thread.h"
#include "base/thread_cpu.h"
#include "daemon/sampler/record.h"
#include "daemon/waits/off_cpu_pace.h"
#include "daemon/waits/wait_program.h"

namespace flamed::daemon {
namespace {

/// The ring has room for the stacks of as long at 10,000 a second.
constexpr std::chrono::milliseconds kBetweenDrains{20};
/// A visit of all threads, at the beginning and at the end.
constexpr std::int64_t kLongestVisitNs = kNsPerSecond / 2;
constexpr std::chrono::seconds kLongestEnd{5};
/// Ingest walks the stack. Its time is not measured for each.
constexpr std::int64_t kWalkNs = 15'000;
/// Records that nobody has taken.
constexpr std::size_t kMostBytes = std::size_t{16} << 20;

/// Of all CPUs since boot: the line "ctxt" of /proc/stat.
std::uint64_t read_switches() {
  const Result<std::string> text = read_file("/proc/stat", std::size_t{1} << 20);
  const std::size_t line = text ? text->find("\nctxt ") : std::string::npos;
  return line == std::string::npos ? 0 : std::strtoull(text->c_str() + line + 6, nullptr, 10);
}

std::string seconds_of(std::int64_t ns) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f s", static_cast<double>(ns) / kNsPerSecond);
  return text.data();
}

bool is_queued(const flamed_wait& wait) { return wait.state == FLAMED_WAITS_FOR_CPU; }

}  // namespace

/// One capture, on its thread.
class OffCpuCapture::Run {
 public:
  /// `visitor`: for waits that stand at the beginning or at the end. Without it these have no stacks.
  Run(OffCpuCapture& capture, Request request, OffCpuProgram program, std::optional<WaitProgram> visitor,
      MonotonicTime began)
      : capture_(capture),
        request_(std::move(request)),
        program_(std::move(program)),
        visitor_(std::move(visitor)),
        helper_(capture.clock_),
        began_(began) {}

  void measure(const std::stop_token& stop) {
    visit();
    // So that ingest soon has the mappings of processes that it has not met yet.
    capture_.hooks_.wake_reader();
    OffCpuPace pace(kMostShare, static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN)), read());
    const auto is_over = [&] {
      return stop.stop_requested() || capture_.is_cancelled() ||
             capture_.clock_.monotonic().ns - began_.ns >= request_.length_ns;
    };
    while (!is_over()) {
      sleep(stop);
      drain();
      if (!pace.is_due(capture_.clock_.monotonic())) continue;
      pace.look(read());
      program_.set_period(pace.period_ns());
      if (!pace.is_ended()) continue;
      std::array<char, 128> text{};
      std::snprintf(text.data(), text.size(), "it took %.1f %% of the CPU time, of at most %.0f %%", 100 * pace.used(),
                    100 * kMostShare);
      why_ended_ = text.data();
      break;
    }
    period_ns_ = pace.period_ns();
    ended_ = capture_.clock_.monotonic();
    program_.detach();
    drain();
    if (stop.stop_requested() || capture_.is_cancelled()) return;
    // Once more, for waits that stand since the beginning: the first time their processes may not have been known.
    for (const auto& [tid, wait] : standing_) {
      if (visitor_) visitor_->read_again(tid);
    }
    visit();
    count_threads();
  }

  [[nodiscard]] const Request& request() const { return request_; }
  [[nodiscard]] const std::string& why_ended() const { return why_ended_; }
  [[nodiscard]] flamed_off_cpu_counts counts() const { return program_.counts(); }
  [[nodiscard]] MonotonicTime began() const { return began_; }
  [[nodiscard]] MonotonicTime ended() const { return ended_; }

  [[nodiscard]] Outcome outcome() const {
    Outcome outcome{request_.processes, began_, ended_, divide_times(totals_, waits_), {}, wakers_};
    outcome.only_user = request_.only_user;
    outcome.waker_stacks.resize(waker_stacks_.size());
    for (const auto& [stack, place] : waker_stacks_) outcome.waker_stacks[place] = stack;
    if (!why_ended_.empty()) {
      outcome.warnings.push_back("Waiting was measured for " + seconds_of(ended_.ns - began_.ns) + " only: " +
                                 why_ended_ + ". Ask for fewer processes, or when there are fewer switches.");
    }
    if (period_ns_ != OffCpuPace::kFirstPeriodNs) {
      outcome.warnings.push_back("There were so many waits that their stacks were taken for each " +
                                 std::to_string(period_ns_ / kNsPerMs) + " ms of waiting, not for each 10 ms.");
    }
    const flamed_off_cpu_counts counts = program_.counts();
    if (counts.lost_threads != 0) {
      outcome.warnings.push_back("Some threads are missing: at most " + std::to_string(FLAMED_MOST_OFF_CPU) +
                                 " are measured at once.");
    }
    if (!visited_all_) {
      outcome.warnings.emplace_back(
          "Waits that stood for the whole time may be missing: it took too long to visit all threads of the machine.");
    }
    return outcome;
  }

 private:
  static void sleep(const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any stopped;
    std::unique_lock lock(mutex);
    stopped.wait_for(lock, stop, kBetweenDrains, [] { return false; });
  }

  [[nodiscard]] OffCpuPace::Reading read() const {
    const flamed_off_cpu_counts counts = program_.counts();
    // A wake-up costs other threads as much as a switch, and there are no more of these.
    const std::uint64_t switches = read_switches() * (request_.with_wakers ? 2 : 1);
    return {capture_.clock_.monotonic(), switches, static_cast<std::int64_t>(counts.run_ns),
            read_cpu_clock(CLOCK_THREAD_CPUTIME_ID) + static_cast<std::int64_t>(counts.stacks) * kWalkNs,
            counts.no_room};
  }

  [[nodiscard]] bool is_selected(std::uint32_t tgid) const {
    return std::find(request_.processes.begin(), request_.processes.end(), static_cast<std::int32_t>(tgid)) !=
           request_.processes.end();
  }

  void drain() {
    program_.drain({.stack =
                        [this](const flamed_off_cpu_stack& taken) {
                          flamed_visit visit = taken.visit;
                          hand_on(visit, std::as_bytes(std::span(taken.stack))
                                             .first(std::min<std::size_t>(taken.stack_bytes, sizeof(taken.stack))));
                        },
                    .end =
                        [this](const flamed_wait_end& end) {
                          waits_.push_back({end.tid, end.number, end.call, static_cast<std::int64_t>(end.blocked_ns),
                                            static_cast<std::int64_t>(end.queued_ns), end.chance});
                        },
                    .waker = [this](const flamed_waker& waker) { note_waker(waker); }});
    if (capture_.slices_ && capture_.slices_->is_filling()) capture_.hooks_.wake_reader();
  }

  void note_waker(const flamed_waker& waker) {
    const std::size_t frames = std::min<std::size_t>(waker.frames, FLAMED_WAKER_FRAMES);
    if (wakers_.size() >= kMostWakers) return;
    std::vector<std::uint64_t> addresses(waker.addresses, waker.addresses + frames);
    if (waker_stacks_.size() >= kMostWakerStacks && !waker_stacks_.contains(addresses)) return;
    const auto stack = waker_stacks_.try_emplace(std::move(addresses), waker_stacks_.size()).first;
    wakers_.insert_or_assign(
        {waker.tid, waker.number},
        Waker{waker.waker, waker.tgid, waker.owner, std::string(waker.comm, ::strnlen(waker.comm, sizeof(waker.comm))),
              static_cast<std::uint32_t>(stack->second)});
  }

  /// To ingest.
  void hand_on(flamed_visit& visit, std::span<const std::byte> stack) {
    std::uint16_t ring = 0;
    visit.sample.slice_blocks = 0;
    if (visit.wait.stack == FLAMED_STACK_READ) {
      const auto place = capture_.slices_ ? capture_.slices_->put(visit.wait, stack) : std::nullopt;
      if (place) {
        ring = place->ring;
        visit.sample.slice_place = place->place;
        visit.sample.slice_blocks = place->blocks;
      } else {
        visit.wait.stack = FLAMED_STACK_LATE;
      }
    }
    const std::size_t bytes = std::min<std::size_t>(visit.size, sizeof(visit));
    RecordHead head = read_head(std::as_bytes(std::span(&visit, 1)).first(bytes));
    head.cpu = ring;
    const std::lock_guard guard(capture_.mutex_);
    if (capture_.records_.bytes() < kMostBytes) capture_.records_.append(head);
  }

  /// Reads the stacks of threads that wait now, in waits that no earlier visit has found.
  void visit() {
    if (!visitor_) return;
    const MonotonicTime until{capture_.clock_.monotonic().ns + kLongestVisitNs};
    std::vector<flamed_visit> visits;
    for (;;) {
      const auto turn = visitor_->turn({.longest_ns = until.ns - capture_.clock_.monotonic().ns});
      visitor_->records().look();
      visitor_->records().drain([&](std::span<const std::byte> record) {
        flamed_visit visit{};
        std::memcpy(&visit, record.data(), std::min(record.size(), sizeof(visit)));
        if (visit.type == FLAMED_RECORD_VISIT && is_selected(visit.sample.tgid)) visits.push_back(visit);
      });
      drain();
      if (!turn || *turn == WaitProgram::Turn::kEnded) break;
      if (capture_.clock_.monotonic() >= until) {
        visited_all_ = false;
        break;
      }
    }
    for (std::size_t first = 0; first < visits.size(); first += StackHelper::kMost) {
      read_stacks(std::span(visits).subspan(first, std::min(StackHelper::kMost, visits.size() - first)));
      drain();
    }
    for (const flamed_visit& visit : visits) note_visit(visit);
  }

  void read_stacks(std::span<flamed_visit> visits) {
    std::vector<StackRequest> requests;
    for (flamed_visit& visit : visits) {
      visit.sample.kind = FLAMED_OFF_CPU;
      visit.wait.stack = FLAMED_STACK_LATE;
      const bool has_registers = (visit.wait.known & FLAMED_KNOWS_REGISTERS) != 0;
      requests.push_back({static_cast<std::int32_t>(visit.sample.tgid),
                          static_cast<std::int32_t>(visit.sample.tid),
                          visit.sample.owner,
                          0,
                          visit.sample.start_boottime_ns,
                          has_registers ? VisitSlices::start_of(visit.wait.registers[FLAMED_SP_REGISTER]) : 0,
                          visit.wait.runs,
                          {}});
    }
    if (!capture_.slices_) {
      for (flamed_visit& visit : visits) hand_on(visit, {});
      return;
    }
    helper_.read(requests, [&](std::size_t i, const StackAnswer& answer, std::span<const std::byte> stack) {
      visits[i].wait.stack = static_cast<__u8>(answer.outcome);
      hand_on(visits[i], stack);
    });
  }

  void note_visit(const flamed_visit& visit) {
    const flamed_wait& wait = visit.wait;
    const std::int32_t call = is_queued(wait) ? FLAMED_PREEMPTED : static_cast<std::int32_t>(wait.system_call);
    flamed_off_cpu_thread thread{};
    thread.start_ns = wait.thread_start_ns;
    thread.out_ns = static_cast<__u64>(began_.ns);
    thread.queued_ns = wait.queued_ns;
    thread.number = wait.switches;
    thread.tgid = visit.sample.tgid;
    thread.place = ::find_place(&thread, call);
    thread.chance = FLAMED_SURE;
    // Refused if the program has seen the thread: then it knows better.
    program_.add_waiting(visit.sample.tid, thread);
    standing_.insert_or_assign(visit.sample.tid, std::pair(wait.switches, is_queued(wait)));
  }

  void count_threads() {
    for (const auto& [tid, thread] : program_.threads()) {
      for (const flamed_off_cpu_place& place : thread.places) {
        if (place.waits == 0) continue;
        totals_.push_back({tid, thread.tgid, place.call, static_cast<std::int64_t>(place.blocked_ns),
                           static_cast<std::int64_t>(place.queued_ns)});
      }
      count_last_wait(tid, thread);
    }
  }

  /// The one that stands, or that has just ended.
  void count_last_wait(std::uint32_t tid, const flamed_off_cpu_thread& thread) {
    const auto out_ns = static_cast<std::int64_t>(thread.out_ns);
    const std::int64_t ns = out_ns != 0 ? ended_.ns - out_ns : static_cast<std::int64_t>(thread.away_ns);
    if (ns <= 0) return;
    const auto standing = standing_.find(tid);
    const bool is_visited = out_ns != 0 && standing != standing_.end() && standing->second.first == thread.number;
    const std::int32_t call = thread.places[thread.place % FLAMED_OFF_CPU_PLACES].call;
    const bool is_in_queue = is_visited ? standing->second.second : call == FLAMED_PREEMPTED;
    const OffCpuWait wait{tid,
                          thread.number,
                          is_visited ? kStandingWait : call,
                          is_in_queue ? 0 : ns,
                          is_in_queue ? ns : 0,
                          is_visited ? FLAMED_SURE : thread.chance};
    totals_.push_back({tid, thread.tgid, wait.call, wait.blocked_ns, wait.queued_ns});
    if (wait.chance != 0) waits_.push_back(wait);
  }

  OffCpuCapture& capture_;
  const Request request_;
  OffCpuProgram program_;
  std::optional<WaitProgram> visitor_;
  StackHelper helper_;
  const MonotonicTime began_;
  MonotonicTime ended_{};
  std::int64_t period_ns_ = 0;
  std::string why_ended_;
  bool visited_all_ = true;
  std::vector<OffCpuWait> waits_;
  std::vector<OffCpuTotal> totals_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, Waker> wakers_;
  std::map<std::vector<std::uint64_t>, std::size_t> waker_stacks_;  ///< with their places
  /// By tid: the number of the wait in which it was visited last, and whether it stood in a run queue.
  std::map<std::uint32_t, std::pair<std::uint64_t, bool>> standing_;
};

OffCpuCapture::OffCpuCapture(const Clock& clock, StackSlices* slices, Hooks hooks)
    : clock_(clock), hooks_(std::move(hooks)) {
  if (slices != nullptr) slices_.emplace(*slices, VisitSlices::kOfExactMode);
}

OffCpuCapture::~OffCpuCapture() = default;

Status OffCpuCapture::begin(const Request& request) {
  const std::lock_guard one(beginning_);
  {
    const std::lock_guard guard(mutex_);
    if (measuring_) return Error("another one is being measured: try again when it has ended", EBUSY);
    if (request.is_limited && rests_until_ && clock_.monotonic() < *rests_until_) {
      return Error(
          "it costs all programs of the machine, so users who do not see everything have to wait for another " +
              seconds_of(rests_until_->ns - clock_.monotonic().ns),
          EBUSY);
    }
  }
  if (thread_.joinable()) thread_.join();  // of the one before, which has ended
  hooks_.forget();
  Result<OffCpuProgram> program = OffCpuProgram::load(request.processes, request.with_wakers);
  std::optional<WaitProgram> visitor;
  if (Result<WaitProgram> loaded = WaitProgram::load({.with_shares = false, .with_list = false})) {
    visitor.emplace(std::move(*loaded));
  } else {
    spdlog::warn("waits that stand are told without stacks: {}", loaded.error().message());
  }
  const MonotonicTime began = clock_.monotonic();
  Status attached = program ? program->attach(clock_) : Status(program.error());
  if (!attached) {
    const std::lock_guard guard(mutex_);
    state_.problem = attached.error().message();
    spdlog::warn("waits are not measured exactly: {}", state_.problem);
    return attached;
  }
  auto run = std::make_unique<Run>(*this, request, std::move(*program), std::move(visitor), began);
  {
    const std::lock_guard guard(mutex_);
    measuring_ = request.asked;
    is_cancelled_ = false;
    outcome_.reset();
    state_.is_measuring = true;
    state_.problem.clear();
    ++state_.captures;
  }
  spdlog::info("waits of {} processes are measured exactly for {}", request.processes.size(),
               seconds_of(request.length_ns));
  thread_ = start_thread("off-cpu", [this, run = std::move(run)](const std::stop_token& stop) {
    run->measure(stop);
    publish(*run);
  });
  return {};
}

void OffCpuCapture::publish(Run& run) {
  {
    const std::lock_guard guard(mutex_);
    if (!is_cancelled_) outcome_.emplace(run.request().asked, run.outcome());
    if (run.request().is_limited) {
      rests_until_ = MonotonicTime{run.ended().ns + kRest * (run.ended().ns - run.began().ns)};
    }
    const flamed_off_cpu_counts counts = run.counts();
    state_.counts.run_ns += counts.run_ns;
    state_.counts.waits += counts.waits;
    state_.counts.stacks += counts.stacks;
    state_.counts.no_room += counts.no_room;
    state_.counts.lost_threads += counts.lost_threads;
    state_.is_measuring = false;
    state_.problem = run.why_ended();
    measuring_.reset();
  }
  ended_.notify_all();
  if (!run.why_ended().empty()) spdlog::warn("waits were not measured to the end: {}", run.why_ended());
}

void OffCpuCapture::cancel(WallTime asked) {
  const std::lock_guard guard(mutex_);
  if (measuring_ == asked) is_cancelled_ = true;
  if (outcome_ && outcome_->first == asked) outcome_.reset();
}

std::optional<OffCpuCapture::Outcome> OffCpuCapture::take_outcome(WallTime asked) {
  std::unique_lock lock(mutex_);
  ended_.wait_for(lock, kLongestEnd, [&] { return measuring_ != asked; });
  if (!outcome_ || outcome_->first != asked) return std::nullopt;
  std::optional<Outcome> outcome(std::move(outcome_->second));
  outcome_.reset();
  return outcome;
}

void OffCpuCapture::take(EventBatch& batch) {
  const std::lock_guard guard(mutex_);
  for (const EventBatch::Event& event : records_.events()) {
    batch.append({event.kind, false, event.time, records_.body(event), event.cpu});
  }
  records_.clear();
}

bool OffCpuCapture::is_cancelled() const {
  const std::lock_guard guard(mutex_);
  return is_cancelled_;
}

OffCpuCapture::State OffCpuCapture::state() const {
  const std::lock_guard guard(mutex_);
  return state_;
}

}  // namespace flamed::daemon
