// SPDX-License-Identifier: Apache-2.0
//
// What holds for every route and parameter of the table, checked by requests with all of them.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "api/answer/routes.h"
#include "api/question/route_table.h"
#include "api/text/gzip.h"
#include "test/catch.h"
#include "test/unit/api/answer/fake_sources.h"
#include "test/unit/api/answer/roots_router.h"
#include "test/unit/api/render/read_columns.h"

namespace flamed::api {
namespace {

using nlohmann::json;

struct Fixture {
  Fixture() {
    sources.add_process({123, 4567}, "worker");
    sources.add_samples({123, 4567}, "worker", {"main", "spin"}, 20);
    sources.add_samples({123, 4567}, "worker", {"main", "rest"}, 10, 20 * kNsPerSecond);
    sources.add_samples({200, 1}, "other", {"main", "wait"}, 5);
  }
  Response get(const std::string& target) {
    Request request{"GET", target, "", false};
    // They are about one function.
    const bool is_of_function = target.starts_with("/instructions") || target.starts_with("/source");
    if (is_of_function && target.find("function=") == std::string::npos) {
      request.target += (target.find('?') == std::string::npos ? "?" : "&") + std::string("function=spin");
    }
    // It answers only those who have waited.
    if (target.starts_with("/off_cpu")) request.asked = sources.clock_.wall();
    return router.handle(request);
  }

  FakeSources sources;
  RootsRouter router{sources, [](WallTime) { return std::int64_t{0}; }};
};

std::string header(const Response& response, std::string_view name) {
  for (const auto& [key, value] : response.headers) {
    if (key == name) return value;
  }
  return {};
}

std::string encoded(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kHex[byte >> 4];
    out += kHex[byte & 0xF];
  }
  return out;
}

/// A value that the parameter takes.
std::string good_value(const ParameterSpec& spec) {
  switch (spec.type) {
    case ParameterType::kTime:
      return spec.name.ends_with("from") ? "now-1m" : "now";
    case ParameterType::kProcesses:
    case ParameterType::kIntegers:
      return "123";
    case ParameterType::kTexts:
      return "worker";
    case ParameterType::kChoice:
      return std::string(spec.choices.back());
    case ParameterType::kFlag:
      return "1";
    case ParameterType::kInteger:
      return "7";
    case ParameterType::kNumber:
      return "1.5";
    case ParameterType::kDuration:
      return "10s";
    case ParameterType::kPattern:
      return "spin|rest";
  }
  return "";
}

void check_answer(const Response& response) {
  CHECK(response.status < 500);
  if (response.content_type == "application/json" || response.content_type == "application/problem+json") {
    CHECK(json::accept(response.body));
  }
  if (response.status >= 400) CHECK(response.content_type == "application/problem+json");
}

TEST_CASE("every parameter of every route takes a good value") {
  Fixture fixture;
  for (const RouteSpec& route : route_table()) {
    for (const ParameterSpec& spec : route.parameters) {
      const std::string target =
          std::string(route.path) + "?" + std::string(spec.name) + "=" + encoded(good_value(spec));
      INFO(target);
      const Response response = fixture.get(target);
      CHECK(response.status == 200);
      const auto& types = route.content_types;
      CHECK(std::find(types.begin(), types.end(), response.content_type) != types.end());
      check_answer(response);
    }
  }
}

TEST_CASE("every choice of every route is answered") {
  Fixture fixture;
  for (const RouteSpec& route : route_table()) {
    const auto is_start = [](const ParameterSpec& spec) { return spec.name == "from"; };
    const bool has_window = std::any_of(route.parameters.begin(), route.parameters.end(), is_start);
    for (const ParameterSpec& spec : route.parameters) {
      for (const std::string_view choice : spec.choices) {
        const std::string target = std::string(route.path) + (has_window ? "?from=now-1m&" : "?") +
                                   std::string(spec.name) + "=" + std::string(choice);
        INFO(target);
        const Response response = fixture.get(target);
        CHECK(response.status == 200);
        check_answer(response);
      }
    }
  }
}

TEST_CASE("no value of any parameter makes the server fail") {
  const std::vector<std::string> values{"",
                                        "0",
                                        "-1",
                                        "1,2,3",
                                        "99999999999999999999999",
                                        "1e308",
                                        "nan",
                                        "%00",
                                        "%ff%fe",
                                        "%0d%0aSet-Cookie:%20a=b",
                                        "<script>",
                                        "..%2f..%2fetc%2fpasswd",
                                        "(((((a*)*)*)*)*)*b",
                                        "(",
                                        "%5B",
                                        "now",
                                        "now-1h",
                                        "2200-01-01T00:00:00Z",
                                        "1@1",
                                        "2147483647",
                                        "4294967294",
                                        std::string(1024, 'a'),
                                        std::string(2000, 'x'),
                                        std::string(300, '(')};
  Fixture fixture;
  for (const RouteSpec& route : route_table()) {
    for (const ParameterSpec& spec : route.parameters) {
      for (const std::string& value : values) {
        const std::string target = std::string(route.path) + "?" + std::string(spec.name) + "=" + value;
        INFO(target);
        const Response response = fixture.get(target);
        check_answer(response);
        for (const auto& [name, text] : response.headers) CHECK(text.find_first_of("\r\n") == std::string::npos);
        if (response.status != 400) continue;
        const json problem = json::parse(response.body);
        if (problem["type"] == "urn:flamed:problem:bad-parameter") CHECK(problem.contains("parameter"));
      }
    }
  }
}

TEST_CASE("the OpenAPI document has every route and parameter, and is valid by its schema") {
  Fixture fixture;
  const Response response = fixture.get("/openapi.json");
  REQUIRE(response.status == 200);
  const json document = json::parse(response.body);
  CHECK(document["openapi"] == "3.1.0");
  CHECK(document["info"]["version"] == "1.2.3");
  CHECK(document["paths"].size() == route_table().size());
  std::set<std::string> ids;
  for (const RouteSpec& route : route_table()) {
    INFO(route.path);
    const json& operation = document["paths"].at(std::string(route.path)).at("get");
    CHECK(ids.insert(operation.at("operationId").get<std::string>()).second);
    REQUIRE(operation.at("parameters").size() == route.parameters.size());
    std::set<std::string> names;
    for (std::size_t i = 0; i < route.parameters.size(); ++i) {
      const json& parameter = operation["parameters"][i];
      CHECK(parameter["name"] == std::string(route.parameters[i].name));
      CHECK(names.insert(parameter["name"].get<std::string>()).second);
      CHECK(parameter["in"] == "query");
      const json& schema = parameter.at("schema");
      CHECK((schema["type"] == "string" || schema["type"] == "array" || schema["type"] == "integer" ||
             schema["type"] == "number"));
      if (schema["type"] == "array") CHECK(schema.contains("items"));
      if (schema.contains("enum")) CHECK_FALSE(schema["enum"].empty());
      if (schema.contains("enum") && schema.contains("default")) {
        CHECK(std::count(schema["enum"].begin(), schema["enum"].end(), schema["default"]) == 1);
      }
    }
    CHECK(operation["responses"]["200"].contains("description"));
    CHECK(operation["responses"]["default"]["$ref"] == "#/components/responses/Problem");
    REQUIRE(document["paths"][std::string(route.path)].contains("post") == (route.post != nullptr));
    if (route.post == nullptr) continue;
    const json& post = document["paths"][std::string(route.path)]["post"];
    CHECK(ids.insert(post.at("operationId").get<std::string>()).second);
    CHECK(post["requestBody"]["content"]["application/json"]["schema"] == json::parse(route.post->schema));
    CHECK(post["responses"]["201"].contains("description"));
  }
  CHECK(document["components"]["responses"]["Problem"].contains("description"));
}

TEST_CASE("all formats of a profile have the same samples") {
  Fixture fixture;
  const std::string target = "/profile?from=now-1m&format=";
  CHECK(json::parse(fixture.get(target + "flamegraph").body)["value"] == 35);
  const json columns = json::parse(fixture.get(target + "columns").body);
  std::uint64_t sum = 0;
  for (const json& self : columns["columns"]["nodes"]["self"]) sum += self.get<std::uint64_t>();
  CHECK(sum == 35);
  sum = 0;
  const json top = json::parse(fixture.get(target + "top").body);
  for (const json& row : top["functions"]) sum += row["self"].get<std::uint64_t>();
  CHECK(sum == 35);
  sum = 0;
  const json speedscope = json::parse(fixture.get(target + "speedscope").body);
  for (const json& weight : speedscope["profiles"][0]["weights"]) sum += weight.get<std::uint64_t>();
  CHECK(sum == 35 * static_cast<std::uint64_t>(FakeSources::kPeriodNs));
  const std::string folded = fixture.get(target + "folded").body;
  CHECK(folded == "other (200);main;wait 5\nworker (123);main;rest 10\nworker (123);main;spin 20\n");
  CHECK(json::parse(fixture.get(target + "samples").body)["columns"]["samples"]["node"].size() == 35);
  const std::string script = fixture.get(target + "perf-script").body;
  std::size_t samples = 0;
  for (std::size_t at = script.find("\n\n"); at != std::string::npos; at = script.find("\n\n", at + 1)) ++samples;
  CHECK(samples == 35);
}

TEST_CASE("columns and the nested form have the same tree") {
  Fixture fixture;
  const json nested = json::parse(fixture.get("/profile?from=now-1m&format=flamegraph").body);
  const json answer = json::parse(fixture.get("/profile?from=now-1m&format=columns").body);
  const json& columns = answer["columns"];
  const json& nodes = columns["nodes"];
  // Read as docs/api.md describes.
  struct Node {
    std::string name;
    std::uint64_t value = 0;
    std::vector<std::size_t> children;
  };
  std::vector<Node> tree(nodes["depth"].size());
  std::vector<std::size_t> path;
  for (std::size_t i = 0; i < tree.size(); ++i) {
    const auto frame = nodes["frame"][i].get<std::size_t>();
    tree[i].name = columns["strings"][columns["frames"]["name"][frame].get<std::size_t>()];
    path.resize(nodes["depth"][i].get<std::size_t>());
    if (!path.empty()) tree[path.back()].children.push_back(i);
    path.push_back(i);
    for (const std::size_t above : path) tree[above].value += nodes["self"][i].get<std::uint64_t>();
  }
  const auto check = [&](auto&& self, const json& expected, std::size_t node) -> void {
    CHECK(expected["name"] == tree[node].name);
    CHECK(expected["value"] == tree[node].value);
    const json children = expected.value("children", json::array());
    REQUIRE(children.size() == tree[node].children.size());
    for (std::size_t i = 0; i < children.size(); ++i) self(self, children[i], tree[node].children[i]);
  };
  check(check, nested, 0);
}

TEST_CASE("binary columns equal those in JSON, of a profile and of a comparison") {
  Fixture fixture;
  for (const std::string target :
       {"/profile?from=now-1m", "/profile?pid=123&from=now-1m&group=thread", "/profile?from=now-1m&max_nodes=2",
        "/profile?comm=nobody", "/diff?pid=123&from=now-15s&to=now", "/diff?pid=123&base_pid=200"}) {
    CAPTURE(target);
    const Response binary = fixture.get(target + "&format=columns-binary");
    CHECK(binary.status == 200);
    CHECK(binary.content_type == "application/x-flamed-columns");
    CHECK(ReadColumns::from(binary.body) == json::parse(fixture.get(target + "&format=columns").body));
  }
}

TEST_CASE("the header Accept chooses a format where the query does not") {
  Fixture fixture;
  const auto ask = [&](const std::string& accept, const std::string& target) {
    Request request{"GET", target, "", false};
    request.accept = accept;
    return fixture.router.handle(request);
  };
  CHECK(ask("*/*", "/profile").content_type == "application/json");
  CHECK(ask("", "/profile").content_type == "application/json");
  CHECK(ask("text/html,application/xhtml+xml,*/*;q=0.8", "/profile").content_type == "application/json");
  CHECK(ask("text/plain", "/profile").content_type == "text/plain; charset=utf-8");
  CHECK(ask("application/x-protobuf", "/profile").content_type == "application/octet-stream");
  CHECK(ask("application/x-flamed-columns", "/profile").content_type == "application/x-flamed-columns");
  CHECK(ask("text/plain", "/profile?format=flamegraph").content_type == "application/json");
}

TEST_CASE("answers about closed windows have a tag, and are not sent again to clients that have them") {
  Fixture fixture;
  const std::string closed = "/profile?from=now-1m&to=now-15s";
  const Response first = fixture.get(closed);
  const std::string tag = header(first, "ETag");
  CHECK_FALSE(tag.empty());
  CHECK(header(first, "Cache-Control") == "private, no-cache");
  Request again{"GET", closed, "", false};
  again.if_none_match = tag;
  const Response second = fixture.router.handle(again);
  CHECK(second.status == 304);
  CHECK(second.body.empty());
  again.if_none_match = "W/\"0\"";
  CHECK(fixture.router.handle(again).status == 200);
  const Response columns = fixture.get(closed + "&format=columns");
  CHECK(header(columns, "ETag").size() == tag.size());
  CHECK(header(columns, "ETag") != tag);
  const Response open = fixture.get("/profile?from=now-1m");
  CHECK(header(open, "ETag").empty());
  CHECK(header(open, "Cache-Control") == "no-store");
}

TEST_CASE("a request about the next seconds waits, one about the past does not") {
  Fixture fixture;
  const auto wait = [&](const std::string& target) { return fixture.router.wait_ns({"GET", target, "", false}); };
  CHECK(wait("/profile?seconds=5") == 5 * kNsPerSecond);
  CHECK(wait("/debug/pprof/profile") == 30 * kNsPerSecond);
  CHECK(wait("/debug/pprof/profile?seconds=1&pid=123") == kNsPerSecond);
  CHECK_FALSE(wait("/profile"));
  CHECK_FALSE(wait("/profile?seconds=5&from=now-1m"));
  CHECK_FALSE(wait("/debug/pprof/profile?from=now-1m"));
  CHECK_FALSE(wait("/profile?seconds=0"));
  CHECK_FALSE(wait("/nothing?seconds=5"));
  CHECK_FALSE(fixture.router.wait_ns({"HEAD", "/profile?seconds=5", "", false}));
}

TEST_CASE("a request that waited gets the samples since it arrived") {
  Fixture fixture;
  Request request{"GET", "/profile?seconds=15&pid=123", "", false};
  request.asked = WallTime{FakeSources::kNowNs - 15 * kNsPerSecond};
  const json tree = json::parse(fixture.router.handle(request).body);
  CHECK(tree["value"] == 20);
  CHECK(tree["window"]["asked"]["to_ms"] == FakeSources::kNowNs / kNsPerMs);
}

TEST_CASE("two windows are compared, by default with the time just before") {
  Fixture fixture;
  const json diff = json::parse(fixture.get("/diff?pid=123&from=now-15s&to=now&format=top").body);
  CHECK(diff["after"]["samples"] == 20);
  CHECK(diff["before"]["samples"] == 10);
  const std::string folded = fixture.get("/diff?pid=123&from=now-10s&to=now&format=folded").body;
  CHECK(folded == "main;rest 10 0\nmain;spin 0 20\n");
  const json other = json::parse(fixture.get("/diff?pid=123&base_pid=200&from=now-15s&to=now").body);
  CHECK(other["before"]["samples"] == 5);
  CHECK(other["value"] == 20);
  CHECK(other["value_before"] == 5);
}

TEST_CASE("a comparison in columns has all functions with their change") {
  Fixture fixture;
  const std::string target = "/diff?pid=123&from=now-15s&to=now&format=";
  const json top = json::parse(fixture.get(target + "top").body)["functions"];
  const json columns = json::parse(fixture.get(target + "columns").body)["columns"];
  const json& functions = columns["functions"];
  REQUIRE(functions["frame"].size() == top.size());
  for (std::size_t i = 0; i < top.size(); ++i) {
    const auto frame = functions["frame"][i].get<std::size_t>();
    CHECK(columns["strings"][columns["frames"]["name"][frame].get<std::size_t>()] == top[i]["name"]);
    CHECK(functions["self"][i] == top[i]["after"]["self"]);
    CHECK(functions["total"][i] == top[i]["after"]["total"]);
    CHECK(functions["self_before"][i] == top[i]["before"]["self"]);
    CHECK(functions["total_before"][i] == top[i]["before"]["total"]);
    CHECK(functions["z"][i].get<double>() == Approx(top[i]["z"].get<double>()).margin(0.006));
    CHECK((functions["significant"][i] == 1) == top[i]["significant"].get<bool>());
  }
}

TEST_CASE("an answer says of which measure it is, and what it does not know") {
  Fixture fixture;
  const json cpu = json::parse(fixture.get("/profile?pid=123&from=now-1m").body);
  CHECK(cpu["measure"] == "cpu");
  CHECK_FALSE(cpu.contains("disk_account"));
  for (const std::string route : {"/profile", "/threads", "/processes", "/timeline", "/heatmap"}) {
    const json wait = json::parse(fixture.get(route + "?measure=wait&from=now-1m").body);
    INFO(wait.dump());
    CHECK(wait["measure"] == "wait");
    CHECK(wait["disk_account"] == "none");
    CHECK(wait["samples"] == 0);
    REQUIRE_FALSE(wait["warnings"].empty());
    CHECK(wait["warnings"].dump().find("waiting threads are not visited") != std::string::npos);
  }
  CHECK(json::parse(fixture.get("/profile?measure=wall&pid=123&from=now-1m").body)["cpu_seconds"] ==
        cpu["cpu_seconds"]);
  CHECK(fixture.get("/profile?measure=wait&format=summary").status == 400);
  CHECK(fixture.get("/diff?measure=wait&format=summary").status == 400);
  CHECK(fixture.get("/profile?measure=sleep").status == 400);
}

TEST_CASE("a filter sees names, and what it leaves out is not counted") {
  Fixture fixture;
  CHECK(fixture.get("/profile?pid=123&format=folded&focus=sp.n").body == "main;spin 20\n");
  CHECK(fixture.get("/profile?pid=123&format=folded&ignore=sp.n").body == "main;rest 10\n");
  CHECK(fixture.get("/profile?pid=123&format=folded&hide=%5Emain%24").body == "rest 10\nspin 20\n");
}

TEST_CASE("threads, steps and seconds add up to the samples") {
  Fixture fixture;
  const json threads = json::parse(fixture.get("/threads?from=now-1m").body);
  CHECK(threads["samples"] == 35);
  CHECK(threads["threads"][0]["tid"] == 123);
  CHECK(threads["threads"][0]["process"]["id"] == "123@4567");
  const json timeline = json::parse(fixture.get("/timeline?from=now-1m&step=1&processes=2").body);
  std::uint64_t sum = 0;
  for (const json& count : timeline["steps"]["user_samples"]) sum += count.get<std::uint64_t>();
  CHECK(sum == 35);
  CHECK(timeline["step_ms"] == 1000);
  CHECK(timeline["processes"].size() == 2);
  const json heatmap = json::parse(fixture.get("/heatmap?from=now-1m&rows=10").body);
  sum = 0;
  for (const json& count : heatmap["counts"]) sum += count.get<std::uint64_t>();
  CHECK(sum == 35);
  CHECK(heatmap["rows"] == 10);
  CHECK(timeline["lost"].is_array());
  CHECK(timeline["gaps"].empty());
}

TEST_CASE("a part of each second can be selected, and has a part of the samples") {
  Fixture fixture;
  const json heatmap = json::parse(fixture.get("/heatmap?from=now-1m&rows=10").body);
  std::uint64_t sum = 0;
  for (int row = 0; row < 10; ++row) {
    const std::string part =
        "&offset_from=" + std::to_string(100 * row) + "&offset_to=" + std::to_string(100 * (row + 1));
    std::uint64_t in_row = 0;
    for (std::size_t at = static_cast<std::size_t>(row); at < heatmap["counts"].size(); at += 10) {
      in_row += heatmap["counts"][at].get<std::uint64_t>();
    }
    const json profile = json::parse(fixture.get("/profile?from=now-1m" + part).body);
    CHECK(profile["value"] == in_row);
    CHECK(profile["coverage"]["share"].is_null());
    sum += in_row;
  }
  CHECK(sum == 35);
  const json diff = json::parse(fixture.get("/diff?from=now-1m&base_from=now-1m&base_to=now&offset_to=0.001").body);
  CHECK(diff["before"]["samples"] == 35);
  CHECK(fixture.get("/profile?offset_from=300&offset_to=300").status == 400);
  CHECK(fixture.get("/diff?base_offset_from=300&base_offset_to=200").status == 400);
}

}  // namespace
}  // namespace flamed::api
