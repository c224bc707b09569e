// SPDX-License-Identifier: Apache-2.0
//
// Vitals: whether flamed works. Decides whether the watchdog is fed and what /healthz says.
//
// tick() belongs to the main thread, the rest to any thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"

namespace flamed::daemon {

/// The inputs of a judgement, read at one moment.
struct VitalSigns {
  MonotonicTime now;
  MonotonicTime last_drain;               ///< of the reader
  std::uint64_t taken = 0;                ///< samples since start
  std::optional<std::int64_t> busy_ns{};  ///< CPU time used on the machine since boot
  double frequency_hz = 99;               ///< of sampling, in force
};

class Vitals {
 public:
  /// The shortest time of a judgement.
  static constexpr std::int64_t kWindowNs = 10 * kNsPerSecond;
  /// The reader drains every 5 s at least; this long without a drain means that it hangs.
  static constexpr std::int64_t kReaderDeadlineNs = 10 * kNsPerSecond;

  explicit Vitals(VitalSigns first);

  /// Judging needs the machine's accounts only if no sample came since the last tick. Reading them is the most
  /// expensive part.
  [[nodiscard]] bool wants_busy(std::uint64_t taken) const;
  void tick(const VitalSigns& signs);

  struct Verdict {
    bool reader_alive = true;
    bool sampling = true;      ///< samples flow, or the machine is idle
    bool has_drained = false;  ///< at least once since start
    std::string problem;       ///< a sentence if something is wrong
  };
  [[nodiscard]] Verdict verdict() const;
  [[nodiscard]] bool well() const;

 private:
  mutable std::mutex mutex_;
  VitalSigns window_;  ///< where the current window began
  VitalSigns latest_;
  bool sampling_ = true;
  bool has_drained_ = false;
  std::string sampling_problem_;
};

}  // namespace flamed::daemon
