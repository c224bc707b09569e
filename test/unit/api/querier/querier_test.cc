// SPDX-License-Identifier: Apache-2.0
//
// Calls of Grafana's data source, from request to response, without a socket.
#include "api/querier/querier.h"

#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "api/answer/routes.h"
#include "api/querier/calls.h"
#include "api/text/gzip.h"
#include "base/protobuf_reader.h"
#include "base/protobuf_writer.h"
#include "test/catch.h"
#include "test/support/level_stacks.h"
#include "test/unit/api/access/scratch_file.h"
#include "test/unit/api/answer/fake_sources.h"

namespace flamed::api {
namespace {

using nlohmann::json;
using Transport = Peer::Transport;

constexpr const char* kCpu = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
constexpr const char* kWait = "off_cpu:off_cpu:nanoseconds::";
constexpr std::int64_t kNowMs = FakeSources::kNowNs / kNsPerMs;
constexpr uid_t kAlice = 1001;
constexpr const char* kToken = "0123456789abcdef0123456789abcdef";

struct Program {
  store::ProcessInfo info;
  std::vector<std::string> stack;
  int samples;  ///< one every three seconds
};

store::ProcessInfo process(std::int32_t pid, const char* comm, const char* executable, uid_t user) {
  store::ProcessInfo info{{pid, 10}, comm, executable, 0, {}, {}};
  info.uid = user;
  return info;
}

/// Ten minutes ago a service, a container, a program of Alice's, and a kernel thread were busy for up to three minutes.
struct Host {
  Host() {
    Program nginx{process(1, "nginx", "/usr/sbin/nginx", 33), {"main", "serve"}, 60};
    nginx.info.unit = "nginx.service";
    nginx.info.cgroup = "/system.slice/nginx.service";
    Program postgres{process(2, "postgres", "/usr/lib/postgres", 999), {"main", "query", "sort"}, 30};
    postgres.info.container = std::string(64, 'a');
    postgres.info.cgroup = "/docker/" + postgres.info.container;
    const Program make{process(3, "make", "/usr/bin/make", kAlice), {"main", "build"}, 10};
    const Program worker{process(4, "kworker/0:1", "", 0), {"worker_thread"}, 5};
    const Program* const programs[] = {&nginx, &postgres, &make, &worker};
    for (const Program* program : programs) sources.store_.update_process(program->info);
    constexpr int kRounds = 200;
    for (int i = 0; i < kRounds; ++i) {
      for (const Program* program : programs) {
        if (i >= program->samples) continue;
        sources.add_samples(program->info.id, program->info.comm, program->stack, 1, 0, *program->info.uid);
      }
      sources.clock_.advance_ns(3 * kNsPerSecond);
      sources.store_.advance(sources.clock_.monotonic());
    }
  }

  Response call(const std::string& method, const std::string& body, const std::string& type = "application/json") {
    Request request{"POST", "/querier.v1.QuerierService/" + method, "", false};
    request.content_type = type;
    request.body = body;
    request.peer = {Transport::kLoopback, 0};
    return send(request);
  }
  Response send(Request request) {
    if (request.host.empty()) request.host = "localhost:9090";
    return router.handle(request);
  }
  json ask(const std::string& method, const json& body) {
    const Response response = call(method, body.dump());
    INFO(response.body);
    REQUIRE(response.status == 200);
    CHECK(response.content_type == "application/json");
    return json::parse(response.body);
  }
  std::string get(const std::string& target) {
    Request request{"GET", target, "", false};
    request.peer = {Transport::kLoopback, 0};
    const Response response = send(request);
    REQUIRE(response.status == 200);
    return response.body;
  }

  static HostNames names() {
    HostNames names;
    names.add("127.0.0.1", 9090);
    return names;
  }
  static std::unique_ptr<TokenFile> tokens_of(const ScratchFile& file) {
    auto tokens = TokenFile::open(file.path());
    REQUIRE(tokens.ok());
    return std::move(*tokens);
  }

  ScratchFile token_file{std::string(kToken) + "\nalice-has-this-token alice\n"};
  FakeSources sources{{}, 10 * kNsPerMinute};
  Access access{names(), [](uid_t) { return false; }, tokens_of(token_file),
                [](const std::string&) { return std::optional(kAlice); }};
  Router router{sources, access, [](WallTime) { return std::int64_t{0}; }};
};

constexpr std::int64_t kBeginMs = kNowMs - 600'000;

json window() { return {{"start", kBeginMs}, {"end", kNowMs}}; }

json select(const std::string& selector) {
  json body = window();
  body["profileTypeID"] = kCpu;
  body["labelSelector"] = selector;
  return body;
}

json with(json body, const std::string& key, const json& value) {
  body[key] = value;
  return body;
}

std::set<std::string> names_in(const json& answer) { return answer.value("names", std::set<std::string>()); }

using Stacks = std::map<std::string, std::uint64_t>;

/// By stack: nanoseconds.
Stacks folded(const json& answer) { return test::stacks_of_levels(answer["flamegraph"]); }

Stacks folded_profile(const std::string& text) {
  Stacks stacks;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    const std::string line = text.substr(begin, end - begin);
    const std::size_t blank = line.rfind(' ');
    stacks[line.substr(0, blank)] += std::stoull(line.substr(blank + 1)) * FakeSources::kPeriodNs;
    begin = end + 1;
  }
  return stacks;
}

}  // namespace

TEST_CASE("there are two profile types, whatever window is asked for") {
  Host host;
  const json answer = host.ask("ProfileTypes", {{"start", 1000}, {"end", "4000"}});
  REQUIRE(answer["profileTypes"].size() == 2);
  CHECK(answer["profileTypes"][0] == json{{"ID", kCpu},
                                          {"name", "process_cpu"},
                                          {"sampleType", "cpu"},
                                          {"sampleUnit", "nanoseconds"},
                                          {"periodType", "cpu"},
                                          {"periodUnit", "nanoseconds"}});
  CHECK(answer["profileTypes"][1]["ID"] == kWait);
}

TEST_CASE("labels have names and values of the processes with samples in the window") {
  Host host;
  CHECK(names_in(host.ask("LabelNames", window())) ==
        std::set<std::string>{"__name__", "__period_type__", "__period_unit__", "__profile_type__", "__service_name__",
                              "__type__", "__unit__", "container", "host", "pid", "process", "service_name", "unit",
                              "user"});
  const auto values = [&](const std::string& name, const std::string& selector) {
    return names_in(host.ask("LabelValues", with(with(window(), "name", name), "matchers", {selector})));
  };
  CHECK(values("service_name", "{}") ==
        std::set<std::string>{"nginx.service", "aaaaaaaaaaaa", "make", "[kernel threads and unknown]"});
  CHECK(values("process", "{}") == std::set<std::string>{"nginx", "postgres", "make", "kworker/0:1"});
  CHECK(values("pid", R"({unit="nginx.service"})") == std::set<std::string>{"1"});
  CHECK(values("user", R"({pid=~"1|3"})") == std::set<std::string>{"33", "1001"});
  CHECK(values("container", "{}") == std::set<std::string>{std::string(64, 'a')});
  CHECK(values("__profile_type__", R"({__type__="cpu"})") == std::set<std::string>{kCpu});
  // As Grafana writes it for a variable.
  CHECK(values("unit", std::string(kCpu) + "{}") == std::set<std::string>{"nginx.service"});
  CHECK(values("unit", "process_cpu{}") == std::set<std::string>{"nginx.service"});
  CHECK(values("unit", "memory:alloc_space:bytes:space:bytes{}").empty());
  CHECK(values("nothing", "{}").empty());
  CHECK(names_in(host.ask("LabelNames", with(window(), "matchers", {R"({pid="3"})"}))).count("unit") == 0);
  // Several selectors are alternatives.
  CHECK(names_in(host.ask("LabelValues",
                          with(with(window(), "name", "pid"), "matchers", {R"({pid="1"})", R"({process="make"})"}))) ==
        std::set<std::string>{"1", "3"});
  CHECK(names_in(host.ask("LabelNames", {{"start", 1000}, {"end", 4000}})).empty());
  // Without times: what is in memory.
  CHECK(names_in(host.ask("LabelValues", {{"name", "pid"}})).size() == 4);
}

TEST_CASE("series have the labels asked for, each combination once, the largest first") {
  Host host;
  const json sets = host.ask("Series", with(window(), "labelNames", {"unit", "service_name"}))["labelsSet"];
  REQUIRE(sets.size() == 4);
  CHECK(sets[0]["labels"] == json::parse(R"([{"name":"service_name","value":"nginx.service"},
                                             {"name":"unit","value":"nginx.service"}])"));
  CHECK(sets[1]["labels"] == json::parse(R"([{"name":"service_name","value":"aaaaaaaaaaaa"}])"));
  CHECK(host.ask("Series", json::object())["labelsSet"].size() == 4);
  CHECK(host.ask("Series", with(window(), "matchers", {R"({pid="9"})"})) == json::object());
}

TEST_CASE("a flame graph has the counts of the folded profile of the same window") {
  Host host;
  const std::string from_to = "&from=" + std::to_string(kBeginMs) + "&to=" + std::to_string(kNowMs);
  CHECK(folded(host.ask("SelectMergeStacktraces", select("{}"))) ==
        folded_profile(host.get("/profile?format=folded&group=none" + from_to)));
  CHECK(folded(host.ask("SelectMergeStacktraces", select(R"({service_name="nginx.service"})"))) ==
        folded_profile(host.get("/profile?format=folded&group=none&unit=nginx" + from_to)));
  const json pruned = host.ask("SelectMergeStacktraces", with(select("{}"), "maxNodes", 3));
  CHECK(folded(pruned).at("main;serve") == 60 * FakeSources::kPeriodNs);
  CHECK(folded(pruned).at("main;other") == 40 * FakeSources::kPeriodNs);
  CHECK(pruned["flamegraph"]["total"] == std::to_string(105 * FakeSources::kPeriodNs));
}

TEST_CASE("series have the samples of the timeline of the same window") {
  Host host;
  const std::int64_t begin_ms = kBeginMs;
  const json timeline =
      json::parse(host.get("/timeline?step=15s&from=" + std::to_string(begin_ms) + "&to=" + std::to_string(kNowMs)));
  const json answer = host.ask("SelectSeries", with(select("{}"), "step", 15));
  REQUIRE(answer["series"].size() == 1);
  CHECK_FALSE(answer["series"][0].contains("labels"));
  std::map<std::int64_t, double> expected;
  for (std::size_t i = 0; i < timeline["steps"]["user_samples"].size(); ++i) {
    const double samples =
        timeline["steps"]["user_samples"][i].get<double>() + timeline["steps"]["kernel_samples"][i].get<double>();
    const std::int64_t end_ms = timeline["start_ms"].get<std::int64_t>() + static_cast<std::int64_t>(i + 1) * 15'000;
    if (samples != 0) expected[end_ms] = samples * FakeSources::kPeriodNs;
  }
  std::map<std::int64_t, double> points;
  for (const json& point : answer["series"][0]["points"]) {
    points[std::stoll(point["timestamp"].get<std::string>())] = point["value"];
  }
  CHECK(points == expected);
  CHECK(points.size() == 12);
}

TEST_CASE("series are grouped by labels, the largest first, as many as asked for") {
  Host host;
  const auto series = [&](const json& body) { return host.ask("SelectSeries", with(body, "step", 60))["series"]; };
  const json all = series(with(select("{}"), "groupBy", {"service_name", "unit"}));
  REQUIRE(all.size() == 4);
  CHECK(all[0]["labels"][0] == json{{"name", "service_name"}, {"value", "nginx.service"}});
  CHECK(all[0]["labels"].size() == 2);
  CHECK(all[3]["labels"][0]["value"] == "[kernel threads and unknown]");
  double sum = 0;
  for (const json& one : all) {
    for (const json& point : one["points"]) sum += point["value"].get<double>();
  }
  CHECK(sum == 105.0 * FakeSources::kPeriodNs);
  const json two = series(with(with(select("{}"), "groupBy", {"pid"}), "limit", "2"));
  REQUIRE(two.size() == 2);
  CHECK(two[1]["labels"][0]["value"] == "2");
  CHECK(series(with(select(R"({process!~"nginx|make"})"), "groupBy", {"pid"})).size() == 2);
}

TEST_CASE("at most a thousand series are told, those with most samples") {
  Host host;
  for (int i = 0; i < 1100; ++i) {
    host.sources.add_samples({10'000 + i, 1}, "many", {"main"}, i < 100 ? 1 : 2, 10 * kNsPerSecond, 0);
  }
  host.sources.clock_.advance_ns(kNsPerSecond);
  const json body = with(with(with(select("{}"), "groupBy", {"pid"}), "step", 600), "end", kNowMs + 1000);
  const json series = host.ask("SelectSeries", body)["series"];
  REQUIRE(series.size() == kMostSeries);
  CHECK(series.back()["points"][0]["value"] == 2.0 * FakeSources::kPeriodNs);
}

TEST_CASE("where nothing matches the answer is empty") {
  Host host;
  const json nothing = select(R"({process="no-such"})");
  CHECK(host.ask("SelectSeries", with(nothing, "step", 15)) == json::object());
  const json root = json::parse(R"({"flamegraph":{"names":["total"],"levels":[{"values":["0","0","0","0"]}]}})");
  CHECK(host.ask("SelectMergeStacktraces", nothing) == root);
  const json other = with(select("{}"), "profileTypeID", "memory:alloc_space:bytes:space:bytes");
  CHECK(host.ask("SelectMergeStacktraces", other) == root);
  CHECK(host.ask("SelectSeries", with(other, "step", 15)) == json::object());
  CHECK(host.ask("SelectSeries", with(with(with(select("{}"), "start", 1000), "end", 4000), "step", 1)) ==
        json::object());
}

TEST_CASE("stats tell from when to when there are samples") {
  Host host;
  const json answer = host.ask("GetProfileStats", json::object());
  CHECK(answer["dataIngested"] == true);
  CHECK(answer["oldestProfileTime"] == std::to_string(kBeginMs));
  CHECK(answer["newestProfileTime"] == std::to_string(kNowMs));
}

TEST_CASE("a call in protocol buffers is answered in protocol buffers, and may be packed") {
  Host host;
  std::string body;
  ProtobufWriter(body).bytes(1, kCpu).bytes(2, "{}").number(3, kBeginMs).number(4, kNowMs).real(6, 600);
  const Response response = host.call("SelectSeries", body, "application/proto");
  REQUIRE(response.status == 200);
  CHECK(response.content_type == "application/proto");
  const auto series = ProtobufReader(response.body).next();
  REQUIRE(series.ok());
  const auto point = ProtobufReader((*series)->bytes).next();
  CHECK((*point)->number == 2);
  CHECK((*ProtobufReader((*point)->bytes).next())->value ==
        std::bit_cast<std::uint64_t>(105.0 * FakeSources::kPeriodNs));

  Request packed{"POST", "/querier.v1.QuerierService/SelectSeries", "gzip", false};
  packed.content_type = "application/proto";
  packed.content_encoding = "gzip";
  packed.body = gzip(body).value();
  packed.peer = {Transport::kLoopback, 0};
  CHECK(host.send(packed).body == response.body);
}

TEST_CASE("an error is JSON with a code, also for a call in protocol buffers") {
  Host host;
  struct Case {
    const char* method;
    std::string body;
    int status;
    const char* code;
    const char* type = "application/json";
  };
  const std::string huge = with(select(std::string(100'000, '{')), "step", 15).dump();
  const Case cases[] = {
      {"SelectHeatmap", "{}", 501, "unimplemented"},
      {"SelectMergeProfile", "", 501, "unimplemented", "application/proto"},
      {"", "{}", 501, "unimplemented"},
      {"SelectSeries", "{", 400, "invalid_argument"},
      {"SelectSeries", "\x0a\xff", 400, "invalid_argument", "application/proto"},
      {"SelectSeries", select("{}").dump(), 400, "invalid_argument"},
      {"SelectSeries", with(select("{}"), "step", "nan").dump(), 400, "invalid_argument"},
      {"SelectSeries", with(with(select("{}"), "step", 15), "start", kNowMs + 1).dump(), 400, "invalid_argument"},
      {"SelectSeries", with(select(""), "step", 15).dump(), 400, "invalid_argument"},
      {"SelectSeries", with(select("{a=~\"(\"}"), "step", 15).dump(), 400, "invalid_argument"},
      {"SelectSeries", huge, 400, "invalid_argument"},
      {"SelectSeries", with(with(select("{}"), "step", 15), "limit", -1).dump(), 400, "invalid_argument"},
      {"SelectSeries", with(with(select("{}"), "step", 0.001), "start", 1).dump(), 429, "resource_exhausted"},
      {"SelectMergeStacktraces", with(select("{}"), "profileTypeID", "cpu").dump(), 400, "invalid_argument"},
      {"SelectMergeStacktraces", with(select("{}"), "maxNodes", -1).dump(), 400, "invalid_argument"},
      {"SelectMergeStacktraces", with(with(select("{}"), "start", 0), "end", 0).dump(), 400, "invalid_argument"},
      {"LabelNames", R"({"matchers":[""]})", 400, "invalid_argument"},
      {"LabelValues", "{}", 400, "invalid_argument"},
      {"LabelNames", "{}", 415, "invalid_argument", "text/plain"},
      {"LabelNames", "{}", 415, "invalid_argument", ""},
      {"LabelNames", "{}", 415, "invalid_argument", "application/connect+json"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.method, c.body.substr(0, 200), c.type);
    const Response response = host.call(c.method, c.body, c.type);
    CHECK(response.status == c.status);
    CHECK(response.content_type == "application/json");
    const json body = json::parse(response.body);
    CHECK(body["code"] == c.code);
    CHECK_FALSE(body["message"].get<std::string>().empty());
  }
  CHECK(host.call("LabelNames", "{}", "Application/JSON; charset=utf-8").status == 200);
}

TEST_CASE("a body that unpacks to too much, or not at all, is refused") {
  Host host;
  Request request{"POST", "/querier.v1.QuerierService/LabelNames", "", false};
  request.content_type = "application/json";
  request.content_encoding = "gzip";
  request.peer = {Transport::kLoopback, 0};
  request.body = gzip(std::string(100U << 20, ' ')).value();
  CHECK(host.send(request).status == 400);
  request.body = "{}";
  CHECK(host.send(request).status == 400);
  request.content_encoding = "br";
  CHECK(host.send(request).status == 501);
  request.content_encoding = "identity";
  CHECK(host.send(request).status == 200);
}

TEST_CASE("a call that takes too long is given up, also while it matches labels") {
  Host host;
  CallRequest request;
  request.profile_type = kCpu;
  request.selector = R"({process=~"n.*"})";
  request.matchers = {request.selector};
  request.label = "pid";
  request.start_ms = kBeginMs;
  request.end_ms = kNowMs;
  request.step_s = 15;
  for (const CallMethod method : {CallMethod::kLabelNames, CallMethod::kLabelValues, CallMethod::kSeries,
                                  CallMethod::kSelectSeries, CallMethod::kSelectMergeStacktraces}) {
    CAPTURE(static_cast<int>(method));
    for (const bool is_late : {false, true}) {
      store::QueryLimits limits;
      limits.deadline = MonotonicTime{host.sources.clock_.monotonic().ns + (is_late ? -1 : 1)};
      store::QueryBudget budget(limits, &host.sources.clock_);
      // Past the number of visits after which the clock is read.
      if (is_late) CHECK_FALSE(budget.visit(100'000));
      const auto answer = answer_call(method, CallEncoding::kJson, request,
                                      CallContext{host.sources, {FakeSources::kNowNs}, "host", budget});
      const auto* problem = std::get_if<Problem>(&answer);
      REQUIRE((problem != nullptr) == is_late);
      if (is_late) CHECK(problem->status == 422);
    }
  }
}

TEST_CASE("calls take POST and nothing else, with a body of a mebibyte at most") {
  Host host;
  for (const char* method : {"GET", "HEAD", "PUT", "OPTIONS"}) {
    Request request{method, "/querier.v1.QuerierService/LabelNames", "", false};
    request.peer = {Transport::kLoopback, 0};
    const Response response = host.send(request);
    CHECK(response.status == 405);
    CHECK(std::find(response.headers.begin(), response.headers.end(),
                    std::pair<std::string, std::string>("Allow", "POST")) != response.headers.end());
  }
  CHECK(Router::most_body_bytes("POST", "/querier.v1.QuerierService/LabelNames") == kMostCallBytes);
  CHECK(Router::most_body_bytes("GET", "/querier.v1.QuerierService/LabelNames") == 0);
  CHECK(Router::most_body_bytes("POST", "/querier.v1.Querier") == 0);
  CHECK(Router::most_body_bytes("POST", "/profile") == 0);
}

TEST_CASE("a call is answered for who makes it, and refused to strangers and pages of other sites") {
  Host host;
  Request request{"POST", "/querier.v1.QuerierService/LabelValues", "", false};
  request.content_type = "application/json";
  request.body = with(window(), "name", "pid").dump();
  const auto pids = [&](const Peer& peer) {
    request.peer = peer;
    const Response response = host.send(request);
    REQUIRE(response.status == 200);
    return names_in(json::parse(response.body));
  };
  const auto refusal = [&](const Peer& peer) {
    request.peer = peer;
    const Response response = host.send(request);
    return std::pair(response.status, json::parse(response.body)["code"].get<std::string>());
  };
  const Peer remote{Transport::kRemote, {}};
  const std::pair kUnauthenticated(401, std::string("unauthenticated"));
  const std::pair kDenied(403, std::string("permission_denied"));
  CHECK(pids({Transport::kUnix, 0}).size() == 4);
  CHECK(pids({Transport::kLoopback, kAlice}) == std::set<std::string>{"3"});
  CHECK(refusal({Transport::kLoopback, {}}) == kDenied);
  CHECK(refusal(remote) == kUnauthenticated);
  request.authorization = "Basic Z3JhZmFuYToxMjM0";
  CHECK(refusal(remote) == kUnauthenticated);
  request.authorization = "Bearer not-one-of-the-tokens";
  CHECK(refusal(remote) == kUnauthenticated);
  request.authorization = "Bearer alice-has-this-token";
  CHECK(pids(remote) == std::set<std::string>{"3"});
  request.authorization = std::string("Bearer ") + kToken;
  request.host = "build7.example";
  CHECK(pids(remote).size() == 4);
  request.origin = "http://evil.example";
  CHECK(refusal(remote) == kDenied);
  request.origin.clear();
  request.authorization.clear();
  CHECK(refusal({Transport::kLoopback, 0}) == kDenied);  // a name of another site
}

}  // namespace flamed::api
