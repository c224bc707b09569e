// SPDX-License-Identifier: Apache-2.0
#include "daemon/cpu_time.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <string>

#include "base/handle.h"

namespace flamed::daemon {
namespace {

constexpr std::uint64_t kNsPerUserTick = 10'000'000;  // USER_HZ is 100

}  // namespace

Result<std::int64_t> parse_busy_ns(std::string_view proc_stat) {
  // cpu  user nice system idle iowait irq softirq steal guest guest_nice
  constexpr std::string_view kHead = "cpu ";
  const Error error("the first line of /proc/stat is not of the known form");
  if (!proc_stat.starts_with(kHead)) return error;
  proc_stat.remove_prefix(kHead.size());
  std::array<std::uint64_t, 3> ticks{};
  for (std::uint64_t& value : ticks) {
    while (proc_stat.starts_with(' ')) proc_stat.remove_prefix(1);
    const auto [end, parse_error] = std::from_chars(proc_stat.data(), proc_stat.data() + proc_stat.size(), value);
    if (parse_error != std::errc{}) return error;
    proc_stat.remove_prefix(static_cast<std::size_t>(end - proc_stat.data()));
  }
  const auto& [user, nice, system] = ticks;
  // After 292 years of CPU time (1,024 busy CPUs need 104 days) this wraps round; differences stay right.
  return static_cast<std::int64_t>((user + nice + system) * kNsPerUserTick);
}

Result<std::int64_t> read_busy_ns(const std::string& proc_stat_path) {
  // The first line is all that is wanted, and is shorter than this.
  const Fd file(::open(proc_stat_path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return Error::from_errno("open " + proc_stat_path);
  std::array<char, 512> text{};
  const ssize_t size = ::read(file.get(), text.data(), text.size());
  if (size <= 0) return Error::from_errno("read " + proc_stat_path);
  return parse_busy_ns({text.data(), static_cast<std::size_t>(size)});
}

}  // namespace flamed::daemon
