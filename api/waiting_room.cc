// SPDX-License-Identifier: Apache-2.0
#include "api/waiting_room.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/thread.h"

namespace flamed::api {
namespace {

/// When all places before the HTTP threads are taken.
constexpr std::chrono::milliseconds kRetry{50};

}  // namespace

WaitingRoom::WaitingRoom(Fd wake, int stop, std::function<bool(WaitingClient&&)> hand_over)
    : wake_(std::move(wake)), stop_(stop), hand_over_(std::move(hand_over)) {
  thread_ = start_thread("http/waiting", [this](const std::stop_token&) { run(); });
}

bool WaitingRoom::try_enter(WaitingClient&& client) {
  {
    const std::lock_guard lock(mutex_);
    if (inside_ >= kMostClients) return false;
    ++inside_;
    entered_.push_back(std::move(client));
  }
  static_cast<void>(::eventfd_write(wake_.get(), 1));
  return true;
}

void WaitingRoom::run() {
  std::vector<pollfd> watched;
  while (true) {
    watched.assign({{stop_, POLLIN, 0}, {wake_.get(), POLLIN, 0}});
    // What a client sends ahead may wait; only that it goes away is looked for.
    for (const WaitingClient& client : clients_) watched.push_back({client.connection.descriptor(), POLLRDHUP, 0});
    static_cast<void>(::poll(watched.data(), watched.size(), patience_ms()));
    if (watched[0].revents != 0) return;

    std::size_t gone = 0;
    for (std::size_t i = clients_.size(); i-- > 0;) {
      if (watched[i + 2].revents == 0) continue;
      clients_.erase(clients_.begin() + static_cast<std::ptrdiff_t>(i));
      ++gone;
    }
    if (watched[1].revents != 0) {
      eventfd_t value = 0;
      static_cast<void>(::eventfd_read(wake_.get(), &value));
    }
    {
      const std::lock_guard lock(mutex_);
      inside_ -= gone;
      std::move(entered_.begin(), entered_.end(), std::back_inserter(clients_));
      entered_.clear();
    }
    hand_over_due();
  }
}

int WaitingRoom::patience_ms() const {
  if (clients_.empty()) return -1;
  const auto next =
      std::min_element(clients_.begin(), clients_.end(), [](const auto& a, const auto& b) { return a.due < b.due; });
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next->due - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 60'000));
}

void WaitingRoom::hand_over_due() {
  const auto now = std::chrono::steady_clock::now();
  for (auto client = clients_.begin(); client != clients_.end();) {
    if (client->due > now) {
      ++client;
    } else if (!hand_over_(std::move(*client))) {
      client->due = now + kRetry;
      ++client;
    } else {
      client = clients_.erase(client);
      const std::lock_guard lock(mutex_);
      --inside_;
    }
  }
}

}  // namespace flamed::api
