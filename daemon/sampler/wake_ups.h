// SPDX-License-Identifier: Apache-2.0
//
// WakeUps: the events that end the reader's wait early: a half full perf buffer, CPUs that come or go, notices of the
// kernel program, and requests.
//
// Belongs to the reader thread, except wake().
#pragma once

#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/handle.h"
#include "base/result.h"
#include "daemon/sampler/cpu_news.h"

namespace flamed::daemon {

/// The result of a wait.
struct WakeUp {
  bool noticed = false;           ///< the ring of notices can be read
  bool woken = false;             ///< by wake()
  std::vector<int> full_buffers;  ///< at least half full, by CPU
  bool some_buffer_full = false;  ///< likewise, of an unknown CPU
  std::vector<int> changed_cpus;  ///< came or went
  bool lost_cpus = false;         ///< messages were lost: any CPU may have come or gone
  std::vector<int> dead_buffers;  ///< by CPU; they don't wake the reader any more
};

class WakeUps {
 public:
  /// `notices` is readable when the kernel program has missed table entries. If the kernel does not report CPUs, the
  /// log says so.
  static Result<WakeUps> open(int notices, const Clock& clock);

  /// `event` is readable when the perf buffer of the CPU is half full. Call it again for a new event.
  Status watch_buffer(int cpu, int event);

  /// Waits up to `timeout_ms`. Notices don't end the wait before `notices_from`.
  WakeUp wait(int timeout_ms, MonotonicTime notices_from);

  /// Ends a wait that is under way or the next one. Any thread.
  void wake();

  /// Does the kernel report CPUs that come and go?
  [[nodiscard]] bool hears_of_cpus() const { return cpu_news_.has_value(); }

 private:
  explicit WakeUps(const Clock& clock) : clock_(&clock) {}
  void listen_for_cpus();
  /// Waits for anything but notices. False: timeout.
  bool take_events(int timeout_ms, WakeUp& brought);

  const Clock* clock_;
  Fd epoll_;              ///< everything but notices
  Fd epoll_and_notices_;  ///< holds epoll_
  Fd wake_up_;
  std::optional<CpuNews> cpu_news_{};
};

}  // namespace flamed::daemon
