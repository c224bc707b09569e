// SPDX-License-Identifier: Apache-2.0
//
// Connection: one client's non-blocking socket. It does what can be done at once, and says which event it needs, and
// until when.
//
// Lives on the gate's thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "api/http/peer.h"
#include "api/http/request_reader.h"
#include "api/http/shared_bytes.h"
#include "base/handle.h"

namespace flamed::api {

/// Limits of a client.
struct ConnectionLimits {
  std::chrono::milliseconds idle{60'000};      ///< between requests, and before the first
  std::chrono::milliseconds receive{5'000};    ///< for a request, from its first byte to its last
  std::chrono::milliseconds stall{5'000};      ///< without reading a byte of the answer
  std::chrono::milliseconds transmit{60'000};  ///< for a whole answer
  std::chrono::milliseconds linger{1'000};     ///< for reading the refusal while it is still sending
  BodyLimit body = no_body;                    ///< which requests may have a body
};

class Connection {
 public:
  using Clock = std::chrono::steady_clock;

  enum class Stage : std::uint8_t {
    kReceiving,  ///< a request, or the wait for one
    kAsking,     ///< a request is complete and its answer is being made: nothing is read or written
    kWaiting,    ///< a request is complete, and waits for its samples
    kSending,    ///< an answer
    kLingering,  ///< refused; the rest of the request is read and dropped
  };
  enum class Event : std::uint8_t {
    kNone,     ///< nothing until the socket is ready or the deadline has passed
    kRequest,  ///< a request is complete: the stage is kAsking
    kRefused,  ///< over a limit or malformed: reader() has the reason
    kTimeout,  ///< the rest of a request did not arrive in time
    kDue,      ///< the wait is over: the stage is kAsking
    kClosed,   ///< the client is gone, or is done, or is too slow
  };
  enum class After : std::uint8_t { kNextRequest, kClose, kLinger };

  Connection(Fd socket, Peer peer, const ConnectionLimits& limits, Clock::time_point now);

  /// The socket is ready for poll_events().
  Event ready(Clock::time_point now);
  /// deadline() has passed.
  Event expired(Clock::time_point now);
  /// Sends as much of an answer as possible at once.
  Event send(SharedBytes head, SharedBytes body, After after, Clock::time_point now);
  /// Lets a complete request wait.
  void wait_until(Clock::time_point due);

  [[nodiscard]] const RequestReader& reader() const { return reader_; }
  [[nodiscard]] const Peer& peer() const { return peer_; }
  void set_peer(const Peer& peer) { peer_ = peer; }
  [[nodiscard]] Stage stage() const { return stage_; }
  [[nodiscard]] int descriptor() const { return socket_.get(); }
  /// For epoll; 0 while it needs no event.
  [[nodiscard]] std::uint32_t poll_events() const;
  /// None while asking.
  [[nodiscard]] Clock::time_point deadline() const { return deadline_; }
  /// Since when it is in its stage.
  [[nodiscard]] Clock::time_point since() const { return since_; }
  /// Received so far.
  [[nodiscard]] int requests() const { return requests_; }

 private:
  void enter(Stage stage, Clock::time_point now, Clock::time_point deadline);
  Event receive(Clock::time_point now);
  Event send_on(Clock::time_point now);
  Event drop_input();

  Fd socket_;
  Peer peer_;
  const ConnectionLimits* limits_;  ///< the gate's
  RequestReader reader_;
  Stage stage_ = Stage::kReceiving;
  Clock::time_point since_;
  Clock::time_point deadline_;
  SharedBytes head_;  ///< of the answer
  SharedBytes body_;
  std::size_t sent_ = 0;  ///< of both
  After after_ = After::kClose;
  std::size_t dropped_bytes_ = 0;
  int requests_ = 0;
};

}  // namespace flamed::api
