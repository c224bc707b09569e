// SPDX-License-Identifier: Apache-2.0
#include "daemon/sampler/run_delay.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <utility>

#include "daemon/machine/cpu_time.h"

namespace flamed::daemon {

std::optional<std::int64_t> RunDelay::since_last() {
  const std::optional<std::int64_t> now_ns = read();
  const std::optional<std::int64_t> then_ns = std::exchange(waited_ns_, now_ns);
  return now_ns && then_ns ? std::optional(*now_ns - *then_ns) : std::nullopt;
}

std::optional<std::int64_t> RunDelay::read() {
  if (!sched_stat_) sched_stat_.reset(::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC));
  std::array<char, 64> text{};
  const ssize_t size = sched_stat_ ? ::pread(sched_stat_.get(), text.data(), text.size(), 0) : 0;
  if (size <= 0) return std::nullopt;
  return parse_run_delay_ns({text.data(), static_cast<std::size_t>(size)});
}

}  // namespace flamed::daemon
