// SPDX-License-Identifier: Apache-2.0
//
// Connection: one client's socket, with a time limit on everything that the client can delay.
//
// Lives on the HTTP thread that serves the client. Watches two descriptors that must outlive it: `stop`, which becomes
// readable when the server ends, and `pressure`, which is readable while other clients wait for a thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "api/request_head.h"
#include "base/handle.h"

namespace flamed::api {

class Connection {
 public:
  static constexpr std::chrono::seconds kIdleLimit{5};       ///< between requests
  static constexpr std::chrono::seconds kReceiveLimit{5};    ///< for a request, from its first byte to its last
  static constexpr std::chrono::seconds kStallLimit{5};      ///< without the client taking a byte of the answer
  static constexpr std::chrono::seconds kTransmitLimit{60};  ///< for a whole answer
  /// A client that has just connected or just been answered keeps its thread this long even if others wait.
  static constexpr std::chrono::milliseconds kGrace{250};

  Connection(Fd socket, int stop, int pressure);

  enum class Received : std::uint8_t {
    kRequest,  ///< head() is complete
    kNothing,  ///< the client is done, idle for too long, or its thread is needed elsewhere: close
    kTimeout,  ///< a part of a request, and no more in time
    kRefused,  ///< over a limit or malformed: state() says which
  };
  /// Waits for the next request's head.
  Received receive();
  [[nodiscard]] HeadState state() const { return head_.state; }
  [[nodiscard]] bool has_body() const { return head_.has_body; }
  /// Request line and headers; after kTimeout and kRefused what there is of them. Valid until the next receive().
  [[nodiscard]] std::string_view head() const;

  /// For who waits on many connections at once.
  [[nodiscard]] int descriptor() const { return socket_.get(); }

  /// False when the client is gone or too slow.
  bool send(std::string_view bytes);

  /// After a request that was not read to its end: lets the client read the answer before the socket is closed, since
  /// closing with unread input resets the connection and may take the answer with it.
  void finish_refused();

 private:
  using Clock = std::chrono::steady_clock;
  enum class Event : std::uint8_t { kReady, kStop, kPressure, kTime };
  Event wait(short events, Clock::time_point deadline, bool watch_pressure) const;
  /// Bytes read, 0 when the client has closed, -1 on an error.
  long read_more();

  Fd socket_;
  int stop_;
  int pressure_;
  std::string buffer_;
  RequestHead head_;
};

}  // namespace flamed::api
