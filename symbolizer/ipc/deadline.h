// SPDX-License-Identifier: Apache-2.0
//
// Deadline: a deadline for poll(2). On the real clock, since the kernel waits.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace flamed::symbolizer {

class Deadline {
 public:
  static Deadline after(std::int64_t ns) { return Deadline(SystemClock().monotonic().ns + ns); }

  [[nodiscard]] std::int64_t left_ns() const {
    return std::max<std::int64_t>(0, at_ns_ - SystemClock().monotonic().ns);
  }
  [[nodiscard]] bool is_over() const { return left_ns() == 0; }
  /// Rounded up, so that poll() doesn't return slightly too early again and again.
  [[nodiscard]] int left_ms() const {
    constexpr std::int64_t kMostMs = 1'000'000;
    return static_cast<int>(std::min(kMostMs, (left_ns() + kNsPerMs - 1) / kNsPerMs));
  }

 private:
  explicit Deadline(std::int64_t at_ns) : at_ns_(at_ns) {}
  std::int64_t at_ns_;
};

}  // namespace flamed::symbolizer
