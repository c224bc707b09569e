// SPDX-License-Identifier: Apache-2.0
//
// OffCpuCapture: the exact mode of waiting, for some processes and some seconds, one at a time. The program at the
// switch is attached when somebody asks, and detached at the end of the time, when it costs too much, when who asked
// has gone, or when the daemon stops. Stacks go to ingest with the batches of the reader; times are told at the end.
//
// All functions are for any thread. While it measures it has a thread of its own. The clock and the slices must outlive
// it.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "bpf/off_cpu.h"
#include "daemon/sampler/event_batch.h"
#include "daemon/waits/off_cpu_program.h"
#include "daemon/waits/off_cpu_sums.h"
#include "daemon/waits/stack_helper.h"
#include "daemon/waits/visit_slices.h"

namespace flamed::daemon {

class OffCpuCapture {
 public:
  /// Of the CPU time of all CPUs.
  static constexpr double kMostShare = 0.02;
  /// Users who do not see everything may not ask again for so many times as long as it took.
  static constexpr std::int64_t kRest = 4;

  /// Of processes: pids can have belonged to earlier ones.
  static constexpr std::size_t kMostProcessesKnown = 1024;

  struct Hooks {
    std::function<void()> wake_reader;  ///< has take() called soon
    std::function<void()> forget;       ///< a new one begins: stacks of the one before are not needed any more
  };
  /// `slices`: for user stacks; null: there are none.
  OffCpuCapture(const Clock& clock, StackSlices* slices, Hooks hooks);
  ~OffCpuCapture();
  OffCpuCapture(const OffCpuCapture&) = delete;
  OffCpuCapture& operator=(const OffCpuCapture&) = delete;

  struct Request {
    std::vector<std::int32_t> processes;
    std::int64_t length_ns = 0;
    WallTime asked{};         ///< names the capture
    bool is_limited = false;  ///< see kRest
    bool with_wakers = false;
    std::optional<std::uint32_t> only_user{};  ///< who may not know of wakers of other users
  };
  /// Measures from now on. EBUSY: not now, another time. Other errors are the kernel's.
  Status begin(const Request& request);
  /// Who asked does not wait any more. Does not wait.
  void cancel(WallTime asked);

  /// Who ended a wait.
  struct Waker {
    std::uint32_t tid = 0;  ///< the thread that ran then, perhaps in an interrupt; 0: none did
    std::uint32_t tgid = 0;
    std::uint32_t owner = FLAMED_NO_OWNER;
    std::string comm{};
    std::uint32_t stack = 0;  ///< in Outcome::waker_stacks
  };
  /// Wakers, and different stacks of these, that are kept; of further waits they are not told.
  static constexpr std::size_t kMostWakers = 100'000;
  static constexpr std::size_t kMostWakerStacks = 10'000;

  struct Outcome {
    std::vector<std::int32_t> processes;
    MonotonicTime began, ended;
    std::vector<OffCpuTime> times;
    std::vector<std::string> warnings{};  ///< sentences
    /// By tid and number, as OffCpuTime has them; of waits whose stacks were taken.
    std::map<std::pair<std::uint32_t, std::uint64_t>, Waker> wakers{};
    std::vector<std::vector<std::uint64_t>> waker_stacks{};  ///< kernel addresses, innermost first
    std::optional<std::uint32_t> only_user{};                ///< as asked
  };
  /// Waits for its end, if that is near. Empty: there is no such capture.
  std::optional<Outcome> take_outcome(WallTime asked);

  /// Appends the records of stacks since the last call.
  void take(EventBatch& batch);

  struct State {
    bool is_measuring = false;
    std::string problem;  ///< why the last one did not begin, or ended early; empty: it did not
    std::uint64_t captures = 0;
    flamed_off_cpu_counts counts{};  ///< of those that have ended
  };
  [[nodiscard]] State state() const;

 private:
  class Run;
  void publish(Run& run);
  [[nodiscard]] bool is_cancelled() const;

  const Clock& clock_;
  std::optional<VisitSlices> slices_;  ///< empty: no user stacks. Written to by the thread that measures
  const Hooks hooks_;
  std::mutex beginning_;      ///< held while one begins
  mutable std::mutex mutex_;  ///< guards the members below
  std::condition_variable ended_;
  EventBatch records_;
  std::optional<WallTime> measuring_{};
  bool is_cancelled_ = false;  ///< the one that is being measured
  std::optional<MonotonicTime> rests_until_{};
  std::optional<std::pair<WallTime, Outcome>> outcome_{};
  State state_;
  std::jthread thread_;
};

}  // namespace flamed::daemon
