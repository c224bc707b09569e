// SPDX-License-Identifier: Apache-2.0
//
// AcceptGate: all sockets of the API, on one thread. Accepts, reads whole requests within limits, passes them on as
// plain values, and sends the answers. Slow or silent clients block no other thread and use a bounded amount of memory.
// At the limit, a connection of the user with the most is closed; some are reserved for root.
//
// Its thread runs until the gate is destroyed. Arguments by reference must outlive it.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "api/http/peer.h"
#include "api/http/problem.h"
#include "api/http/shared_bytes.h"
#include "api/socket/connection.h"
#include "api/socket/listening_socket.h"
#include "api/socket/peer_lookup.h"
#include "base/clock.h"
#include "base/handle.h"
#include "base/result.h"
#include "base/thread_cpu.h"

namespace flamed::api {

struct GateLimits {
  std::size_t clients = 512;
  std::size_t clients_per_user = 128;    ///< all unknown users count as one user
  std::size_t kept_for_root = 32;        ///< of `clients`, if there are more than these
  std::size_t large_bodies = 16U << 20;  ///< memory of bodies of more than 4 KiB, of all clients together
  ConnectionLimits connection{};
};

/// A request that has been received whole.
struct GateRequest {
  std::uint64_t client = 0;
  std::string head;  ///< request line and headers, well-formed
  Peer peer;
  std::string body{};               ///< only where ConnectionLimits::body allows one
  std::optional<WallTime> asked{};  ///< when it arrived, if it has waited since
  bool last = false;                ///< the connection is to be closed after the answer
};

/// The reply to a request.
struct GateReply {
  std::uint64_t client = 0;
  SharedBytes head{};                           ///< the answer as it is sent, up to the empty line
  bool keep = false;                            ///< the connection may carry another request
  SharedBytes body{};                           ///< what follows
  std::optional<WallTime> asked{};              ///< no answer yet: the request, which arrived then, ...
  std::chrono::steady_clock::time_point due{};  ///< ... is passed on again at this time
};

/// The gate's user. Called on the gate's thread, must not wait.
class GateUser {
 public:
  virtual ~GateUser() = default;
  /// False: there is no room for the request, and the gate keeps it. Otherwise reply() follows later.
  virtual bool take(GateRequest&& request) = 0;
  /// The client whose request arrived then, and waits, has gone.
  virtual void gone(WallTime /*asked*/) {}
  /// A refusal as it is sent; then the connection is closed.
  virtual std::string refuse(const Problem& problem, bool is_head) = 0;
};

class AcceptGate {
 public:
  static Result<std::unique_ptr<AcceptGate>> open(std::vector<ListeningSocket> listening, const GateLimits& limits,
                                                  PeerLookup& peers, GateUser& user);
  ~AcceptGate();
  AcceptGate(const AcceptGate&) = delete;
  AcceptGate& operator=(const AcceptGate&) = delete;

  /// Any thread. Ignored if the client has gone.
  void reply(GateReply&& reply);

  struct Figures {
    std::uint64_t accepted = 0;
    std::uint64_t open = 0;         ///< now
    std::uint64_t made_room = 0;    ///< closed for others
    std::uint64_t turned_away = 0;  ///< no connection could be closed for it, or no room for the request
    std::uint64_t too_slow = 0;     ///< closed for a deadline in the middle of a request or an answer
  };
  [[nodiscard]] Figures figures() const;

  [[nodiscard]] const std::vector<ListeningSocket>& listening() const { return listening_; }
  /// CPU time that its thread has used. Any thread.
  [[nodiscard]] std::int64_t cpu_ns() const { return thread_cpu_.ns(); }

 private:
  using Clock = Connection::Clock;
  struct Client {
    Connection connection;
    UserKey user;
    bool has_place = true;                     ///< otherwise it only gets the refusal
    std::optional<WallTime> asked{};           ///< when its request arrived, which waits or has waited
    std::optional<Clock::time_point> timer{};  ///< its entry in timers_
    std::size_t large_body = 0;                ///< its part of large_bodies_

    [[nodiscard]] bool is_idle() const { return connection.stage() == Connection::Stage::kReceiving; }
  };

  AcceptGate(std::vector<ListeningSocket> listening, const GateLimits& limits, PeerLookup& peers, GateUser& user,
             Fd poll, Fd wake);
  void run(const std::stop_token& stop);
  [[nodiscard]] int patience_ms(Clock::time_point now) const;
  [[nodiscard]] std::size_t clients_of(UserKey user) const;
  [[nodiscard]] bool is_older(std::uint64_t a, std::uint64_t b) const;
  void accept_clients(const ListeningSocket& listening, Clock::time_point now);
  void admit(Fd socket, Clock::time_point now);
  bool make_room_of(UserKey user);
  bool make_room_for(UserKey user);
  void close_for_others(std::uint64_t id);
  [[nodiscard]] bool may_make_room(const Client& client, std::size_t own) const;
  void watch_listening(bool watch);
  void expire(Clock::time_point now);
  void take_replies(Clock::time_point now);

  void advance(std::uint64_t id, Connection::Event event, Clock::time_point now);
  /// Passes a request on, or refuses it.
  Connection::Event hand_out(std::uint64_t id, Client& client, Clock::time_point now);
  Connection::Event refuse(Client& client, const Problem& problem, Clock::time_point now);
  [[nodiscard]] bool count_body(Client& client);
  void arm(std::uint64_t id, Client& client);
  void set_timer(std::uint64_t id, Client& client, std::optional<Clock::time_point> timer);
  void drop(std::uint64_t id);

  const std::vector<ListeningSocket> listening_;
  const GateLimits limits_;
  PeerLookup& peers_;
  GateUser& user_;
  const Fd poll_;
  const Fd wake_;

  // Only for the gate's thread.
  std::unordered_map<std::uint64_t, Client> clients_;
  std::map<UserKey, std::size_t> clients_by_user_;  ///< those with a place
  std::size_t with_place_ = 0;
  std::size_t large_bodies_ = 0;  ///< bytes
  std::set<std::pair<Clock::time_point, std::uint64_t>> timers_;
  std::uint64_t next_id_;
  std::optional<Clock::time_point> listen_again_;  ///< set when there was no descriptor for a client

  std::mutex mutex_;
  std::vector<GateReply> replies_;  ///< not read by the thread yet; guarded by mutex_
  std::atomic<std::uint64_t> accepted_{0}, open_{0}, made_room_{0}, turned_away_{0}, too_slow_{0};
  ThreadCpu thread_cpu_;
  std::jthread thread_;
};

}  // namespace flamed::api
