// SPDX-License-Identifier: Apache-2.0
#include "api/server.h"

#include <httplib.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <functional>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "api/connection.h"
#include "api/listening_socket.h"
#include "api/routes.h"
#include "api/waiting_room.h"
#include "base/bounded_queue.h"
#include "base/handle.h"
#include "base/thread.h"

namespace flamed::api {
namespace {

/// Clients that are connected and wait for a thread. More are turned away by closing.
constexpr std::size_t kWaitingClients = 128;
constexpr int kRequestsPerConnection = 1000;
/// When there is no descriptor left for a client, accept() fails at once, again and again.
constexpr int kAcceptRetryMs = 50;

/// What the library sees of a connection: one request's head to read, and somewhere to write. `connection` outlives it.
class LibraryStream final : public httplib::Stream {
 public:
  LibraryStream(std::string_view head, Connection& connection) : head_(head), connection_(connection) {}

  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }
  ssize_t read(char* buffer, size_t size) override {
    const std::size_t count = std::min(size, head_.size());
    std::memcpy(buffer, head_.data(), count);
    head_.remove_prefix(count);
    return static_cast<ssize_t>(count);
  }
  ssize_t write(const char* bytes, size_t size) override {
    return connection_.send({bytes, size}) ? static_cast<ssize_t>(size) : -1;
  }
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return INVALID_SOCKET; }

 private:
  std::string_view head_;
  Connection& connection_;
};

/// The library's parser and writer, without its sockets and threads. One for each HTTP thread; `router` outlives it.
class Protocol final : private httplib::Server {
 public:
  explicit Protocol(Router& router) : router_(router) {
    set_keep_alive_timeout(Connection::kIdleLimit.count());
    set_keep_alive_max_count(kRequestsPerConnection);
    set_payload_max_length(0);
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      Request plain{request.method, request.target, accept_encoding_, false};
      plain.accept = request.get_header_value("Accept");
      plain.if_none_match = request.get_header_value("If-None-Match");
      plain.asked = asked_;
      plain.host = request.get_header_value("Host");
      plain.origin = request.get_header_value("Origin");
      plain.sec_fetch_site = request.get_header_value("Sec-Fetch-Site");
      plain.authorization = request.get_header_value("Authorization");
      fill(response, refusal_ != nullptr ? router_.refuse(*refusal_) : router_.handle(plain));
      return HandlerResponse::Handled;
    });
    // Called for every status from 400 on, whoever set it. What is not ours yet is the library's own.
    set_error_handler(HandlerWithResponse([this](const httplib::Request&, httplib::Response& response) {
      if (answered_) return HandlerResponse::Unhandled;
      fill(response, router_.refuse(problem_of_status(response.status)));
      // Where such a request ends is anyone's guess, so nothing after it is read.
      library_refused_ = true;
      return HandlerResponse::Handled;
    }));
    set_post_routing_handler([this](const httplib::Request&, httplib::Response& response) {
      if (!library_refused_) return;
      response.headers.erase("Keep-Alive");
      response.set_header("Connection", "close");
    });
    set_exception_handler([this](const httplib::Request&, httplib::Response& response, const std::exception_ptr&) {
      fill(response, router_.refuse(internal_error("out of resources")));
    });
  }

  /// Answers the request that `head` holds, or refuses it. True when the connection may carry another request.
  /// `asked`: when the request came, where it waited since.
  bool answer(std::string_view head, const Problem* refusal, bool close, Connection& connection,
              std::optional<WallTime> asked = {}) {
    asked_ = asked;
    refusal_ = refusal;
    answered_ = false;
    library_refused_ = false;
    LibraryStream stream(head, connection);
    bool closed = false;
    return process(*this, stream, close, closed) && !closed && !close && !library_refused_;
  }

 private:
  /// 0.11 (Debian 12) asks the stream for the addresses, 0.18 (Debian 13) is told them.
  template <typename Self>
  static bool process(Self& self, httplib::Stream& stream, bool close, bool& closed) {
    const std::function<void(httplib::Request&)> setup = [&self](httplib::Request& request) {
      // Answers come compressed from the router; the library would compress them again.
      self.accept_encoding_ = request.get_header_value("Accept-Encoding");
      request.headers.erase("Accept-Encoding");
    };
    if constexpr (requires { self.process_request(stream, close, closed, setup); }) {
      return self.process_request(stream, close, closed, setup);
    } else {
      return self.process_request(stream, std::string(), 0, std::string(), 0, close, closed, setup);
    }
  }

  void fill(httplib::Response& response, Response&& plain) {
    answered_ = true;
    response.status = plain.status;
    response.body = std::move(plain.body);
    response.set_header("Content-Type", plain.content_type);
    for (const auto& [name, value] : plain.headers) response.set_header(name, value);
    response.set_header("Accept-Ranges", "none");
  }

  Router& router_;
  const Problem* refusal_ = nullptr;
  bool answered_ = false;
  bool library_refused_ = false;
  std::string accept_encoding_;
  std::optional<WallTime> asked_;
};

/// As much of a request as it takes to know whether it waits. `head` is complete.
Request bare_request(std::string_view head) {
  const std::size_t method_end = std::min(head.find(' '), head.size());
  Request request;
  request.method = std::string(head.substr(0, method_end));
  head.remove_prefix(std::min(method_end + 1, head.size()));
  request.target = std::string(head.substr(0, head.find_first_of(" \r\n")));
  return request;
}

std::optional<Problem> refusal_of(Connection::Received received, const Connection& connection) {
  if (received == Connection::Received::kTimeout) return request_timeout();
  switch (connection.state()) {
    case HeadState::kUriTooLong:
      return uri_too_long();
    case HeadState::kHeadersTooLarge:
      return headers_too_large();
    case HeadState::kMalformed:
      return bad_request("The request has a NUL or a line that does not end in CR LF. Send HTTP/1.1.");
    case HeadState::kIncomplete:
    case HeadState::kComplete:
      break;
  }
  if (connection.has_body()) return body_refused();
  return std::nullopt;
}

Result<Fd> make_event() {
  Fd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event) return Error::from_errno("cannot start the API: eventfd");
  return event;
}

void raise(const Fd& event) { static_cast<void>(::eventfd_write(event.get(), 1)); }

void lower(const Fd& event) {
  eventfd_t value = 0;
  static_cast<void>(::eventfd_read(event.get(), &value));
}

}  // namespace

class Server::Impl {
 public:
  Impl(Sources& sources, Fd socket, std::uint16_t port, Fd stop, Fd pressure, Fd wake, const ServerOptions& options)
      : router_(sources),
        clock_(sources.clock()),
        drain_time_(options.drain_time),
        socket_(std::move(socket)),
        port_(port),
        stop_(std::move(stop)),
        pressure_(std::move(pressure)),
        waiting_(kWaitingClients),
        room_(std::move(wake), stop_.get(), [this](WaitingClient&& client) { return take_back(std::move(client)); }) {
    for (std::size_t i = 0; i < options.threads; ++i) {
      threads_.push_back(
          start_thread("http/" + std::to_string(i), [this](const std::stop_token& token) { serve(token); }));
    }
    threads_.push_back(start_thread("http/accept", [this](const std::stop_token&) { accept(); }));
  }

  ~Impl() {
    raise(stop_);
    for (std::jthread& thread : threads_) thread.request_stop();
  }

  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] std::uint64_t answered() const { return router_.answered(); }

 private:
  void accept() {
    bool retry_later = false;
    while (true) {
      pollfd watched[2] = {{stop_.get(), POLLIN, 0}, {socket_.get(), POLLIN, 0}};
      const int ready = ::poll(watched, retry_later ? 1 : 2, retry_later ? kAcceptRetryMs : -1);
      if (watched[0].revents != 0) return;
      retry_later = false;
      if (ready <= 0) continue;
      Fd client(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!client) {
        retry_later = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
        continue;
      }
      if (waiting_.try_push({std::move(client), std::nullopt})) raise(pressure_);
    }
  }

  bool take_back(WaitingClient&& client) {
    Arrival arrival{Fd(), std::move(client)};
    if (waiting_.try_push(std::move(arrival))) {
      raise(pressure_);
      return true;
    }
    // NOLINTNEXTLINE(bugprone-use-after-move): what found no room was not moved.
    client = std::move(*arrival.waited);
    return false;
  }

  void serve(const std::stop_token& token) {
    Protocol protocol(router_);
    while (std::optional<Arrival> arrival = waiting_.pop(token)) {
      if (waiting_.size() == 0) lower(pressure_);
      if (token.stop_requested()) continue;
      if (arrival->waited) {
        serve(protocol, arrival->waited->connection, token, arrival->waited->asked);
      } else {
        Connection connection(std::move(arrival->socket), stop_.get(), pressure_.get());
        serve(protocol, connection, token, std::nullopt);
      }
    }
  }

  /// Moves the connection into the waiting room when its request has to wait. The room being full is an answer.
  bool let_wait(Protocol& protocol, Connection& connection) {
    const std::optional<std::int64_t> wait_ns = router_.wait_ns(bare_request(connection.head()));
    if (!wait_ns) return false;
    const auto due = std::chrono::steady_clock::now() + std::chrono::nanoseconds(*wait_ns) + drain_time_;
    WaitingClient client{std::move(connection), clock_.wall(), due};
    if (room_.try_enter(std::move(client))) return true;
    const Problem full = too_many_waiting();
    // NOLINTNEXTLINE(bugprone-use-after-move): what found no room was not moved.
    protocol.answer(keep_known_headers(client.connection.head()), &full, true, client.connection);
    client.connection.finish_refused();
    return true;
  }

  /// `waited`: when the request came that has been received already.
  void serve(Protocol& protocol, Connection& connection, const std::stop_token& token, std::optional<WallTime> waited) {
    for (int count = 1; count <= kRequestsPerConnection; ++count) {
      if (waited) {
        if (!protocol.answer(keep_known_headers(connection.head()), nullptr, token.stop_requested(), connection,
                             std::exchange(waited, std::nullopt))) {
          return;
        }
        continue;
      }
      const Connection::Received received = connection.receive();
      if (received == Connection::Received::kNothing) return;
      if (const std::optional<Problem> refusal = refusal_of(received, connection)) {
        // The request may be in pieces or hostile; all that the library needs of it is whether a body may be sent.
        const bool is_head = connection.head().substr(0, 5) == "HEAD ";
        const std::string_view stand_in = is_head ? "HEAD / HTTP/1.1\r\n\r\n" : "GET / HTTP/1.1\r\n\r\n";
        protocol.answer(stand_in, &*refusal, true, connection);
        connection.finish_refused();
        return;
      }
      if (let_wait(protocol, connection)) return;
      const bool close = waiting_.size() > 0 || count == kRequestsPerConnection || token.stop_requested();
      if (!protocol.answer(keep_known_headers(connection.head()), nullptr, close, connection)) return;
    }
  }

  /// A client for an HTTP thread: new, or back from the waiting room.
  struct Arrival {
    Fd socket;
    std::optional<WaitingClient> waited;
  };

  Router router_;
  const Clock& clock_;
  const std::chrono::milliseconds drain_time_;
  const Fd socket_;
  const std::uint16_t port_;
  const Fd stop_;      ///< readable from the destructor on
  const Fd pressure_;  ///< readable while clients wait for a thread
  BoundedQueue<Arrival> waiting_;
  WaitingRoom room_;
  std::vector<std::jthread> threads_;
};

Result<std::unique_ptr<Server>> Server::listen(const ServerOptions& options, Sources& sources) {
  Result<Fd> socket = listen_on(options.host, options.port);
  if (!socket) return std::move(socket).error();
  const Result<std::uint16_t> port = port_of(socket->get());
  if (!port) return port.error();
  Result<Fd> stop = make_event();
  if (!stop) return std::move(stop).error();
  Result<Fd> pressure = make_event();
  if (!pressure) return std::move(pressure).error();
  Result<Fd> wake = make_event();
  if (!wake) return std::move(wake).error();
  return std::unique_ptr<Server>(new Server(std::make_unique<Impl>(sources, std::move(*socket), *port, std::move(*stop),
                                                                   std::move(*pressure), std::move(*wake), options)));
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Server::~Server() = default;

std::uint16_t Server::port() const { return impl_->port(); }

std::uint64_t Server::requests() const { return impl_->answered(); }

}  // namespace flamed::api
