// SPDX-License-Identifier: Apache-2.0
#include "api/socket/accept_gate.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "base/thread.h"

namespace flamed::api {
namespace {

/// Ids in epoll: the eventfd, then the listening sockets by index, then clients, whose numbers are never reused: an
/// event for a closed one finds nothing.
constexpr std::uint64_t kWake = 0;
constexpr std::uint64_t kFirstListening = 1;

constexpr std::size_t kEventsAtOnce = 64;
constexpr int kAcceptsAtOnce = 64;
/// A pause when there is no descriptor left for a client: accept() would fail again and again.
constexpr std::chrono::milliseconds kListenPause{50};
/// A pause when a request has waited for its samples and the queue is full.
constexpr std::chrono::milliseconds kDueAgain{50};
/// Clients that only get a refusal, in addition to the limit.
constexpr std::size_t kMostTurnedAway = 32;
constexpr int kRequestsPerConnection = 1000;
/// Bodies up to this size are bounded by the number of clients.
constexpr std::size_t kSmallBody = 4096;
constexpr std::chrono::milliseconds kLongestPatience{60'000};

bool is_head(std::string_view head) { return head.substr(0, 5) == "HEAD "; }

/// Why a request is refused; empty for a well-formed one.
std::optional<Problem> fault_of(const RequestReader& reader) {
  switch (reader.state()) {
    case HeadState::kUriTooLong:
      return uri_too_long();
    case HeadState::kHeadersTooLarge:
      return headers_too_large();
    case HeadState::kLengthRequired:
      return length_required();
    case HeadState::kBodyTooLarge:
      return body_too_large();
    case HeadState::kMalformed:
      return malformed_request(reader.fault());
    case HeadState::kIncomplete:
      return request_timeout();
    case HeadState::kComplete:
      break;
  }
  if (reader.has_body()) return body_refused();
  return std::nullopt;
}

/// How much closing the connection would cost its client.
int business(Connection::Stage stage) {
  switch (stage) {
    case Connection::Stage::kReceiving:
      return 0;
    case Connection::Stage::kSending:
    case Connection::Stage::kLingering:
      return 1;
    case Connection::Stage::kAsking:
    case Connection::Stage::kWaiting:
      break;
  }
  return 2;
}

Status watch(int poll, int operation, int descriptor, std::uint32_t events, std::uint64_t name) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = name;
  if (::epoll_ctl(poll, operation, descriptor, &event) != 0)
    return Error::from_errno("cannot start the API: epoll_ctl");
  return {};
}

}  // namespace

Result<std::unique_ptr<AcceptGate>> AcceptGate::open(std::vector<ListeningSocket> listening, const GateLimits& limits,
                                                     PeerLookup& peers, GateUser& user) {
  Fd poll(::epoll_create1(EPOLL_CLOEXEC));
  if (!poll) return Error::from_errno("cannot start the API: epoll_create1");
  Fd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return Error::from_errno("cannot start the API: eventfd");
  if (Status watched = watch(poll.get(), EPOLL_CTL_ADD, wake.get(), EPOLLIN, kWake); !watched) return watched.error();
  for (std::size_t i = 0; i < listening.size(); ++i) {
    Status watched = watch(poll.get(), EPOLL_CTL_ADD, listening[i].descriptor(), EPOLLIN, kFirstListening + i);
    if (!watched) return watched.error();
  }
  return std::unique_ptr<AcceptGate>(
      new AcceptGate(std::move(listening), limits, peers, user, std::move(poll), std::move(wake)));
}

AcceptGate::AcceptGate(std::vector<ListeningSocket> listening, const GateLimits& limits, PeerLookup& peers,
                       GateUser& user, Fd poll, Fd wake)
    : listening_(std::move(listening)),
      limits_(limits),
      peers_(peers),
      user_(user),
      poll_(std::move(poll)),
      wake_(std::move(wake)),
      next_id_(kFirstListening + listening_.size()) {
  thread_ = start_thread("http/gate", [this](const std::stop_token& stop) { run(stop); });
  thread_cpu_ = ThreadCpu(thread_);
}

AcceptGate::~AcceptGate() {
  thread_.request_stop();
  static_cast<void>(::eventfd_write(wake_.get(), 1));
}

void AcceptGate::reply(GateReply&& reply) {
  {
    const std::lock_guard lock(mutex_);
    replies_.push_back(std::move(reply));
  }
  static_cast<void>(::eventfd_write(wake_.get(), 1));
}

AcceptGate::Figures AcceptGate::figures() const { return {accepted_, open_, made_room_, turned_away_, too_slow_}; }

void AcceptGate::run(const std::stop_token& stop) {
  std::array<epoll_event, kEventsAtOnce> events;
  while (true) {
    const int count =
        ::epoll_wait(poll_.get(), events.data(), static_cast<int>(events.size()), patience_ms(Clock::now()));
    const auto now = Clock::now();
    for (int i = 0; i < count; ++i) {
      const std::uint64_t name = events[static_cast<std::size_t>(i)].data.u64;
      if (name == kWake) {
        eventfd_t value = 0;
        static_cast<void>(::eventfd_read(wake_.get(), &value));
      } else if (name < kFirstListening + listening_.size()) {
        accept_clients(listening_[name - kFirstListening], now);
      } else if (const auto client = clients_.find(name); client != clients_.end()) {
        advance(name, client->second.connection.ready(now), now);
      }
    }
    take_replies(now);
    if (stop.stop_requested()) return;
    expire(now);
  }
}

int AcceptGate::patience_ms(Clock::time_point now) const {
  if (timers_.empty() && !listen_again_) return -1;
  auto next = timers_.empty() ? *listen_again_ : timers_.begin()->first;
  if (listen_again_) next = std::min(next, *listen_again_);
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(std::min(next - now, Clock::duration(kLongestPatience)));
  return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
}

void AcceptGate::accept_clients(const ListeningSocket& listening, Clock::time_point now) {
  for (int i = 0; i < kAcceptsAtOnce && !listen_again_; ++i) {
    Fd socket(::accept4(listening.descriptor(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket) {
      admit(std::move(socket), now);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      listen_again_ = now + kListenPause;
      watch_listening(false);
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return;
    }
  }
}

void AcceptGate::watch_listening(bool watch_them) {
  for (std::size_t i = 0; i < listening_.size(); ++i) {
    static_cast<void>(
        watch(poll_.get(), EPOLL_CTL_MOD, listening_[i].descriptor(), watch_them ? EPOLLIN : 0U, kFirstListening + i));
  }
}

void AcceptGate::admit(Fd socket, Clock::time_point now) {
  ++accepted_;
  const Peer peer = peers_.look_up(socket.get());
  const UserKey user = key_of(peer);
  const bool keeps_some = limits_.clients > limits_.kept_for_root && !is_root(peer);
  const std::size_t others = with_place_ - clients_of(kRootKey);
  bool has_place = true;
  if (clients_of(user) >= limits_.clients_per_user) {
    has_place = make_room_of(user);
  } else if (with_place_ >= limits_.clients || (keeps_some && others >= limits_.clients - limits_.kept_for_root)) {
    has_place = make_room_for(user);
  }
  if (!has_place && clients_.size() - with_place_ >= kMostTurnedAway) {
    ++turned_away_;
    return;
  }

  const std::uint64_t id = next_id_++;
  Client& client =
      clients_.emplace(id, Client{Connection(std::move(socket), peer, limits_.connection, now), user, has_place})
          .first->second;
  if (has_place) {
    ++clients_by_user_[user];
    ++with_place_;
  }
  open_ = clients_.size();
  if (!watch(poll_.get(), EPOLL_CTL_ADD, client.connection.descriptor(), EPOLLONESHOT, id)) return drop(id);
  if (has_place) return advance(id, client.connection.ready(now), now);
  ++turned_away_;
  advance(id, refuse(client, too_many_clients(), now), now);
}

/// Closes the user's connection that has been idle longest.
bool AcceptGate::make_room_of(UserKey user) {
  std::optional<std::uint64_t> longest;
  for (const auto& [id, client] : clients_) {
    if (client.user != user || !client.has_place || !client.is_idle()) continue;
    if (!longest || is_older(id, *longest)) longest = id;
  }
  if (longest) close_for_others(*longest);
  return longest.has_value();
}

/// Closes the least busy connection of the user with the most, among equals the one that has been so longest: a user
/// who opens many connections and keeps them all busy must not keep others out.
bool AcceptGate::make_room_for(UserKey user) {
  const std::size_t own = clients_of(user);
  std::optional<std::uint64_t> chosen;
  const auto goes_before = [&](std::uint64_t id, const Client& client) {
    if (!chosen) return true;
    const Client& best = clients_.at(*chosen);
    const auto rank = [&](const Client& one) {
      return std::pair(-static_cast<std::int64_t>(clients_of(one.user)), business(one.connection.stage()));
    };
    return rank(client) != rank(best) ? rank(client) < rank(best) : is_older(id, *chosen);
  };
  for (const auto& [id, client] : clients_) {
    if (may_make_room(client, own) && goes_before(id, client)) chosen = id;
  }
  if (chosen) close_for_others(*chosen);
  return chosen.has_value();
}

/// For a user who has `own` connections and wants one more.
bool AcceptGate::may_make_room(const Client& client, std::size_t own) const {
  const std::size_t count = clients_of(client.user);
  if (!client.has_place || (client.user == kRootKey && count <= limits_.kept_for_root)) return false;
  switch (client.connection.stage()) {
    case Connection::Stage::kReceiving:
      return true;
    case Connection::Stage::kSending:
    case Connection::Stage::kLingering:
      return count > own;
    case Connection::Stage::kAsking:
    case Connection::Stage::kWaiting:
      break;
  }
  return count > own + 1;
}

void AcceptGate::close_for_others(std::uint64_t id) {
  ++made_room_;
  drop(id);
}

void AcceptGate::expire(Clock::time_point now) {
  if (listen_again_ && *listen_again_ <= now) {
    listen_again_.reset();
    watch_listening(true);
  }
  while (!timers_.empty() && timers_.begin()->first <= now) {
    const std::uint64_t id = timers_.begin()->second;
    timers_.erase(timers_.begin());
    Client& client = clients_.at(id);
    client.timer.reset();
    const bool was_sending = client.connection.stage() == Connection::Stage::kSending;
    const Connection::Event event = client.connection.expired(now);
    if (was_sending || event == Connection::Event::kTimeout) ++too_slow_;
    advance(id, event, now);
  }
}

void AcceptGate::take_replies(Clock::time_point now) {
  std::vector<GateReply> replies;
  {
    const std::lock_guard lock(mutex_);
    replies.swap(replies_);
  }
  if (replies.empty()) return;
  for (GateReply& reply : replies) {
    const auto found = clients_.find(reply.client);
    if (found == clients_.end()) {
      if (reply.asked) user_.gone(*reply.asked);
      continue;
    }
    Client& client = found->second;
    if (reply.asked) {
      client.asked = reply.asked;
      client.connection.wait_until(reply.due);
      arm(reply.client, client);
    } else {
      const auto after = reply.keep ? Connection::After::kNextRequest : Connection::After::kClose;
      advance(reply.client, client.connection.send(std::move(reply.head), std::move(reply.body), after, now), now);
    }
  }
}

void AcceptGate::advance(std::uint64_t id, Connection::Event event, Clock::time_point now) {
  Client& client = clients_.at(id);
  // After an answer was sent at once, the next request may already be there.
  while (true) {
    const bool is_received = event == Connection::Event::kNone || event == Connection::Event::kRequest;
    if (is_received && !count_body(client)) {
      ++turned_away_;
      event = refuse(client, too_many_requests(), now);
    }
    switch (event) {
      case Connection::Event::kNone:
        return arm(id, client);
      case Connection::Event::kClosed:
        return drop(id);
      case Connection::Event::kRequest:
      case Connection::Event::kDue:
        event = hand_out(id, client, now);
        break;
      case Connection::Event::kRefused:
      case Connection::Event::kTimeout:
        event = refuse(client, *fault_of(client.connection.reader()), now);
        break;
    }
  }
}

Connection::Event AcceptGate::hand_out(std::uint64_t id, Client& client, Clock::time_point now) {
  const RequestReader& reader = client.connection.reader();
  if (const std::optional<Problem> fault = fault_of(reader)) return refuse(client, *fault, now);
  if (client.connection.requests() == 1) {
    client.connection.set_peer(peers_.look_up_again(client.connection.descriptor(), client.connection.peer()));
  }
  GateRequest request{id,
                      std::string(reader.head()),
                      client.connection.peer(),
                      std::string(reader.body()),
                      client.asked,
                      client.connection.requests() >= kRequestsPerConnection};
  if (user_.take(std::move(request))) {
    client.asked.reset();
    return Connection::Event::kNone;
  }
  if (client.asked) {
    client.connection.wait_until(now + kDueAgain);
    return Connection::Event::kNone;
  }
  ++turned_away_;
  return refuse(client, too_many_requests(), now);
}

Connection::Event AcceptGate::refuse(Client& client, const Problem& problem, Clock::time_point now) {
  std::string answer = user_.refuse(problem, is_head(client.connection.reader().head()));
  return client.connection.send(std::move(answer), {}, Connection::After::kLinger, now);
}

/// A large body counts from its announcement until its answer is sent. False: there is no room for it.
bool AcceptGate::count_body(Client& client) {
  const std::size_t announced = client.connection.reader().body_bytes();
  const std::size_t large = announced > kSmallBody ? announced : 0;
  const std::size_t others = large_bodies_ - client.large_body;
  if (large > client.large_body && others + large > limits_.large_bodies) return false;
  large_bodies_ = others + large;
  client.large_body = large;
  return true;
}

void AcceptGate::arm(std::uint64_t id, Client& client) {
  const Connection& connection = client.connection;
  if (connection.stage() == Connection::Stage::kAsking) return set_timer(id, client, std::nullopt);
  set_timer(id, client, connection.deadline());
  // One-shot: a client that disconnects while its answer is made would be reported again and again.
  static_cast<void>(
      watch(poll_.get(), EPOLL_CTL_MOD, connection.descriptor(), connection.poll_events() | EPOLLONESHOT, id));
}

void AcceptGate::set_timer(std::uint64_t id, Client& client, std::optional<Clock::time_point> timer) {
  if (timer == client.timer) return;
  if (client.timer) timers_.erase({*client.timer, id});
  if (timer) timers_.emplace(*timer, id);
  client.timer = timer;
}

void AcceptGate::drop(std::uint64_t id) {
  Client& client = clients_.at(id);
  if (client.asked) user_.gone(*client.asked);
  set_timer(id, client, std::nullopt);
  large_bodies_ -= client.large_body;
  if (client.has_place) {
    --with_place_;
    if (--clients_by_user_[client.user] == 0) clients_by_user_.erase(client.user);
  }
  open_ = clients_.size() - 1;  // updated before the client can notice the close
  clients_.erase(id);
}

/// Longer in its stage; among equals the one that was accepted first.
bool AcceptGate::is_older(std::uint64_t a, std::uint64_t b) const {
  return std::pair(clients_.at(a).connection.since(), a) < std::pair(clients_.at(b).connection.since(), b);
}

std::size_t AcceptGate::clients_of(UserKey user) const {
  const auto found = clients_by_user_.find(user);
  return found == clients_by_user_.end() ? 0 : found->second;
}

}  // namespace flamed::api
