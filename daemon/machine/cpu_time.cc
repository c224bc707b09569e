// SPDX-License-Identifier: Apache-2.0
#include "daemon/machine/cpu_time.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/handle.h"

namespace flamed::daemon {
namespace {

constexpr std::uint64_t kNsPerUserTick = 10'000'000;  // USER_HZ is 100

template <typename Number>
bool take_number(std::string_view& text, Number& number) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

/// user nice system idle iowait irq softirq steal guest guest_nice
std::optional<std::int64_t> take_busy_ns(std::string_view& fields) {
  std::array<std::uint64_t, 3> ticks{};
  for (std::uint64_t& value : ticks) {
    if (!take_number(fields, value)) return std::nullopt;
  }
  const auto& [user, nice, system] = ticks;
  // Wraps around after 292 years of CPU time (104 days of 1,024 busy CPUs); differences stay correct.
  return static_cast<std::int64_t>((user + nice + system) * kNsPerUserTick);
}

}  // namespace

std::optional<std::int64_t> parse_run_delay_ns(std::string_view schedstat) {
  std::int64_t ran_ns = 0;
  std::int64_t waited_ns = 0;
  if (!take_number(schedstat, ran_ns) || !take_number(schedstat, waited_ns)) return std::nullopt;
  return waited_ns;
}

Result<std::int64_t> parse_busy_ns(std::string_view proc_stat) {
  constexpr std::string_view kHead = "cpu ";
  const Error error("the first line of /proc/stat is not of the known form");
  if (!proc_stat.starts_with(kHead)) return error;
  proc_stat.remove_prefix(kHead.size());
  const std::optional<std::int64_t> busy = take_busy_ns(proc_stat);
  if (!busy) return error;
  return *busy;
}

std::vector<std::pair<int, std::int64_t>> parse_busy_ns_by_cpu(std::string_view proc_stat) {
  constexpr std::string_view kHead = "cpu";
  std::vector<std::pair<int, std::int64_t>> cpus;
  while (proc_stat.starts_with(kHead)) {
    const std::size_t end = proc_stat.find('\n');
    if (end == std::string_view::npos) break;  // truncated: the numbers may be, too
    std::string_view line = proc_stat.substr(kHead.size(), end - kHead.size());
    proc_stat.remove_prefix(end + 1);
    if (line.starts_with(' ')) continue;  // the sum over all CPUs
    int cpu = 0;
    if (!take_number(line, cpu)) break;
    const std::optional<std::int64_t> busy = take_busy_ns(line);
    if (!busy) break;
    cpus.emplace_back(cpu, *busy);
  }
  return cpus;
}

std::optional<std::int64_t> parse_idle_ns(std::string_view proc_uptime) {
  const std::size_t space = proc_uptime.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  proc_uptime.remove_prefix(space);
  std::int64_t seconds = 0;
  if (!take_number(proc_uptime, seconds) || proc_uptime.size() < 3 || proc_uptime[0] != '.') return std::nullopt;
  // Always two digits.
  std::string_view fraction = proc_uptime.substr(1, 2);
  std::int64_t hundredths = 0;
  if (!take_number(fraction, hundredths) || !fraction.empty() || seconds < 0 || hundredths < 0) return std::nullopt;
  return seconds * kNsPerSecond + hundredths * (kNsPerSecond / 100);
}

Result<std::int64_t> read_busy_ns(const std::string& proc_stat_path) {
  // Only the first line is needed, and it is shorter than this.
  const Fd file(::open(proc_stat_path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return Error::from_errno("open " + proc_stat_path);
  std::array<char, 512> text{};
  const ssize_t size = ::read(file.get(), text.data(), text.size());
  if (size <= 0) return Error::from_errno("read " + proc_stat_path);
  return parse_busy_ns({text.data(), static_cast<std::size_t>(size)});
}

}  // namespace flamed::daemon
