// SPDX-License-Identifier: Apache-2.0
//
// CPU time in the kernel's own accounts.
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
/// on a machine that only routes packets, sampling has not stalled. The kernel counts in steps of 10 ms.
///
/// Compared with samples: these, too, are taken only while a thread has the CPU, so not in idle and iowait. Guest time
/// is part of user, and is sampled. Two kinds of time are sampled but left out here, so samples of a machine with much
/// of them stand for somewhat more: interrupts (irq, softirq) during a running thread, and short times in which the
/// hypervisor has the CPU (steal), because a timer that came due meanwhile fires right afterwards, in the thread that
/// waited.
Result<std::int64_t> parse_busy_ns(std::string_view proc_stat);
Result<std::int64_t> read_busy_ns(const std::string& proc_stat_path = "/proc/stat");

/// The same of each CPU that is online: its number and its time, in ascending order of numbers. Empty if the text has
/// another form.
std::vector<std::pair<int, std::int64_t>> parse_busy_ns_by_cpu(std::string_view proc_stat);

/// Time that all CPUs together have been idle, without waiting for I/O: the second number of /proc/uptime (proc(5)),
/// which the kernel gives in hundredths of a second. Empty if the text has another form. CPUs that are offline don't
/// count in it.
std::optional<std::int64_t> parse_idle_ns(std::string_view proc_uptime);

/// The time that a thread has waited for a CPU, from its /proc/PID/task/TID/schedstat: the second number
/// (Documentation/scheduler/sched-stats.rst of the kernel).
std::optional<std::int64_t> parse_run_delay_ns(std::string_view schedstat);

}  // namespace flamed::daemon
