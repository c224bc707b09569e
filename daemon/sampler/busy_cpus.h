// SPDX-License-Identifier: Apache-2.0
//
// BusyCpus: CPU time used on each CPU in the kernel's own accounts, read as rarely as possible.
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
  /// CPU number and nanoseconds since boot, in ascending order of numbers. See parse_busy_ns().
  using Used = std::vector<std::pair<int, std::int64_t>>;

  /// Reads again only when all CPUs together have used `grain_ns` since. `proc` is where procfs is mounted.
  BusyCpus(std::int64_t grain_ns, const Clock& clock, const std::string& proc = "/proc");

  /// For all `online` CPUs. Empty if /proc can't be read or has another form. Valid until the next call.
  const Used& read(std::size_t online);

 private:
  /// The total idle time of `cpus` CPUs.
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
