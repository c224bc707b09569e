// SPDX-License-Identifier: Apache-2.0
#include "daemon/sampler/perf_event.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>

namespace flamed::daemon {
namespace {

/// At 100 Hz, twice.
constexpr std::chrono::milliseconds kSlowestTick{20};

std::optional<std::uint64_t> running_ns(int event) {
  struct {
    std::uint64_t value, running_ns;
  } reading{};
  if (::read(event, &reading, sizeof(reading)) != sizeof(reading)) return std::nullopt;
  return reading.running_ns;
}

}  // namespace

Result<Fd> open_perf_event(const perf_event_attr& attributes, int cpu, const char* what) {
  constexpr int kEveryProcess = -1;
  constexpr int kNoGroup = -1;
  perf_event_attr copy = attributes;
  const long fd = ::syscall(SYS_perf_event_open, &copy, kEveryProcess, cpu, kNoGroup, PERF_FLAG_FD_CLOEXEC);
  if (fd < 0) {
    return Error::from_errno(std::string("perf_event_open of the ") + what + " on CPU " + std::to_string(cpu));
  }
  return Fd(static_cast<int>(fd));
}

std::vector<int> find_dead_events(std::span<const int> events) {
  struct Asked {
    int event;
    std::optional<std::uint64_t> before;
  };
  std::vector<Asked> asked;
  for (const int event : events) asked.push_back({event, running_ns(event)});
  const auto drop_running = [&] {
    std::erase_if(asked, [](const Asked& one) {
      const std::optional<std::uint64_t> later = running_ns(one.event);
      return one.before && later && *later > *one.before;
    });
  };
  drop_running();
  if (!asked.empty()) {
    // Where the kernel has no better clock this one advances by the tick.
    std::this_thread::sleep_for(kSlowestTick);
    drop_running();
  }
  std::vector<int> dead;
  for (const Asked& one : asked) dead.push_back(one.event);
  return dead;
}

}  // namespace flamed::daemon
