// SPDX-License-Identifier: Apache-2.0
//
// BusyCpus: how much CPU time was used on each CPU, by the kernel's own accounting, read as seldom as will do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/handle.h"

namespace flamed::daemon {

class BusyCpus {
 public:
  /// Number of the CPU, and nanoseconds since boot; in ascending order of numbers. See parse_busy_ns().
  using Used = std::vector<std::pair<int, std::int64_t>>;

  /// While all CPUs together have used less than `grain_ns` since, what was read before is good enough. `proc` is where
  /// procfs is mounted.
  BusyCpus(std::int64_t grain_ns, const Clock& clock, const std::string& proc = "/proc");

  /// Of the `online` CPUs that there are. Empty where /proc can't be read or is of another form. Good until the next
  /// call.
  const Used& read(std::size_t online);

 private:
  /// How long `cpus` CPUs together have been idle.
  struct Idle {
    MonotonicTime at;
    std::int64_t ns = 0;
    std::size_t cpus = 0;
  };
  [[nodiscard]] std::optional<Idle> read_idle(std::size_t cpus) const;
  [[nodiscard]] bool is_recent(const std::optional<Idle>& idle) const;

  const std::int64_t grain_ns_;
  const Clock& clock_;
  const Fd stat_, uptime_;
  std::vector<char> text_;
  Used used_;
  std::optional<Idle> idle_then_;  ///< when used_ was read
};

}  // namespace flamed::daemon
