// SPDX-License-Identifier: Apache-2.0
//
// POST /push: what flamed-push tells, without a socket.
#include "api/answer/push_reports.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/answer/routes.h"
#include "test/catch.h"
#include "test/unit/api/answer/fake_sources.h"

namespace flamed::api {
namespace {

using nlohmann::json;

constexpr uid_t kAlice = 1001;

json stream(const std::string& outcome, int status) {
  return {{"name", "pyroscope"},
          {"measure", "cpu"},
          {"outcome", outcome},
          {"status", status},
          {"until_ms", 1769868315000},
          {"requests", 3},
          {"bytes", 4000},
          {"resent", 1},
          {"samples", 297},
          {"rejected", 0},
          {"dropped", {5, 0, 0, 0}}};
}

json report_of(const std::vector<json>& streams, std::int64_t cpu_ns = 1'000'000) {
  return {{"interval_ms", 15000}, {"cpu_ns", cpu_ns}, {"receivers", streams}};
}

struct Host {
  Response post(const std::string& body, uid_t user = 0) {
    Request request{"POST", "/push", "", false};
    request.content_type = "application/json";
    request.body = body;
    return ask(request, user);
  }
  Response ask(Request request, uid_t user = 0) {
    request.peer = {Peer::Transport::kLoopback, user};
    request.host = "localhost:9090";
    return router.handle(request);
  }
  json push_component() {
    const json health = json::parse(ask({"GET", "/healthz", "", false}, kAlice).body);
    for (const json& component : health["components"]) {
      if (component["name"] == "push") return component;
    }
    return nullptr;
  }
  std::string metrics() { return ask({"GET", "/metrics", "", false}, kAlice).body; }

  static HostNames names() {
    HostNames names;
    names.add("127.0.0.1", 9090);
    return names;
  }
  FakeSources sources;
  Access access{names(), [](uid_t) { return false; }};
  Router router{sources, access, [](WallTime) { return std::int64_t{0}; }};
};

TEST_CASE("health and metrics have what flamed-push told of its receivers, and nothing before") {
  Host host;
  CHECK(host.push_component().is_null());
  CHECK(host.metrics().find("flamed_push") == std::string::npos);
  REQUIRE(host.post(report_of({stream("accepted", 200)}).dump()).status == 201);
  CHECK(host.push_component()["ok"] == true);
  CHECK(host.push_component()["detail"] ==
        "pyroscope (cpu): accepted all; sent until 2026-01-31T14:05:15.000Z; 5 samples dropped so far");
  CHECK(host.metrics().find(R"(flamed_push_samples_total{receiver="pyroscope",measure="cpu"} 297)") !=
        std::string::npos);
  CHECK(host.metrics().find(
            R"(flamed_push_dropped_samples_total{receiver="pyroscope",measure="cpu",reason="refused"} 5)") !=
        std::string::npos);

  REQUIRE(host.post(report_of({stream("refused", 400)}).dump()).status == 201);
  CHECK(host.push_component()["ok"] == false);
  CHECK(host.push_component()["detail"].get<std::string>().starts_with(
      "pyroscope (cpu): answered with status 400, and what was sent is dropped"));
  REQUIRE(host.post(report_of({stream("unavailable", 0)}).dump()).status == 201);
  CHECK(
      host.push_component()["detail"].get<std::string>().starts_with("pyroscope (cpu): does not answer, and is tried"));
  // Sampling is as well as before.
  CHECK(host.ask({"GET", "/healthz", "", false}).status == 200);

  host.sources.clock_.advance_ns(61 * kNsPerSecond);
  CHECK(host.push_component()["detail"] == "flamed-push has not reported for 61 s: see systemctl status flamed-push");
}

TEST_CASE("only those who see everything may report") {
  Host host;
  const Response refused = host.post(report_of({}).dump(), kAlice);
  CHECK(refused.status == 403);
  CHECK(json::parse(refused.body)["type"] == "urn:flamed:problem:may-not-report");
  CHECK(json::parse(host.ask({"GET", "/push", "", false}, kAlice).body) ==
        json{{"reported", false}, {"receivers", json::array()}});
}

TEST_CASE("a report with anything but names and numbers in their ranges is refused") {
  Host host;
  const auto status_of = [&](const char* key, const json& value) {
    json changed = stream("accepted", 200);
    changed[key] = value;
    return host.post(report_of({changed}).dump()).status;
  };
  CHECK(status_of("name", "pyroscope") == 201);
  CHECK(status_of("name", "a name with blanks") == 400);
  CHECK(status_of("name", std::string(65, 'a')) == 400);
  CHECK(status_of("measure", "wall") == 400);
  CHECK(status_of("outcome", "splendid") == 400);
  CHECK(status_of("status", 1000) == 400);
  CHECK(status_of("status", -1) == 400);
  CHECK(status_of("samples", 1e300) == 400);
  CHECK(status_of("until_ms", ~std::uint64_t{0}) == 400);
  CHECK(status_of("dropped", {1, 2, 3}) == 400);
  CHECK(status_of("dropped", {1, 2, 3, "4"}) == 400);
  CHECK(host.post(report_of(std::vector<json>(17, stream("accepted", 200))).dump()).status == 400);
  CHECK(host.post("[]").status == 400);
  CHECK(host.post("{}").status == 400);
  CHECK(host.post(std::string(10000, '[')).status == 400);
}

TEST_CASE("the CPU time of a report counts once, from zero for a new run, and never more than time passed") {
  PushReports reports;
  PushReport report;
  report.cpu_ns = 500'000'000;
  CHECK(reports.take(report, {10 * kNsPerSecond}) == 500'000'000);
  report.cpu_ns = 700'000'000;
  CHECK(reports.take(report, {25 * kNsPerSecond}) == 200'000'000);
  report.cpu_ns = 300'000'000;
  CHECK(reports.take(report, {40 * kNsPerSecond}) == 300'000'000);
  report.cpu_ns = 1'000'000 * kNsPerSecond;
  CHECK(reports.take(report, {41 * kNsPerSecond}) == kNsPerSecond);
}

}  // namespace
}  // namespace flamed::api
