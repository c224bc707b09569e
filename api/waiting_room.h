// SPDX-License-Identifier: Apache-2.0
//
// WaitingRoom: connections whose request asks for samples that are still to come. They wait here, on one thread for all
// of them, and not on the HTTP threads, which answer others meanwhile.
//
// `stop` is a descriptor that becomes readable when the server ends; it must outlive the room.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "api/connection.h"
#include "base/clock.h"
#include "base/handle.h"
#include "base/result.h"

namespace flamed::api {

/// A connection with a request that has been received and not answered.
struct WaitingClient {
  Connection connection;
  WallTime asked;  ///< when the request came
  std::chrono::steady_clock::time_point due;
};

class WaitingRoom {
 public:
  static constexpr std::size_t kMostClients = 64;

  /// `wake` is an eventfd that becomes the room's own. `hand_over` is called on the room's thread with each client that
  /// is due; it leaves the client where it is and returns false when there is no place for it, and is asked again a
  /// little later.
  WaitingRoom(Fd wake, int stop, std::function<bool(WaitingClient&&)> hand_over);

  /// False when the room is full: the client is still the caller's then. A client that goes away is dropped.
  [[nodiscard]] bool try_enter(WaitingClient&& client);

 private:
  void run();
  /// What the room waits for at most, in milliseconds; -1: for ever.
  [[nodiscard]] int patience_ms() const;
  void hand_over_due();

  const Fd wake_;
  const int stop_;
  const std::function<bool(WaitingClient&&)> hand_over_;
  std::mutex mutex_;
  std::vector<WaitingClient> entered_;  ///< not seen by the thread yet; by mutex_
  std::size_t inside_ = 0;              ///< entered and not left yet; by mutex_
  std::vector<WaitingClient> clients_;  ///< the thread's own
  std::jthread thread_;
};

}  // namespace flamed::api
