// SPDX-License-Identifier: Apache-2.0
//
// GET and POST of /marks, without a socket.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/answer/notes.h"
#include "api/answer/routes.h"
#include "store/model/wait_reason.h"
#include "test/catch.h"
#include "test/unit/api/answer/fake_sources.h"

namespace flamed::api {
namespace {

using nlohmann::json;
using Transport = Peer::Transport;

constexpr uid_t kAlice = 1001;
constexpr uid_t kOperator = 1003;  // a member of the group
constexpr std::int64_t kNowMs = FakeSources::kNowNs / kNsPerMs;

struct Host {
  Host() { sources.add_samples({123, 4567}, "worker", {"main"}, 20, 0); }

  Response ask(Request request, uid_t user) {
    request.peer = {Transport::kLoopback, user};
    request.host = "localhost:9090";
    return router.handle(request);
  }
  Response post(const std::string& body, uid_t user = 0, const std::string& content_type = "application/json") {
    Request request{"POST", "/marks", "", false};
    request.content_type = content_type;
    request.body = body;
    return ask(request, user);
  }
  json marks(uid_t user = 0, const std::string& query = "") {
    // A window has no sample of its end.
    sources.clock_.advance_ns(kNsPerMs);
    const Response response = ask({"GET", "/marks" + query, "", false}, user);
    REQUIRE(response.status == 200);
    return json::parse(response.body)["marks"];
  }
  std::vector<std::string> notes(uid_t user = 0, const std::string& query = "") {
    std::vector<std::string> texts;
    for (const json& mark : marks(user, query)) {
      if (mark["kind"] == "note") texts.push_back(mark["text"].get<std::string>());
    }
    return texts;
  }

  static HostNames names() {
    HostNames names;
    names.add("127.0.0.1", 9090);
    return names;
  }
  FakeSources sources{{}, 10 * kNsPerMinute};
  Access access{names(), [](uid_t user) { return user == kOperator; }};
  Router router{sources, access, [](WallTime) { return std::int64_t{0}; }};
};

/// Ten minutes after the start.
struct LaterHost : Host {
  LaterHost() { sources.clock_.advance_ns(10 * kNsPerMinute); }
};

std::string kind_of(const Response& response) { return json::parse(response.body)["type"].get<std::string>(); }

TEST_CASE("a mark that was set is in the marks of its window") {
  LaterHost host;
  const Response response = host.post(R"({"text": "deploy 1.2.3 \u00fc"})");
  CHECK(response.status == 201);
  const json mark = json::parse(response.body);
  CHECK(mark["time_ms"] == kNowMs);
  CHECK(mark["time"] == "2026-01-31T14:05:30.000Z");
  CHECK(mark["kind"] == "note");
  CHECK(mark["text"] == "deploy 1.2.3 \xc3\xbc");
  CHECK(mark["uid"] == 0);

  CHECK(host.post(R"({"time_ms": )" + std::to_string(kNowMs - 60'000) + R"(, "text": "earlier"})", kOperator).status ==
        201);
  CHECK(host.notes() == std::vector<std::string>{"earlier", "deploy 1.2.3 \xc3\xbc"});
  CHECK(host.notes(kOperator, "?to=now-30s") == std::vector<std::string>{"earlier"});
  CHECK(host.notes(0, "?from=now-30s").size() == 1);
  CHECK(host.marks(0)[0]["text"] == "flamed started");
  CHECK(host.marks(0, "?from=now-30s").size() == 1);
}

TEST_CASE("marks are set and seen by those who see everything, and by nobody else") {
  LaterHost host;
  REQUIRE(host.post(R"({"text": "secret"})").status == 201);
  const Response refused = host.post(R"({"text": "x"})", kAlice);
  CHECK(refused.status == 403);
  CHECK(kind_of(refused) == "urn:flamed:problem:may-not-mark");
  // A refused client learns nothing else, not even that its body was wrong.
  CHECK(host.post("", kAlice, "text/plain").status == 403);
  CHECK(host.notes(kAlice).empty());
  CHECK(host.marks(kAlice)[0]["text"] == "flamed started");
  CHECK(host.notes(kOperator).size() == 1);

  Request unknown{"POST", "/marks", "", false};
  unknown.host = "localhost:9090";
  unknown.peer = {Transport::kLoopback, std::nullopt};
  CHECK(host.router.handle(unknown).status == 403);
  unknown.peer = {Transport::kRemote, std::nullopt};
  CHECK(host.router.handle(unknown).status == 401);
}

TEST_CASE("no page of another site can set a mark") {
  LaterHost host;
  struct Case {
    const char* host;
    const char* origin;
    const char* site;
    int status;
  };
  for (const Case& c :
       {Case{"localhost:9090", "http://localhost:9090", "same-origin", 201}, Case{"localhost:9090", "", "", 201},
        Case{"localhost:9090", "http://evil.example", "cross-site", 403},
        Case{"localhost:9090", "http://localhost:8080", "same-site", 403}, Case{"localhost:9090", "null", "", 403},
        Case{"localhost:9090", "", "cross-site", 403},
        Case{"evil.example:9090", "http://evil.example:9090", "same-origin", 403}}) {
    CAPTURE(c.host, c.origin, c.site);
    Request request{"POST", "/marks", "", false};
    request.content_type = "application/json";
    request.body = R"({"text": "x"})";
    request.peer = {Transport::kLoopback, 0};
    request.host = c.host;
    request.origin = c.origin;
    request.sec_fetch_site = c.site;
    request.sec_fetch_mode = "cors";
    CHECK(host.router.handle(request).status == c.status);
  }
  CHECK(host.notes().size() == 2);
}

TEST_CASE("a bad mark is answered with what is wrong") {
  struct Case {
    std::string body;
    std::string said;
  };
  const std::string past = std::to_string(kNowMs - 3'600'000);
  const std::string future = std::to_string(kNowMs + 1000);
  const std::vector<Case> cases = {
      {"", "not JSON"},
      {"{", "not JSON"},
      {"{\"text\": \"\xff\"}", "not JSON"},
      {"[]", "not a JSON object"},
      {"null", "not a JSON object"},
      {"{}", "needs a \"text\""},
      {R"({"text": ""})", "needs a \"text\""},
      {R"({"text": 1})", "not a string"},
      {R"({"text": "x", "kind": "note"})", "has only"},
      {R"({"text": "a\nb"})", "control characters"},
      {R"({"text": "a\u0000b"})", "control characters"},
      {R"({"text": "a\u0085b"})", "control characters"},
      {R"({"text": "a\u007fb"})", "control characters"},
      {R"({"text": ")" + std::string(201, 'x') + "\"}", "201 bytes"},
      {R"({"text": "x", "time_ms": "now"})", "not a whole number"},
      {R"({"text": "x", "time_ms": 1.5})", "not a whole number"},
      {R"({"text": "x", "time_ms": -1})", "1970 to 2199"},
      {R"({"text": "x", "time_ms": 9223372036854775807})", "1970 to 2199"},
      {R"({"text": "x", "time_ms": 18446744073709551615})", "1970 to 2199"},
      {R"({"text": "x", "time_ms": )" + past + "}", "samples are kept from 2026-01-31T13:55:30.000Z"},
      {R"({"text": "x", "time_ms": )" + future + "}", "must be among them"},
      {std::string(2000, '['), "not JSON"},
  };
  LaterHost host;
  for (const Case& c : cases) {
    INFO(c.body);
    const Response response = host.post(c.body);
    CHECK(response.status == 400);
    CHECK(kind_of(response) == "urn:flamed:problem:bad-mark");
    const auto detail = json::parse(response.body)["detail"].get<std::string>();
    INFO(detail);
    CHECK(detail.find(c.said) != std::string::npos);
  }
  CHECK(host.notes().empty());
  CHECK(host.post(R"({"text": ")" + std::string(200, 'x') + "\"}").status == 201);
}

TEST_CASE("a mark must be sent as JSON") {
  LaterHost host;
  const std::string body = R"({"text": "x"})";
  for (const std::string type : {"", "text/plain", "application/x-www-form-urlencoded", "application/jsonx", "json"}) {
    INFO(type);
    const Response response = host.post(body, 0, type);
    CHECK(response.status == 415);
    CHECK(kind_of(response) == "urn:flamed:problem:not-json");
  }
  CHECK(host.post(body, 0, "Application/JSON; charset=utf-8").status == 201);
}

TEST_CASE("methods other than GET, HEAD and POST are refused, and POST takes no parameters") {
  LaterHost host;
  for (const std::string method : {"PUT", "DELETE", "PATCH"}) {
    const Response response = host.ask({method, "/marks", "", false}, 0);
    CHECK(response.status == 405);
    CHECK(std::find(response.headers.begin(), response.headers.end(),
                    std::pair<std::string, std::string>{"Allow", "GET, HEAD, POST"}) != response.headers.end());
  }
  CHECK(host.ask({"POST", "/marks?pid=1", "", false}, 0).status == 400);
}

TEST_CASE("a restart is a mark with the name of what was restarted, for those who may see it") {
  LaterHost host;
  const auto at = [](std::int64_t second) { return WallTime{FakeSources::kNowNs + second * kNsPerSecond}; };
  const auto add = [&](ProcessId id, std::optional<WallTime> started, std::optional<WallTime> ended) {
    store::ProcessInfo info{id, "nginx", "/usr/sbin/nginx", 0, started, ended, 1, 0};
    info.cgroup = "/system.slice/nginx.service";
    info.unit = "nginx.service";
    host.sources.store_.update_process(info);
    host.sources.add_samples(id, "nginx", {"main"}, 3, 10 * kNsPerSecond, kAlice);
  };
  host.sources.store_.update_process({{1, 0}, "systemd", "/usr/lib/systemd/systemd", 0, {}, {}});
  add({300, 1000}, at(-600), at(-101));
  add({301, 2000}, at(-100), {});
  for (const uid_t user : {uid_t{0}, kAlice}) {
    const json marks = host.marks(user, "?from=now-5m");
    REQUIRE(marks.size() == 1);
    CHECK(marks[0]["kind"] == "restart");
    CHECK(marks[0]["text"] == "nginx.service restarted");
    CHECK(marks[0]["time_ms"] == kNowMs - 100'000);
    CHECK(marks[0]["ended_ms"] == kNowMs - 101'000);
    CHECK(marks[0]["unit"] == "nginx.service");
    CHECK(marks[0]["id"] == "301@2000");
    CHECK(marks[0]["id_before"] == "300@1000");
  }
  CHECK(host.marks(kAlice + 1, "?from=now-5m").empty());
  CHECK(host.marks(0, "?from=now-5m&unit=nginx").size() == 1);
  CHECK(host.marks(0, "?from=now-5m&unit=sshd").empty());
  CHECK(host.marks(0, "?from=now-5m&pid=300").empty());
}

TEST_CASE("a minute under pressure is a mark, with the worst waits that the viewer may see") {
  LaterHost host;
  const WallTime minute{FakeSources::kNowNs - 90 * kNsPerSecond};
  host.sources.pressed_ = {{minute, {0.123, 0.714, 0}, {false, true, false}}};
  const std::string query = "?from=now-5m";
  json marks = host.marks(kAlice, query);
  REQUIRE(marks.size() == 1);
  CHECK(marks[0]["kind"] == "pressure");
  CHECK(marks[0]["text"] == "pressure: io 71 %");
  CHECK(marks[0]["time_ms"] == kNowMs - 90'000);
  CHECK(marks[0]["to_ms"] == kNowMs - 30'000);
  CHECK(marks[0]["pressure"] == json({{"cpu", 0.123}, {"io", 0.714}, {"memory", 0}}));
  CHECK(marks[0]["waits"].is_null());  // nobody visits threads

  const std::vector<Frame> disk{store::wait_frame(store::WaitReason::kDisk)};
  store::WaitSample wait;
  wait.sample = {{host.sources.clock_.monotonic().ns - 60 * kNsPerSecond}, {300, 1000}, 300, "nginx", disk, {}};
  wait.sample.owner = kAlice;
  wait.waited_ns = 2500 * kNsPerMs;
  host.sources.store_.add_wait(wait);
  host.sources.store_.end_wait(300, wait.sample.time);
  host.sources.store_.set_waits_seen(wait.sample.time);
  for (const uid_t user : {uid_t{0}, kAlice}) {
    marks = host.marks(user, query);
    REQUIRE(marks.size() == 1);
    REQUIRE(marks[0]["waits"].size() == 1);
    CHECK(marks[0]["waits"][0]["id"] == "300@1000");
    CHECK(marks[0]["waits"][0]["reason"] == "disk");
    CHECK(marks[0]["waits"][0]["seconds"] == 2.5);
  }
  CHECK(host.marks(kAlice + 1, query)[0]["waits"] == json::array());
  CHECK(host.marks(0, query + "&exe=make")[0]["waits"] == json::array());
  CHECK(host.marks(0, "?from=now-60s").empty());
}

TEST_CASE("the oldest notes make room for new ones, and those before the history are dropped") {
  Notes notes;
  const store::WallWindow all{{0}, {1'000'000}};
  for (std::int64_t i = 0; i < 1005; ++i) notes.add({{i}, std::to_string(i)}, {0});
  REQUIRE(notes.in(all).size() == Notes::kMost);
  CHECK(notes.in(all).front().text == "5");
  // One that is older than all of a full book is dropped at once.
  notes.add({{1}, "late"}, {0});
  CHECK(notes.in(all).front().text == "5");
  notes.add({{2000}, "new"}, {1000});
  CHECK(notes.in(all).size() == 6);
  CHECK(notes.in({{1001}, {1003}}).size() == 3);
}

}  // namespace
}  // namespace flamed::api
