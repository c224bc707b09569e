// SPDX-License-Identifier: Apache-2.0
#include "daemon/sampler/busy_cpus.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>

#include "daemon/machine/cpu_time.h"

namespace flamed::daemon {
namespace {

/// Only the lines of CPUs in /proc/stat are needed, which follow the first line with their sum.
constexpr std::size_t kStatBytesPerCpu = 128;

}  // namespace

BusyCpus::BusyCpus(std::int64_t grain_ns, const Clock& clock, const std::string& proc)
    : grain_ns_(grain_ns),
      clock_(clock),
      stat_(::open((proc + "/stat").c_str(), O_RDONLY | O_CLOEXEC)),
      uptime_(::open((proc + "/uptime").c_str(), O_RDONLY | O_CLOEXEC)) {}

/// The kernel sums all interrupts for /proc/stat: on an idle machine that was a good part of flamed's cost.
/// /proc/uptime is cheap, and enough while the CPUs are nearly idle.
const BusyCpus::Used& BusyCpus::read(std::size_t online) {
  const std::optional<Idle> idle = read_idle(online);
  if (is_recent(idle)) return used_;
  text_.resize((online + 2) * kStatBytesPerCpu);
  const ssize_t size = ::pread(stat_.get(), text_.data(), text_.size(), 0);
  used_.clear();
  if (size > 0) used_ = parse_busy_ns_by_cpu({text_.data(), static_cast<std::size_t>(size)});
  idle_then_ = used_.empty() ? std::nullopt : idle;
  return used_;
}

bool BusyCpus::is_recent(const std::optional<Idle>& idle) const {
  if (!idle || !idle_then_ || idle->cpus != idle_then_->cpus) return false;
  const std::int64_t passed_ns = (idle->at.ns - idle_then_->at.ns) * static_cast<std::int64_t>(idle->cpus);
  const std::int64_t used_ns = passed_ns - (idle->ns - idle_then_->ns);
  return used_ns > -grain_ns_ && used_ns < grain_ns_;
}

std::optional<BusyCpus::Idle> BusyCpus::read_idle(std::size_t cpus) const {
  std::array<char, 64> text{};
  const ssize_t size = ::pread(uptime_.get(), text.data(), text.size(), 0);
  if (size <= 0) return std::nullopt;
  const std::optional<std::int64_t> ns = parse_idle_ns({text.data(), static_cast<std::size_t>(size)});
  if (!ns) return std::nullopt;
  return Idle{clock_.monotonic(), *ns, cpus};
}

}  // namespace flamed::daemon
