// SPDX-License-Identifier: Apache-2.0
//
// WakeUps: what ends the reader's wait before its time: a perf buffer that is half full, CPUs that come or go, notices
// of the kernel program, and requests.
//
// Belongs to the reader thread, but for wake().
#pragma once

#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/handle.h"
#include "base/result.h"
#include "daemon/sampler/cpu_news.h"

namespace flamed::daemon {

/// What a wait has brought.
struct WakeUp {
  bool noticed = false;           ///< the ring of notices can be read
  bool woken = false;             ///< by wake()
  std::vector<int> full_buffers;  ///< at least half full, by CPU
  bool some_buffer_full = false;  ///< likewise, and it is not known which
  std::vector<int> changed_cpus;  ///< came or went
  bool lost_cpus = false;         ///< any may have: the kernel had more to tell than there was room for
  std::vector<int> dead_buffers;  ///< by CPU; they wake nobody any more
};

class WakeUps {
 public:
  /// `notices` is readable when the kernel program has met what its tables do not know. Where the kernel does not tell
  /// of CPUs the log says so.
  static Result<WakeUps> open(int notices, const Clock& clock);

  /// `event` is readable when the perf buffer of the CPU is half full. To be called again for another one.
  Status watch_buffer(int cpu, int event);

  /// Waits up to `timeout_ms`. Notices wake nobody before `notices_from`.
  WakeUp wait(int timeout_ms, MonotonicTime notices_from);

  /// Ends a wait that is under way or the next one. Any thread.
  void wake();

  /// Does the kernel tell of CPUs that come and go?
  [[nodiscard]] bool hears_of_cpus() const { return cpu_news_.has_value(); }

 private:
  explicit WakeUps(const Clock& clock) : clock_(&clock) {}
  void listen_for_cpus();
  /// Waits for anything but notices. False: nothing came.
  bool take_events(int timeout_ms, WakeUp& brought);

  const Clock* clock_;
  Fd epoll_;              ///< everything but notices
  Fd epoll_and_notices_;  ///< holds epoll_
  Fd wake_up_;
  std::optional<CpuNews> cpu_news_{};
};

}  // namespace flamed::daemon
