// SPDX-License-Identifier: Apache-2.0
#include "api/server/server.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <functional>
#include <optional>
#include <stop_token>
#include <string_view>
#include <thread>
#include <utility>

#include "api/access/access.h"
#include "api/access/group_members.h"
#include "api/access/host_names.h"
#include "api/answer/routes.h"
#include "api/answer/shared_answers.h"
#include "api/http/request_line.h"
#include "api/http/request_parser.h"
#include "api/http/response_head.h"
#include "api/server/answer_memory.h"
#include "api/server/fair_turns.h"
#include "base/bounded_queue.h"
#include "base/thread.h"
#include "base/thread_cpu.h"

namespace flamed::api {
namespace {

/// Whose members see everything; made at the installation (systemd/flamed.sysusers).
constexpr const char* kViewersGroup = "flamed";

/// Of the memory for answers: what others may be given may fill so much of it. Less than what one user has, or what is
/// kept for him would let him wait for himself.
constexpr std::size_t kKeptShare = 4;

/// What those ask who watch over flamed: cheap to answer, and not to wait behind questions that take seconds.
bool is_probe(std::string_view head) {
  constexpr std::array<std::string_view, 4> kPaths{"/healthz", "/readyz", "/metrics", "/version"};
  const auto line = parse_request_line(head);
  return line &&
         std::find(kPaths.begin(), kPaths.end(), line->target.substr(0, line->target.find('?'))) != kPaths.end();
}

/// Whether both get the same answer: it is made of nothing else, and of what the time is.
bool ask_the_same(const GateRequest& a, const GateRequest& b) {
  return a.head == b.head && a.peer == b.peer && a.asked == b.asked && a.last == b.last;
}

void tell(const AcceptGate::Figures& figures, const PeerLookup& peers, std::uint64_t shared,
          std::vector<Metric>& metrics) {
  const auto value = [](std::uint64_t count) { return static_cast<double>(count); };
  metrics.push_back(
      {"flamed_http_connections", "Clients that are connected.", Metric::Type::kGauge, {{{}, value(figures.open)}}});
  metrics.push_back({"flamed_http_connections_total",
                     "Connections that were accepted.",
                     Metric::Type::kCounter,
                     {{{}, value(figures.accepted)}}});
  metrics.push_back({"flamed_http_connections_closed_total",
                     "Connections that were closed on the client, by reason.",
                     Metric::Type::kCounter,
                     {{{{"reason", "made_room"}}, value(figures.made_room)},
                      {{{"reason", "turned_away"}}, value(figures.turned_away)},
                      {{{"reason", "too_slow"}}, value(figures.too_slow)}}});
  metrics.push_back({"flamed_http_unknown_peers_total",
                     "TCP connections from this host of which the kernel did not tell whose they are.",
                     Metric::Type::kCounter,
                     {{{}, value(peers.unknown())}}});
  metrics.push_back({"flamed_http_shared_answers_total",
                     "Answers that were made for another client who asked the same, up to five seconds before.",
                     Metric::Type::kCounter,
                     {{{}, value(shared)}}});
}

Component health_of(const PeerLookup& peers) {
  const Status state = peers.state();
  return {"peers", state.ok(), state ? "the kernel tells whose connections are" : state.error().message()};
}

/// By the addresses that the kernel gives, and by those that were asked for, which may be names.
void add_names(const ListeningSocket& socket, const std::string& asked_for, HostNames& names) {
  if (!socket.endpoint()) return;
  if (!asked_for.empty()) names.add(asked_for, socket.endpoint()->port);
  std::string address = to_string(*socket.endpoint());
  address.resize(address.rfind(':'));
  if (address.starts_with('[')) address = address.substr(1, address.size() - 2);
  names.add(address, socket.endpoint()->port);
}

}  // namespace

class Server::Impl final : public GateUser {
 public:
  Impl(Sources& sources, HostNames names, std::unique_ptr<TokenFile> tokens, const ServerOptions& options)
      : sources_(sources),
        members_([](uid_t user) { return is_in_group(user, kViewersGroup); }, sources.clock()),
        access_(options.owner
                    ? Access(std::move(names), *options.owner)
                    : Access(
                          std::move(names), [this](uid_t user) { return members_.has(user); }, std::move(tokens))),
        router_(sources, access_),
        clock_(sources.clock()),
        drain_time_(options.drain_time),
        when_quiet_(options.when_quiet),
        quiet_after_(options.quiet_after),
        peers_(options.open_owners),
        turns_(options.threads),
        queue_(options.queued_requests),
        probes_(options.queued_requests),
        memory_(options.unsent_bytes, [this] { queue_.look_again(); }),
        answers_(clock_, options.unsent_bytes / kKeptShare) {}

  ~Impl() override {
    for (std::jthread& thread : threads_) thread.request_stop();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Status start(std::vector<ListeningSocket> listening, const ServerOptions& options) {
    GateLimits limits = options.limits;
    limits.connection.body = Router::most_body_bytes;
    Result<std::unique_ptr<AcceptGate>> gate = AcceptGate::open(std::move(listening), limits, peers_, *this);
    if (!gate) return std::move(gate).error();
    gate_ = std::move(*gate);
    router_.also_tell([this](std::vector<Metric>& metrics) { tell(gate_->figures(), peers_, shared_, metrics); });
    router_.also_check([this] { return health_of(peers_); });
    for (std::size_t i = 0; i < options.threads; ++i) {
      threads_.push_back(
          start_thread("http/" + std::to_string(i), [this](const std::stop_token& token) { serve_questions(token); }));
    }
    threads_.push_back(start_thread("http/probes", [this](const std::stop_token& token) { serve_probes(token); }));
    for (std::jthread& thread : threads_) thread_cpus_.emplace_back(thread);
    return {};
  }

  bool take(GateRequest&& request) override {
    return (is_probe(request.head) ? probes_ : queue_).try_push(std::move(request));
  }

  void gone(WallTime asked) override { sources_.cancel_off_cpu(asked); }

  std::string refuse(const Problem& problem, bool is_head) override {
    const Response response = router_.refuse(problem);
    std::string bytes = response_head(response, response.body.size(), true);
    return is_head ? bytes : bytes + response.body;
  }

  [[nodiscard]] const std::vector<ListeningSocket>& listening() const { return gate_->listening(); }
  [[nodiscard]] std::uint64_t answered() const { return router_.answered(); }
  [[nodiscard]] Status peers() const { return peers_.state(); }
  [[nodiscard]] std::int64_t cpu_ns() const {
    std::int64_t sum = gate_->cpu_ns();
    for (const ThreadCpu& thread : thread_cpus_) sum += thread.ns();
    return sum;
  }

 private:
  using Steady = std::chrono::steady_clock;

  void serve_probes(const std::stop_token& token) {
    while (const std::optional<GateRequest> request = probes_.pop(token)) {
      if (!token.stop_requested()) serve(probes_, *request);
    }
  }

  /// Those of a user who has not taken what was made for him wait until he has.
  void serve_questions(const std::stop_token& token) {
    while (const std::optional<GateRequest> request = next_question(token)) {
      serve(queue_, *request);
      turns_.end(request->peer);
      queue_.look_again();
      answered_at_ = Steady::now();
      is_quiet_ = false;
    }
  }

  /// A request on its way to an answer.
  struct Turn {
    const GateRequest& received;
    BoundedQueue<GateRequest>& queue;  ///< from which it came
    /// Its client, and those who wait in the queue with the same request: what is good for one is as good for them,
    /// unless it is yet to be made and they are given an older one at once. Nobody where others make the answer, and
    /// where they were sent an older one that will do while `flight` makes the next.
    SharedAnswers::Asker asker;
    std::shared_ptr<SharedAnswers::Flight> flight{};  ///< null: nobody else waits for the answer
    SharedAnswers::Answer answer{};
  };

  void serve(BoundedQueue<GateRequest>& queue, const GateRequest& request) {
    Turn turn{request, queue, {{request.client}}};
    try {
      if (auto reply = take_turn(turn)) return gate_->reply(std::move(*reply));
      // NOLINTNEXTLINE(bugprone-empty-catch): the comment says why
    } catch (const std::exception&) {
      // Out of memory, even for saying so: the clients find their connections closed.
    }
    // Before anybody has it: who asks again must not be given an older one.
    const std::vector<SharedAnswers::Asker> others =
        turn.flight != nullptr ? answers_.land(turn.flight, turn.answer) : std::vector<SharedAnswers::Asker>();
    for (const SharedAnswers::Asker& other : others) hand_on(other, turn.answer);
    send(turn.asker, turn.answer);
    for (const SharedAnswers::Asker& other : others) send(other, turn.answer);
  }

  std::optional<GateRequest> next_question(const std::stop_token& token) {
    while (!is_quiet_) {
      const Steady::time_point quiet_at = answered_at_.load() + quiet_after_;
      if (queue_.await(token, quiet_at)) break;
      // Another thread may have answered meanwhile, or may have been here before.
      if (answered_at_.load() + quiet_after_ > Steady::now() || is_quiet_.exchange(true)) continue;
      answers_.clear();
      if (when_quiet_) when_quiet_();
    }
    return queue_.pop_lowest(
        token,
        [this](const GateRequest& request) {
          return memory_.has_room(key_of(request.peer)) ? turns_.rank(request.peer) : std::nullopt;
        },
        [this](const GateRequest& request) { turns_.begin(request.peer); });
  }

  /// Makes the answer, unless the client has to wait for samples: then what comes back is to tell the gate.
  std::optional<GateReply> take_turn(Turn& turn) {
    const GateRequest& received = turn.received;
    SharedAnswers::Asker& asker = turn.asker;
    ParsedRequest parsed = parse_request(received.head, received.peer);
    asker.is_head = parsed.request.method == "HEAD";
    parsed.request.asked = received.asked;
    parsed.request.body = received.body;
    const Plan plan = router_.plan(parsed.request);
    asker.keep = !parsed.close && !received.last;
    if (const auto wait_ns = Router::wait_ns(parsed.request, plan)) {
      GateReply reply;
      reply.client = received.client;
      reply.asked = clock_.wall();
      if (auto refused = router_.begin_wait(parsed.request, plan, *reply.asked)) {
        turn.answer = whole(std::move(*refused), received.peer);
        return std::nullopt;
      }
      reply.due = std::chrono::steady_clock::now() + std::chrono::nanoseconds(*wait_ns) + drain_time_;
      return reply;
    }
    const auto add_the_same = [&] {
      if (parsed.request.method == "POST") return;  // each sets a mark of its own
      for (const GateRequest& same :
           turn.queue.take_if([&](const GateRequest& other) { return ask_the_same(received, other); }))
        asker.clients.push_back(same.client);
    };
    if (const auto question = Router::shareable(parsed.request, plan)) {
      SharedAnswers::Verdict verdict = answers_.ask(*question, asker, sources_.await_revision());
      if (verdict.answer != nullptr) {
        add_the_same();
        hand_on(asker, verdict.answer);
        if (verdict.flight == nullptr) {
          turn.answer = std::move(verdict.answer);
          return std::nullopt;
        }
        send(asker, verdict.answer);
        asker.clients.clear();
      } else if (verdict.flight == nullptr) {
        asker.clients.clear();
        return std::nullopt;
      }
      turn.flight = std::move(verdict.flight);
      if (verdict.others_wait) add_the_same();
    } else {
      add_the_same();
    }
    const std::uint64_t clients = asker.clients.size();
    if (clients > 1) shared_ += clients - 1;
    turn.answer = whole(router_.answer(parsed.request, plan, clients), received.peer);
    return std::nullopt;
  }

  /// The body is counted to who asked, until nobody is sent it and nobody keeps it any more.
  SharedAnswers::Answer whole(Response response, const Peer& peer) {
    SharedBytes body = memory_.count(std::exchange(response.body, {}), key_of(peer));
    return std::make_shared<const SharedAnswer>(SharedAnswer{std::move(response), std::move(body)});
  }

  /// Counts an answer that was made for others.
  void hand_on(const SharedAnswers::Asker& asker, const SharedAnswers::Answer& answer) {
    if (answer == nullptr) return;
    shared_ += asker.clients.size();
    router_.count(answer->head.status, asker.clients.size());
  }

  void send(const SharedAnswers::Asker& asker, const SharedAnswers::Answer& answer) {
    GateReply reply;
    try {
      if (answer != nullptr && !asker.clients.empty()) {
        reply.head = response_head(answer->head, answer->body.size(), !asker.keep);
        if (!asker.is_head) reply.body = answer->body;
        reply.keep = asker.keep;
      }
    } catch (const std::exception&) {
      reply = {};
    }
    for (const std::uint64_t client : asker.clients) {
      reply.client = client;
      gate_->reply(GateReply(reply));
    }
  }

  Sources& sources_;
  GroupMembers members_;
  const Access access_;
  Router router_;
  const Clock& clock_;
  const std::chrono::milliseconds drain_time_;
  const std::function<void()> when_quiet_;
  const std::chrono::milliseconds quiet_after_;
  std::atomic<Steady::time_point> answered_at_{};
  std::atomic<bool> is_quiet_{true};  ///< nothing was answered since when_quiet_ was called
  PeerLookup peers_;                  ///< the gate's thread's
  FairTurns turns_;
  BoundedQueue<GateRequest> queue_;
  BoundedQueue<GateRequest> probes_;
  AnswerMemory memory_;
  SharedAnswers answers_;
  std::atomic<std::uint64_t> shared_{0};
  std::unique_ptr<AcceptGate> gate_;
  std::vector<ThreadCpu> thread_cpus_;
  std::vector<std::jthread> threads_;  ///< they end before the gate, which still sends what they answered
};

Result<std::unique_ptr<Server>> Server::listen(ServerOptions options, Sources& sources) {
  const Reach reach = options.token_file.empty() ? Reach::kThisHost : Reach::kNetwork;
  std::unique_ptr<TokenFile> tokens;
  if (!options.token_file.empty()) {
    Result<std::unique_ptr<TokenFile>> opened = TokenFile::open(options.token_file);
    if (!opened) return std::move(opened).error();
    tokens = std::move(*opened);
  }
  HostNames names;
  std::vector<ListeningSocket> listening;
  for (Fd& inherited : options.inherited) {
    Result<ListeningSocket> socket = ListeningSocket::adopt(std::move(inherited), reach);
    if (!socket) return std::move(socket).error();
    add_names(*socket, "", names);
    listening.push_back(std::move(*socket));
  }
  for (const ListenAddress& address : options.addresses) {
    Result<ListeningSocket> socket = ListeningSocket::open(address, reach);
    if (!socket) return std::move(socket).error();
    add_names(*socket, address.host, names);
    listening.push_back(std::move(*socket));
  }
  if (options.when_bound) {
    if (const Status ready = options.when_bound(); !ready) return ready.error();
  }
  auto impl = std::make_unique<Impl>(sources, std::move(names), std::move(tokens), options);
  if (Status started = impl->start(std::move(listening), options); !started) return started.error();
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Server::~Server() = default;

std::uint16_t Server::port() const {
  for (const ListeningSocket& socket : impl_->listening()) {
    if (socket.endpoint()) return socket.endpoint()->port;
  }
  return 0;
}

std::string Server::addresses() const {
  std::string all;
  for (const ListeningSocket& socket : impl_->listening()) {
    if (!all.empty()) all += ", ";
    all += socket.endpoint() ? "http://" + socket.name() + "/" : socket.name();
  }
  return all;
}

std::uint64_t Server::requests() const { return impl_->answered(); }

Status Server::peers() const { return impl_->peers(); }

std::int64_t Server::cpu_ns() const { return impl_->cpu_ns(); }

}  // namespace flamed::api
