// SPDX-License-Identifier: Apache-2.0
#include "daemon/supervisor.h"

#include <signal.h>
#include <spdlog/spdlog.h>
#include <systemd/sd-daemon.h>

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <map>
#include <optional>
#include <utility>

#include "base/heap.h"
#include "base/result.h"
#include "base/units.h"
#include "daemon/config/log.h"
#include "daemon/config/reload.h"
#include "daemon/machine/cpu_time.h"
#include "daemon/machine/memory_watch.h"
#include "store/ring/user_shares.h"

namespace flamed::daemon {
namespace {

/// Until the first drain, which comes soon (reader.cc): flamed is not ready before, and this loop checks it.
constexpr std::int64_t kFirstTickNs = 100 * kNsPerMs;
/// While memory is being freed.
constexpr std::int64_t kShortTickNs = 2 * kNsPerSecond;
/// As often as the reader drains (reader.cc).
constexpr std::int64_t kTickNs = 5 * kNsPerSecond;
/// While there are hardly any samples, so that memory does not grow. The watchdog must be fed once in 30 s.
constexpr std::int64_t kIdleTickNs = 10 * kNsPerSecond;
constexpr std::uint64_t kFewSamples = 20;  ///< in one tick

/// Frees memory before the control group reaches its limit.
class MemoryKeeper {
 public:
  MemoryKeeper(store::Store& store, store::KeptIndex& index) : store_(store), index_(index) {}

  /// True while memory is short.
  bool look(MonotonicTime now) {
    // Freed memory stays with the allocator, and so in the group, until it is returned.
    if (index_.drop_unused(now)) give_back_freed_memory();
    const std::uint64_t all = store_.stats().given_back_bytes;
    if (const std::uint64_t given_back = all - std::exchange(given_back_, all); given_back != 0) {
      give_back_freed_memory();
      spdlog::warn("memory is short: {} KiB of stored samples were freed", given_back >> 10);
    }
    const std::optional<MemoryWatch::Reading> reading = watch_.read();
    if (!reading) return false;
    const std::size_t bytes = MemoryWatch::to_give_back(*reading);
    if (bytes == 0) return false;
    // First the cache of queries, which can be rebuilt.
    const std::size_t kept = index_.used_bytes();
    const bool is_freed = index_.drop();
    if (is_freed) give_back_freed_memory();
    if (!is_freed || kept < bytes) store_.give_back(is_freed ? bytes - kept : bytes);
    return true;
  }

 private:
  store::Store& store_;
  store::KeptIndex& index_;
  const MemoryWatch watch_{own_memory_group()};
  std::uint64_t given_back_ = 0;
};

/// Logs once when TCP clients become unknown users, and once when they are known again.
class PeersLog {
 public:
  explicit PeersLog(const api::Server& server) : server_(server) {}

  void look() {
    const Status peers = server_.peers();
    if (peers.ok() == known_) return;
    known_ = peers.ok();
    if (known_)
      spdlog::info("the kernel says again who owns connections");
    else
      spdlog::warn("{}", peers.error().message());
  }

 private:
  const api::Server& server_;
  bool known_ = true;
};

/// Logs which users have more than a share of the store, again once an hour.
class SharesLog {
 public:
  explicit SharesLog(const store::Store& store) : store_(store) {}

  void look(MonotonicTime now) {
    const store::StoreStats stats = store_.stats();
    for (const std::uint32_t user : stats.above_share) {
      const auto told = told_.find(user);
      if (told != told_.end() && now.ns - told->second.ns < kAgainNs) continue;
      told_[user] = now;
      spdlog::warn(
          "stacks of {} take more than a share of memory_budget ({}) while other users need room: the oldest of them "
          "are "
          "dropped, and new ones if that is not enough; a larger memory_budget keeps more",
          store::text_of_user(user), format_size(stats.budget_bytes));
    }
    std::erase_if(told_, [&](const auto& entry) { return now.ns - entry.second.ns >= 2 * kAgainNs; });
  }

 private:
  static constexpr std::int64_t kAgainNs = 60 * kNsPerMinute;
  const store::Store& store_;
  std::map<std::uint32_t, MonotonicTime> told_;
};

}  // namespace

VitalSigns read_vital_signs(const Clock& clock, const SamplerFigures& sampling, const Reader& reader) {
  return {clock.monotonic(), reader.last_drain(), sampling.taken(), std::nullopt, sampling.frequency_hz()};
}

Supervisor::Supervisor(const Parts& parts, Config config, std::span<const char* const> arguments)
    : parts_(parts), config_(std::move(config)), arguments_(arguments) {}

void Supervisor::run(const sigset_t& signals) {
  MemoryKeeper memory(parts_.store, parts_.index);
  PeersLog peers(parts_.server);
  SharesLog shares(parts_.store);
  bool memory_is_short = false;
  for (;;) {
    peers.look();
    const std::int64_t tick_ns = !parts_.vitals.verdict().has_drained ? kFirstTickNs
                                 : memory_is_short                    ? kShortTickNs
                                 : is_idle_                           ? kIdleTickNs
                                                                      : kTickNs;
    const timespec period{tick_ns / kNsPerSecond, tick_ns % kNsPerSecond};
    const int signal = ::sigtimedwait(&signals, nullptr, &period);
    if (signal == SIGTERM || signal == SIGINT) return;
    if (signal == SIGHUP) reload();
    memory_is_short = memory.look(parts_.clock.monotonic());
    shares.look(parts_.clock.monotonic());
    parts_.pressure.look();
    parts_.module_reader.look_after();
    judge();
  }
}

void Supervisor::reload() {
  ::sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%lld", static_cast<long long>(parts_.clock.monotonic().ns / kNsPerUs));
  const Result<Reload> again = read_again(arguments_, config_);
  if (again) {
    config_ = again->config;
    set_log_level(config_.log_level);
    parts_.budget.set_budget({config_.cpu_budget, where_set(config_, "cpu_budget")});
    spdlog::info("the configuration was read again: {}", describe(*again));
  } else {
    spdlog::error("the configuration stays as it was: {}", again.error().message());
  }
  ::sd_notify(0, "READY=1");
}

void Supervisor::judge() {
  VitalSigns signs = read_vital_signs(parts_.clock, parts_.sampling, parts_.reader);
  is_idle_ = signs.taken - std::exchange(taken_, signs.taken) < kFewSamples;
  if (parts_.vitals.wants_busy(signs.taken)) {
    if (const Result<std::int64_t> busy_ns = read_busy_ns()) signs.busy_ns = *busy_ns;
  }
  parts_.vitals.tick(signs);
  if (parts_.vitals.well())
    ::sd_notify(0, "WATCHDOG=1");
  else
    spdlog::error("{}", parts_.vitals.verdict().problem);
}

}  // namespace flamed::daemon
