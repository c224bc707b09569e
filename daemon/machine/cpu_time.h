// SPDX-License-Identifier: Apache-2.0
//
// How busy the machine's CPUs are, by the kernel's own accounting.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace flamed::daemon {

/// Time that all CPUs together have spent running threads: user, nice and system of the first line of /proc/stat
/// (proc(5)), in nanoseconds. Interrupts are left out, because they may come while a CPU is idle, which is not sampled:
/// a machine that does nothing but route packets is no machine whose sampling has stalled. The kernel counts in steps
/// of 10 ms.
///
/// Beside samples: they too are taken only where a thread has the CPU. Not idle, and not iowait. Time of guests is part
/// of user, and samples of it are taken. Two things are left out here while their samples are taken, so that samples of
/// a machine with much of them stand for somewhat more than this: what interrupts (irq, softirq) take from a running
/// thread, and the short ones of the times in which the hypervisor has the CPU (steal), because a timer that came due
/// meanwhile goes off right afterwards, in the thread that waited.
Result<std::int64_t> parse_busy_ns(std::string_view proc_stat);
Result<std::int64_t> read_busy_ns(const std::string& proc_stat_path = "/proc/stat");

/// The same of each CPU that is online: its number and its time, in ascending order of numbers. Empty where the text is
/// of another form.
std::vector<std::pair<int, std::int64_t>> parse_busy_ns_by_cpu(std::string_view proc_stat);

/// Time that all CPUs together have been idle, without waiting for I/O: the second number of /proc/uptime (proc(5)),
/// which the kernel gives in hundredths of a second. Empty where the text is of another form. CPUs that are not online
/// stand still in it.
std::optional<std::int64_t> parse_idle_ns(std::string_view proc_uptime);

/// How long a thread has waited for a CPU, from its /proc/PID/task/TID/schedstat: the second number
/// (Documentation/scheduler/sched-stats.rst of the kernel).
std::optional<std::int64_t> parse_run_delay_ns(std::string_view schedstat);

}  // namespace flamed::daemon
