// SPDX-License-Identifier: Apache-2.0
#include "daemon/sampler/wake_ups.h"

#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace flamed::daemon {
namespace {

/// For the other descriptors, in epoll's user data, which otherwise has a CPU's number.
constexpr int kWakeUp = -1;
constexpr int kCpuNews = -2;
constexpr int kNotices = -3;
constexpr int kAllElse = -4;

Status watch(const Fd& epoll, int fd, int name) {
  epoll_event interest{};
  interest.events = EPOLLIN;
  interest.data.u64 =
      static_cast<std::uint64_t>(static_cast<std::uint32_t>(fd)) << 32 | static_cast<std::uint32_t>(name);
  if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &interest) != 0) return Error::from_errno("epoll_ctl");
  return {};
}

int name_of(const epoll_event& event) { return static_cast<int>(static_cast<std::uint32_t>(event.data.u64)); }
int fd_of(const epoll_event& event) { return static_cast<int>(event.data.u64 >> 32); }

}  // namespace

Result<WakeUps> WakeUps::open(int notices, const Clock& clock) {
  WakeUps opened(clock);
  for (Fd* epoll : {&opened.epoll_, &opened.epoll_and_notices_}) {
    epoll->reset(::epoll_create1(EPOLL_CLOEXEC));
    if (!*epoll) return Error::from_errno("epoll_create1");
  }
  opened.wake_up_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!opened.wake_up_) return Error::from_errno("eventfd");
  if (Status watched = watch(opened.epoll_and_notices_, opened.epoll_.get(), kAllElse); !watched)
    return watched.error();
  if (Status watched = watch(opened.epoll_and_notices_, notices, kNotices); !watched) return watched.error();
  if (Status watched = watch(opened.epoll_, opened.wake_up_.get(), kWakeUp); !watched) return watched.error();
  opened.listen_for_cpus();
  return opened;
}

Status WakeUps::watch_buffer(int cpu, int event) { return watch(epoll_, event, cpu); }

WakeUp WakeUps::wait(int timeout_ms, MonotonicTime notices_from) {
  WakeUp brought;
  const std::int64_t deaf_ns = notices_from.ns - clock_->monotonic().ns;
  if (deaf_ns > 0) {
    const int deaf_ms = static_cast<int>(std::min<std::int64_t>(deaf_ns / kNsPerMs + 1, timeout_ms));
    if (take_events(deaf_ms, brought) || deaf_ms == timeout_ms) return brought;
    timeout_ms -= deaf_ms;
  }
  epoll_event event{};
  if (::epoll_wait(epoll_and_notices_.get(), &event, 1, timeout_ms) <= 0) return brought;
  if (name_of(event) == kNotices)
    brought.noticed = true;
  else if (!take_events(0, brought))
    // A perf buffer reports only once that it is half full (perf_poll()), and it did so to the outer epoll set.
    brought.some_buffer_full = true;
  return brought;
}

void WakeUps::wake() {
  const std::uint64_t one = 1;
  // It can only fail because the counter is full, and then the wait ends anyway.
  static_cast<void>(::write(wake_up_.get(), &one, sizeof(one)) != sizeof(one));
}

void WakeUps::listen_for_cpus() {
  Result<CpuNews> news = CpuNews::open();
  if (!news) {
    spdlog::info("the kernel does not report when CPUs come and go, so they are checked every second: {}",
                 news.error().message());
    return;
  }
  if (const Status watched = watch(epoll_, news->fd(), kCpuNews); !watched) {
    spdlog::info("events of CPUs can't be read, so CPUs are checked every second: {}", watched.error().message());
    return;
  }
  cpu_news_ = std::move(news).value();
}

bool WakeUps::take_events(int timeout_ms, WakeUp& brought) {
  std::array<epoll_event, 16> events{};
  const int ready = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout_ms);
  for (int i = 0; i < ready; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    const int name = name_of(event);
    if (name == kCpuNews) {
      if (std::optional<std::vector<int>> changed = cpu_news_->take())
        brought.changed_cpus = std::move(changed).value();
      else
        brought.lost_cpus = true;
    } else if (name == kWakeUp) {
      std::uint64_t count = 0;
      static_cast<void>(::read(wake_up_.get(), &count, sizeof(count)) != sizeof(count));
      brought.woken = true;
    } else if ((event.events & (EPOLLHUP | EPOLLERR)) != 0) {
      // A perf buffer with a dead event stays "ready" forever.
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd_of(event), nullptr);
      brought.dead_buffers.push_back(name);
    } else {
      brought.full_buffers.push_back(name);
    }
  }
  return ready > 0;
}

}  // namespace flamed::daemon
