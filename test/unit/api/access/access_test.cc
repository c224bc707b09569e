// SPDX-License-Identifier: Apache-2.0
//
// Who gets an answer, which processes the answer covers, and that it has nothing of other users.
#include "api/access/access.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "api/access/viewer_sources.h"
#include "api/answer/routes.h"
#include "test/catch.h"
#include "test/unit/api/access/scratch_file.h"
#include "test/unit/api/answer/fake_sources.h"

namespace flamed::api {
namespace {

constexpr uid_t kAlice = 1001;
constexpr uid_t kBob = 1002;
constexpr uid_t kOperator = 1003;  // a member of the group
constexpr uid_t kOfContainer = 1'165'536;
constexpr const char* kToken = "0123456789abcdef0123456789abcdef";

constexpr ProcessId kAlices{201, 5000};
constexpr ProcessId kBobs{777202, 5001};

using Transport = Peer::Transport;

std::unique_ptr<TokenFile> tokens_of(const ScratchFile& file) {
  auto tokens = TokenFile::open(file.path());
  REQUIRE(tokens.ok());
  return std::move(*tokens);
}

HostNames names() {
  HostNames names;
  names.add("127.0.0.1", 9090);
  return names;
}

bool is_operator(uid_t user) { return user == kOperator; }

/// Every route about processes, in every format.
std::vector<std::string> data_targets() {
  std::vector<std::string> targets;
  for (const char* format : {"flamegraph", "columns", "columns-binary", "folded", "pprof", "speedscope", "perf-script",
                             "samples", "top", "top-text", "summary", "pyroscope", "otlp", "otlp-1.9"}) {
    for (const char* query :
         {"", "&side=user", "&side=kernel", "&uid=1002", "&comm=bobs-worker", "&exe=bobs-worker", "&tid=777202",
          "&unit=bobs.service", "&group=thread", "&group=exe", "&group=none", "&group=user", "&group=tree",
          "&focus=bobs", "&root=bobs-worker%20(777202)", "&pid=201"}) {
      targets.push_back(std::string("/profile?format=") + format + query);
    }
  }
  for (const char* format : {"flamegraph", "columns", "columns-binary", "folded", "top", "top-text", "summary"}) {
    targets.push_back(std::string("/diff?from=now-1m&format=") + format);
    targets.push_back(std::string("/diff?from=now-1m&base_uid=1002&format=") + format);
  }
  for (const char* path : {"/processes", "/threads", "/timeline", "/timeline?processes=64", "/timeline?pid=201",
                           "/heatmap", "/heatmap?measure=wall", "/marks", "/marks?unit=bobs.service",
                           "/processes?group=program", "/processes?group=user", "/processes?group=tree",
                           "/processes?uid=1002", "/threads?comm=bobs-worker", "/debug/pprof/profile?from=now-1m"}) {
    targets.emplace_back(path);
  }
  for (const char* path : {"/instructions", "/source"}) {
    for (const char* query : {"?function=bobs_secret", "?function=alices_work", "?function=alices_work&module=victim",
                              "?function=bobs_main&format=text", "?function=alices_work&format=text"}) {
      targets.push_back(std::string(path) + query);
    }
  }
  targets.emplace_back("/source?function=alices_work&text=1");
  return targets;
}

/// A daemon on a host where Alice has a process, and Bob too unless he is left out.
struct Host {
  explicit Host(bool with_bob = true) {
    sources.machine_cpu_ = {987'654'321'000, {}};
    sources.process_cpu_[kAlices.pid] = {1'000'000'000, {}};
    add(kAlices, "alices-worker", kAlice, {"alices_main", "alices_work"}, 3);
    if (with_bob) {
      add(kBobs, "bobs-worker", kBob, {"bobs_main", "bobs_secret"}, 123);
      sources.process_cpu_[kBobs.pid] = {2'000'000'000, {}};
      sources.running_[777203] = kBob;
    }
  }
  void add(const ProcessId& id, const std::string& comm, std::uint32_t owner, const std::vector<std::string>& stack,
           std::uint64_t samples) {
    store::ProcessInfo info{id, comm, "/usr/bin/" + comm, 0, WallTime{FakeSources::kNowNs - kNsPerMinute}, {}};
    info.command_line = "/usr/bin/" + comm + " --password=" + comm;
    info.unit = comm + ".service";
    info.cgroup = "/system.slice/" + info.unit;
    sources.store_.update_process(info);
    sources.add_samples(id, comm, stack, samples, 30 * kNsPerSecond, owner);
  }
  Response ask(const Peer& peer, const std::string& target) {
    Request request{"GET", target, "", false};
    request.peer = peer;
    request.host = "localhost:9090";
    return router.handle(request);
  }
  Response ask_as(uid_t user, const std::string& target) { return ask({Transport::kLoopback, user}, target); }

  ScratchFile token_file{kToken};
  FakeSources sources;
  Access access{names(), is_operator, tokens_of(token_file)};
  Router router{sources, access, [](WallTime) { return std::int64_t{0}; }};
};

std::string text_of(const Response& response) {
  std::string text = std::to_string(response.status) + " " + response.content_type + "\n";
  for (const auto& [name, value] : response.headers) text.append(name).append(": ").append(value).append("\n");
  return text + "\n" + response.body;
}

Viewer viewer_of(const Access& access, const Peer& peer) {
  Request request;
  request.peer = peer;
  request.host = "localhost:9090";
  const auto judged = access.judge(request, false);
  REQUIRE(std::holds_alternative<Viewer>(judged));
  return std::get<Viewer>(judged);
}

TEST_CASE("what a local caller sees depends on the connection's owner and not on the kind of socket") {
  struct Case {
    std::optional<uid_t> user;
    Viewer::Sees sees;
  };
  const Case cases[] = {
      {0, Viewer::Sees::kEverything},         {kOperator, Viewer::Sees::kEverything},
      {kAlice, Viewer::Sees::kOwn},           {kOfContainer, Viewer::Sees::kOwn},
      {std::nullopt, Viewer::Sees::kNothing}, {store::kNoUser, Viewer::Sees::kNothing},
  };
  const Access access(names(), is_operator);
  for (const Transport transport : {Transport::kUnix, Transport::kLoopback}) {
    for (const Case& c : cases) {
      CAPTURE(static_cast<int>(transport), c.user.value_or(0));
      const Viewer viewer = viewer_of(access, {transport, c.user});
      CHECK(viewer.sees == c.sees);
      if (c.sees == Viewer::Sees::kOwn) CHECK(viewer.uid == *c.user);
    }
  }
}

TEST_CASE("data of one user are shown to this user and to root, and to nobody else") {
  Host host;
  const Access access(names(), kAlice);
  Router router{host.sources, access, [](WallTime) { return std::int64_t{0}; }};
  const auto ask = [&](const Peer& peer, const std::string& target, const std::string& authorization = "") {
    Request request{"GET", target, "", false};
    request.peer = peer;
    request.host = "localhost:9090";
    request.authorization = authorization;
    return router.handle(request);
  };
  const std::string target = "/profile?format=folded";
  for (const uid_t user : {kAlice, uid_t{0}}) {
    const Response response = ask({Transport::kLoopback, user}, target);
    CHECK(response.status == 200);
    CHECK(response.body.find("bobs_secret") != std::string::npos);
  }
  for (const uid_t user : {kBob, kOperator, kOfContainer}) {
    for (const std::string& data : data_targets()) CHECK(ask({Transport::kLoopback, user}, data).status == 403);
    CHECK(ask({Transport::kUnix, user}, target).body.find("not-the-owner") != std::string::npos);
    CHECK(ask({Transport::kUnix, user}, "/healthz").status == 200);
  }
  CHECK(ask({Transport::kLoopback, std::nullopt}, target).body.find("unknown-user") != std::string::npos);
  CHECK(ask({Transport::kRemote, std::nullopt}, target, std::string("Bearer ") + kToken).status == 401);
}

TEST_CASE("a caller on another host is answered with a token and not without") {
  const ScratchFile file(kToken);
  const Access access(names(), is_operator, tokens_of(file));
  const Access without_tokens(names(), is_operator);
  Request request;
  // The user that such a caller claims to be is ignored.
  request.peer = {Transport::kRemote, 0};
  request.host = "localhost:9090";
  const auto status = [&](const Access& of) {
    const auto judged = of.judge(request, false);
    const auto* problem = std::get_if<Problem>(&judged);
    return problem != nullptr ? problem->status : 200;
  };
  CHECK(status(access) == 401);
  request.authorization = "Bearer wrong-wrong-wrong-wrong";
  CHECK(status(access) == 401);
  request.authorization = std::string("Basic ") + kToken;
  CHECK(status(access) == 401);
  request.authorization = std::string("Bearer ") + kToken;
  CHECK(status(access) == 200);
  CHECK(status(without_tokens) == 401);
  // A caller with the token may use any name of the host.
  request.host = "build7.example:9090";
  CHECK(status(access) == 200);
}

TEST_CASE("who has a token that names a user sees what this user may see") {
  constexpr const char* kSecret = "abcdefabcdefabcdefabcdef";
  struct Case {
    const char* user;
    std::optional<Viewer> viewer;  ///< none: refused
  };
  const Case cases[] = {
      {"", Viewer{Viewer::Sees::kEverything, store::kNoUser, true}},
      {"root", Viewer{Viewer::Sees::kEverything, 0, true}},
      {"operator", Viewer{Viewer::Sees::kEverything, kOperator, true}},
      {"alice", Viewer{Viewer::Sees::kOwn, kAlice, true}},
      {"nobody-here", std::nullopt},
  };
  const auto find_user = [](const std::string& name) -> std::optional<uid_t> {
    if (name == "root") return 0;
    if (name == "operator") return kOperator;
    return name == "alice" ? std::optional(kAlice) : std::nullopt;
  };
  for (const Case& c : cases) {
    CAPTURE(c.user);
    const ScratchFile file(std::string(kToken) + "\n" + kSecret + " " + c.user);
    const Access access(names(), is_operator, tokens_of(file), find_user);
    // A local connection's own user does not count.
    for (const Peer& peer :
         {Peer{Transport::kRemote, {}}, Peer{Transport::kLoopback, 0}, Peer{Transport::kUnix, kBob}}) {
      Request request;
      request.peer = peer;
      request.host = peer.transport == Transport::kUnix ? "localhost" : "build7.example:9090";
      request.authorization = std::string("Bearer ") + kSecret;
      const auto judged = access.judge(request, false);
      REQUIRE(std::holds_alternative<Viewer>(judged) == c.viewer.has_value());
      if (c.viewer) CHECK((std::get<Viewer>(judged) == *c.viewer));
      if (!c.viewer) {
        CHECK(std::get<Problem>(judged).status == 401);
        CHECK(std::get<Problem>(judged).detail.find(c.user) != std::string::npos);
      }
    }
  }
}

/// What the viewer gets of a source of Alice's process.
std::string source_for(const Viewer& viewer, Host& host, const ProcessId& process = kAlices) {
  ViewerSources sources(host.sources, viewer, [](uid_t user) { return std::vector<gid_t>{user, 4}; });
  const SourceFile file = sources.source_file({process, {}, kFirstFreeModule, "/a.c"});
  return file.reason.empty() ? file.text : file.reason;
}

TEST_CASE("text of sources is for the process's own user and for root, who connect themselves") {
  Host host;
  host.sources.running_[kAlices.pid] = kAlice;
  host.sources.source_file_ = {{}, "text"};
  CHECK(source_for({Viewer::Sees::kOwn, kAlice}, host) == "text");
  const SourceQuestion asked = host.sources.asked_sources_.back();
  CHECK(asked.viewer == kAlice);
  CHECK(asked.groups == std::vector<std::uint32_t>{kAlice, 4});
  CHECK(source_for({Viewer::Sees::kEverything, 0}, host) == "text");
  CHECK(host.sources.asked_sources_.back().viewer == 0);
  // An operator's own process.
  host.sources.running_[300] = kOperator;
  CHECK(source_for({Viewer::Sees::kEverything, kOperator}, host, {300, 1}) == "text");

  host.sources.asked_sources_.clear();
  const std::string other = "its process belongs to another user";
  CHECK(source_for({Viewer::Sees::kEverything, kOperator}, host) == other);
  CHECK(source_for({Viewer::Sees::kOwn, kBob}, host) == other);
  CHECK(source_for({Viewer::Sees::kNothing}, host) == "it is not known who asks");
  const std::string token = "text of sources is not shown to clients with a token";
  CHECK(source_for({Viewer::Sees::kEverything, store::kNoUser, true}, host) == token);
  CHECK(source_for({Viewer::Sees::kEverything, 0, true}, host) == token);
  CHECK(source_for({Viewer::Sees::kOwn, kAlice, true}, host) == token);
  host.sources.running_.erase(kAlices.pid);
  CHECK(source_for({Viewer::Sees::kOwn, kAlice}, host) == "its process has ended");
  CHECK(host.sources.asked_sources_.empty());
}

TEST_CASE("a client with a token gets lines, and no text, from the route as well") {
  Host host;
  host.sources.running_[kAlices.pid] = kAlice;
  host.sources.source_file_ = {{}, "one\ntwo\n"};
  for (auto& [offset, frame] : host.sources.namer_.names) {
    frame.file = "/src/a.c";
    frame.line = 2;
  }
  const std::string target = "/source?function=alices_work&text=1";
  Request request{"GET", target, "", false};
  request.peer = {Transport::kLoopback, 0};
  request.host = "localhost:9090";
  CHECK(host.router.handle(request).body.find(R"({"line":2,"text":"two"})") != std::string::npos);
  request.authorization = std::string("Bearer ") + kToken;
  const std::string body = host.router.handle(request).body;
  CHECK(body.find("two") == std::string::npos);
  CHECK(body.find(R"("line":2)") != std::string::npos);
  CHECK(body.find("not shown to clients with a token") != std::string::npos);
  CHECK(host.ask_as(kOperator, target).body.find("its process belongs to another user") != std::string::npos);
  // Without being asked for it, nobody reads files.
  host.sources.asked_sources_.clear();
  CHECK(host.ask_as(0, "/source?function=alices_work").body.find("texts") == std::string::npos);
  CHECK(host.sources.asked_sources_.empty());
}

TEST_CASE("users of this host are found by name") {
  CHECK(find_user_of_host("root") == uid_t{0});
  CHECK_FALSE(find_user_of_host("no-such-user-of-flamed").has_value());
}

TEST_CASE("a caller on another host without a token gets nothing but the hint that it needs one") {
  Host host;
  for (const std::string_view path : Router::paths()) {
    CAPTURE(path);
    const Response response = host.ask({Transport::kRemote, std::nullopt}, std::string(path));
    CHECK(response.status == 401);
    CHECK(text_of(response).find("WWW-Authenticate: Bearer") != std::string::npos);
    CHECK(response.body.find("Authorization: Bearer TOKEN") != std::string::npos);
  }
}

TEST_CASE("clients on other hosts get binary columns compressed and may cache them, local clients do not") {
  Host host;
  Request request{"GET", "/profile?from=now-1h&to=now-11s&format=columns-binary", "gzip", false};
  request.host = "localhost:9090";
  request.authorization = std::string("Bearer ") + kToken;
  const auto says = [&](Transport transport, std::string_view header) {
    request.peer = {transport, std::nullopt};
    return text_of(host.router.handle(request)).find(header) != std::string::npos;
  };
  constexpr std::string_view kPacked = "Content-Encoding: gzip";
  constexpr std::string_view kKept = "ETag: ";
  CHECK(says(Transport::kRemote, kPacked));
  CHECK(says(Transport::kRemote, kKept));
  for (const Transport transport : {Transport::kLoopback, Transport::kUnix}) {
    CHECK_FALSE(says(transport, kPacked));
    CHECK_FALSE(says(transport, kKept));
    CHECK(says(transport, "Cache-Control: no-store"));
  }
  request.target = "/profile?from=now-1h&to=now-11s&format=columns";
  CHECK(says(Transport::kLoopback, kPacked));
  CHECK(says(Transport::kLoopback, kKept));
}

TEST_CASE("callers with different users or views never share an answer") {
  Host host;
  struct Caller {
    std::string who;
    Peer peer;
    bool has_token = false;
    int sees_as;  ///< callers with the same number may share
  };
  const std::vector<Caller> callers = {
      {"root", {Transport::kUnix, 0}, false, 0},
      {"root over TCP", {Transport::kLoopback, 0}, false, 0},
      {"a member of the group", {Transport::kUnix, kOperator}, false, 1},
      {"Alice", {Transport::kUnix, kAlice}, false, 2},
      {"Alice over TCP", {Transport::kLoopback, kAlice}, false, 2},
      {"Alice with the token", {Transport::kLoopback, kAlice}, true, 3},
      {"Bob", {Transport::kLoopback, kBob}, false, 4},
      {"a container's root", {Transport::kLoopback, kOfContainer}, false, 5},
      {"another host", {Transport::kRemote, std::nullopt}, true, 6},
  };
  const auto question_of = [&](const Caller& caller) {
    Request request{"GET", "/profile", "", false};
    request.peer = caller.peer;
    request.host = "localhost:9090";
    if (caller.has_token) request.authorization = std::string("Bearer ") + kToken;
    const auto question = Router::shareable(request, host.router.plan(request));
    REQUIRE(question.has_value());
    return *question;
  };
  for (const Caller& one : callers) {
    for (const Caller& other : callers) {
      INFO(one.who << ", " << other.who);
      CHECK((question_of(one) == question_of(other)) == (one.sees_as == other.sees_as));
    }
  }
  Request nobody{"GET", "/profile", "", false};
  nobody.peer = {Transport::kLoopback, std::nullopt};
  nobody.host = "localhost:9090";
  CHECK_FALSE(Router::shareable(nobody, host.router.plan(nobody)).has_value());
}

TEST_CASE("a wrong token is refused from every caller, also from root") {
  Host host;
  Request request{"GET", "/processes", "", false};
  request.peer = {Transport::kUnix, 0};
  request.authorization = "Bearer wrong-wrong-wrong-wrong";
  CHECK(host.router.handle(request).status == 401);
}

TEST_CASE("a local user with the token sees everything") {
  Host host;
  Request request{"GET", "/processes", "", false};
  request.peer = {Transport::kLoopback, kAlice};
  request.host = "localhost:9090";
  request.authorization = std::string("Bearer ") + kToken;
  CHECK(host.router.handle(request).body.find("bobs-worker") != std::string::npos);
}

TEST_CASE("a caller whom the kernel can't identify gets only routes that show no process") {
  Host host;
  for (const std::string_view path : Router::paths()) {
    CAPTURE(path);
    const bool is_open = path == "/" || path == "/healthz" || path == "/readyz" || path == "/metrics" ||
                         path == "/openapi.json" || path == "/version";
    CHECK(host.ask({Transport::kLoopback, std::nullopt}, std::string(path)).status == (is_open ? 200 : 403));
  }
}

TEST_CASE("the open routes answer root, group members and unknown callers alike") {
  Host host;
  for (const std::string path : {"/healthz", "/readyz", "/version", "/openapi.json"}) {
    CAPTURE(path);
    const std::string roots = text_of(host.ask_as(0, path));
    CHECK(text_of(host.ask_as(kAlice, path)) == roots);
    CHECK(text_of(host.ask({Transport::kLoopback, std::nullopt}, path)) == roots);
  }
}

TEST_CASE("a user's answers are, byte for byte, those of a host without other users' processes") {
  Host shared;
  Host alone(false);
  for (const std::string& target : data_targets()) {
    CAPTURE(target);
    const Response seen = shared.ask_as(kAlice, target);
    CHECK(text_of(seen) == text_of(alone.ask_as(kAlice, target)));
    CHECK((seen.status == 200));
  }
}

TEST_CASE("the owner of a process that is not dumpable learns only that it exists, by any route, and root sees all") {
  Host host;
  const ProcessId hidden{301, 6000};
  store::ProcessInfo info{hidden, "dropped", "/opt/secret-program", 0, WallTime{FakeSources::kNowNs - kNsPerMinute},
                          {}};
  host.sources.store_.update_process(info);
  host.sources.add_samples(hidden, "dropped", {"secret_main", "secret_work"}, 7, 30 * kNsPerSecond, kAlice, true);
  std::vector<std::string> targets = data_targets();
  for (const char* query : {"?pid=301", "?pid=301&group=thread", "?pid=301&group=exe", "?exe=/opt/secret-program",
                            "?exe=secret-program", "?focus=secret", "?root=secret_main", "?pid=301&side=user"}) {
    for (const char* format :
         {"flamegraph", "columns", "folded", "pprof", "speedscope", "perf-script", "samples", "top-text"}) {
      targets.push_back(std::string("/profile") + query + "&format=" + format);
    }
  }
  for (const std::string& target : targets) {
    CAPTURE(target);
    // The answer repeats what was asked for, and has nothing else.
    const std::string seen = text_of(host.ask_as(kAlice, target));
    CHECK(seen.find("secret_work") == std::string::npos);
    if (target.find("secret") == std::string::npos) CHECK(seen.find("secret-") == std::string::npos);
  }
  const Response folded = host.ask_as(kAlice, "/profile?pid=301&format=folded");
  CHECK(folded.body == "[not shown] 7\n");
  CHECK(host.ask_as(kAlice, "/profile?exe=secret-program&format=folded").body.find(" 7") == std::string::npos);
  CHECK(host.ask_as(0, "/profile?pid=301&format=folded").body == "secret_main;secret_work 7\n");
  CHECK(host.ask_as(0, "/processes").body.find("/opt/secret-program") != std::string::npos);
  CHECK(host.ask_as(kAlice, "/processes").body.find("\"pid\":301") != std::string::npos);
}

TEST_CASE("another user's pid is answered like one that does not exist") {
  Host host;
  for (const std::string parameter : {"pid", "tree"}) {
    for (const std::string path :
         {"/profile", "/processes", "/threads", "/timeline", "/heatmap", "/diff", "/debug/pprof/profile"}) {
      const auto ask = [&](const std::string& pid) {
        std::string target = path;
        target.append("?from=now-1m&").append(parameter).append("=").append(pid);
        std::string text = text_of(host.ask_as(kAlice, target));
        for (std::size_t at = text.find(pid); at != std::string::npos; at = text.find(pid)) {
          text.replace(at, pid.size(), "PID");
        }
        return text;
      };
      CAPTURE(path, parameter);
      const std::string nobodys = ask("777999");
      CHECK(nobodys.substr(0, 3) == "404");
      CHECK(ask("777202") == nobodys);  // sampled
      CHECK(ask("777203") == nobodys);  // running
      CHECK(ask("777202@5001") == ask("777999@5001"));
    }
  }
}

TEST_CASE("a measurement of waits knows for whom it is, so that wakers of other users are not told") {
  class MeasuringSources : public FakeSources {
   public:
    std::optional<OffCpuRefusal> begin_off_cpu(const OffCpuRequest& request) override {
      asked = request;
      return std::nullopt;
    }
    OffCpuRequest asked;
  };
  MeasuringSources sources;
  sources.running_[kAlices.pid] = kAlice;
  const auto asked_by = [&](const Viewer& viewer) {
    ViewerSources seen(sources, viewer);
    CHECK_FALSE(seen.begin_off_cpu({.processes = {kAlices.pid}}));
    return sources.asked;
  };
  CHECK(asked_by({Viewer::Sees::kOwn, kAlice}).only_user == kAlice);
  CHECK(asked_by({Viewer::Sees::kOwn, kAlice}).is_limited);
  CHECK_FALSE(asked_by({Viewer::Sees::kEverything, 0}).only_user);
  CHECK_FALSE(asked_by({Viewer::Sees::kEverything, 0}).is_limited);
}

TEST_CASE("a running process without samples is visible to its owner") {
  Host host;
  CHECK(host.ask_as(kBob, "/profile?pid=777203").status == 200);
  CHECK(host.ask_as(0, "/profile?pid=777203").status == 200);
}

TEST_CASE("root and group members see all users' processes, others are told that they do not") {
  Host host;
  for (const std::string& target : data_targets()) {
    CAPTURE(target);
    CHECK(text_of(host.ask_as(kOperator, target)) == text_of(host.ask_as(0, target)));
  }
  CHECK(host.ask_as(0, "/profile").body.find("bobs_secret") != std::string::npos);
  CHECK(host.ask_as(0, "/profile").body.find("\"visible_uid\":null") != std::string::npos);
  CHECK(host.ask_as(kAlice, "/profile").body.find("\"visible_uid\":1001") != std::string::npos);
  CHECK(host.ask_as(kAlice, "/timeline").body.find("\"visible_uid\":1001") != std::string::npos);
  CHECK(text_of(host.ask_as(kAlice, "/profile?format=folded")).find("Flamed-Visible: uid=1001") != std::string::npos);
  CHECK(text_of(host.ask_as(0, "/profile?format=folded")).find("Flamed-Visible") == std::string::npos);
  CHECK(host.ask_as(kAlice, "/profile?format=top-text").body.find("uid 1001 only") != std::string::npos);
}

TEST_CASE("a user in a container has the uid of the host") {
  Host host;
  host.add({301, 6000}, "contained", kOfContainer, {"inside"}, 9);
  CHECK(host.ask_as(kOfContainer, "/profile").body.find("inside") != std::string::npos);
  CHECK(host.ask_as(kAlice, "/profile").body.find("inside") == std::string::npos);
  CHECK(host.ask_as(kOfContainer, "/profile").body.find("bobs") == std::string::npos);
}

TEST_CASE("only callers who see everything learn where the kernel lies in memory") {
  Host host;
  const std::uint64_t address = 0xffffffffa1234560ULL;
  const std::vector<Frame> frames{{kFirstFreeModule, 1}, {kKernelModule, address}};
  host.sources.namer_.names[address] = {"[unknown] (kernel+0xffffffffa1234560)", "[kernel]", store::FrameKind::kUnknown,
                                        "no symbol"};
  store::StackSample sample{
      {host.sources.clock_.monotonic().ns - 30 * kNsPerSecond}, kAlices, kAlices.pid, "alice", frames, {}};
  sample.owner = kAlice;
  host.sources.store_.add(sample);
  for (const char* format : {"flamegraph", "columns", "columns-binary", "folded", "speedscope", "perf-script",
                             "samples", "top", "top-text"}) {
    CAPTURE(format);
    const std::string target = std::string("/profile?format=") + format;
    CHECK(text_of(host.ask_as(kAlice, target)).find("ffffffffa1234560") == std::string::npos);
  }
  CHECK(host.ask_as(0, "/profile?format=perf-script").body.find("ffffffffa1234560") != std::string::npos);
  CHECK(host.ask_as(0, "/profile?format=folded").body.find("ffffffffa1234560") != std::string::npos);
}

TEST_CASE("a note that nothing ever matched is about what the viewer may see") {
  Host host;
  for (const char* filter : {"comm=bobs-worker", "unit=bobs-worker.service", "tid=777202", "focus=bobs_secret"}) {
    INFO(filter);
    const std::string target = std::string("/profile?from=now-20s&format=flamegraph&") + filter;
    CHECK(host.ask_as(0, target).body.find("\"matched_ever\":true") != std::string::npos);
    CHECK(host.ask_as(kBob, target).body.find("\"matched_ever\":true") != std::string::npos);
    const std::string told = host.ask_as(kAlice, target).body;
    CHECK(told.find("\"matched_ever\":false") != std::string::npos);
    CHECK(told.find("No sample in all that is retained of processes of uid 1001, from") != std::string::npos);
  }
  // Without a selection, all that she may see is selected.
  const uid_t carol = 1009;
  const std::string hers = host.ask_as(carol, "/threads").body;
  CHECK(hers.find("There is no sample in all that is retained of processes of uid 1009, from") != std::string::npos);
}

TEST_CASE("an answer has a different tag for each viewer, and no shared cache may keep it") {
  Host host;
  const auto header = [](const Response& response, std::string_view name) {
    const auto found = std::find_if(response.headers.begin(), response.headers.end(),
                                    [&](const auto& entry) { return entry.first == name; });
    return found == response.headers.end() ? std::string() : found->second;
  };
  // No user has samples in the window, and each has some before it.
  const std::string target = "/profile?from=now-25s&to=now-11s&format=perf-script";
  const Response roots = host.ask_as(0, target);
  const Response alices = host.ask_as(kAlice, target);
  const Response bobs = host.ask_as(kBob, target);
  REQUIRE(roots.body == alices.body);
  REQUIRE(bobs.body == alices.body);
  REQUIRE_FALSE(header(roots, "ETag").empty());
  CHECK(header(roots, "ETag") != header(alices, "ETag"));
  CHECK(header(bobs, "ETag") != header(alices, "ETag"));
  CHECK(header(roots, "ETag") == header(host.ask_as(kOperator, target), "ETag"));
  CHECK(header(alices, "Cache-Control") == "private, no-cache");
  CHECK(header(alices, "Vary").find("Authorization") != std::string::npos);
}

TEST_CASE("a request that will be refused does not wait") {
  Host host;
  const auto wait = [&](const Peer& peer, const std::string& name) {
    Request request{"GET", "/profile?seconds=5", "", false};
    request.peer = peer;
    request.host = name;
    return Router::wait_ns(request, host.router.plan(request));
  };
  CHECK(wait({Transport::kLoopback, kAlice}, "localhost:9090").has_value());
  CHECK_FALSE(wait({Transport::kLoopback, kAlice}, "evil.example:9090").has_value());
  CHECK_FALSE(wait({Transport::kLoopback, std::nullopt}, "localhost:9090").has_value());
  CHECK_FALSE(wait({Transport::kRemote, std::nullopt}, "localhost:9090").has_value());
}

TEST_CASE("a page of another site, or under another host name, gets 403 for any request of any user") {
  struct Case {
    const char* host;
    const char* origin;
    const char* site;
    const char* mode = "";
    const char* dest = "";
  };
  constexpr const char* kOwn = "localhost:9090";
  const Case cases[] = {
      // DNS rebinding: the browser takes flamed for the host of the page.
      {"evil.example", "", ""},
      {"evil.example:9090", "", ""},
      {"evil.example:9090", "http://evil.example:9090", "same-origin"},
      {"localhost.evil.example:9090", "", ""},
      {"127.0.0.1.evil.example:9090", "", ""},
      {"localhost:9090.evil.example", "", ""},
      {"localhost.:9090", "", ""},
      {"evil.example@localhost:9090", "", ""},
      {"localhost:9090@evil.example", "", ""},
      {"localhost:9090, evil.example", "", ""},
      {"evil.example, localhost:9090", "", ""},
      {"", "", ""},
      // Not the address or the port that flamed listens on.
      {"localhost", "", ""},
      {"localhost:80", "", ""},
      {"localhost:9091", "", ""},
      {"127.0.0.2:9090", "", ""},
      {"0.0.0.0:9090", "", ""},
      {"[::1]:9090", "", ""},
      {"[::ffff:127.0.0.1]:9090", "", ""},
      {"10.0.0.5:9090", "", ""},
      {"2130706433:9090", "", ""},
      {"0x7f.1:9090", "", ""},
      // Another site's page, with the right host name.
      {kOwn, "http://evil.example", ""},
      {kOwn, "http://evil.example", "cross-site", "cors", "empty"},
      {kOwn, "https://localhost:9090", ""},
      {kOwn, "http://localhost:8080", "same-site", "cors", "empty"},
      {kOwn, "http://localhost", ""},
      {kOwn, "http://localhost:9090.evil.example", ""},
      {kOwn, "http://127.0.0.1:9090", ""},
      {kOwn, "null", ""},
      {kOwn, "file://", ""},
      {kOwn, "", "cross-site"},
      {kOwn, "", "same-site"},
      {kOwn, "", "cross-site", "no-cors", "script"},
      {kOwn, "", "cross-site", "no-cors", "image"},
      {kOwn, "", "cross-site", "navigate", "iframe"},
      {kOwn, "", "cross-site", "websocket", "empty"},
      {kOwn, "", "nonsense"},
  };
  Host host;
  for (const Case& c : cases) {
    for (const std::string path : {"/", "/profile", "/processes", "/healthz", "/metrics", "/nothing"}) {
      for (const uid_t user : {uid_t{0}, kOperator, kAlice}) {
        CAPTURE(c.host, c.origin, c.site, c.mode, c.dest, path, user);
        Request request{"GET", path, "", false};
        request.peer = {Transport::kLoopback, user};
        request.host = c.host;
        request.origin = c.origin;
        request.sec_fetch_site = c.site;
        request.sec_fetch_mode = c.mode;
        request.sec_fetch_dest = c.dest;
        CHECK(host.router.handle(request).status == 403);
      }
    }
  }
}

TEST_CASE("flamed's own page, curl and a browser's address bar are answered") {
  struct Case {
    const char* host;
    const char* origin;
    const char* site;
  };
  const Case cases[] = {
      {"localhost:9090", "", ""},
      {"127.0.0.1:9090", "", ""},
      {"localhost:9090", "", "none"},
      {"localhost:9090", "", "same-origin"},
      {"127.0.0.1:9090", "http://127.0.0.1:9090", "same-origin"},
  };
  Host host;
  for (const Case& c : cases) {
    CAPTURE(c.host, c.origin, c.site);
    Request request{"GET", "/processes", "", false};
    request.peer = {Transport::kLoopback, 0};
    request.host = c.host;
    request.origin = c.origin;
    request.sec_fetch_site = c.site;
    CHECK(host.router.handle(request).status == 200);
  }
}

TEST_CASE("a link on another site opens the page, but no data") {
  Host host;
  Request request{"GET", "/?pid=201&from=14:00", "", false};
  request.peer = {Transport::kLoopback, kAlice};
  request.host = "localhost:9090";
  request.sec_fetch_site = "cross-site";
  request.sec_fetch_mode = "navigate";
  request.sec_fetch_dest = "document";
  CHECK(host.router.handle(request).status == 200);
  request.sec_fetch_mode = "no-cors";
  CHECK(host.router.handle(request).status == 403);
  request.sec_fetch_mode = "navigate";
  for (const std::string path : {"/profile?pid=201", "/processes", "/openapi.json"}) {
    request.target = path;
    CHECK(host.router.handle(request).status == 403);
  }
}

TEST_CASE("only flamed's own page may use an answer") {
  Host host;
  for (const std::string path : {"/", "/profile", "/nothing", "/healthz"}) {
    const std::string text = text_of(host.ask_as(0, path));
    CAPTURE(path);
    CHECK(text.find("Access-Control-") == std::string::npos);
    for (const char* header : {"X-Content-Type-Options: nosniff", "Referrer-Policy: no-referrer",
                               "Cross-Origin-Resource-Policy: same-origin", "Cross-Origin-Opener-Policy: same-origin",
                               "frame-ancestors 'none'", "default-src 'self'"}) {
      CAPTURE(header);
      CHECK(text.find(header) != std::string::npos);
    }
  }
}

}  // namespace
}  // namespace flamed::api
