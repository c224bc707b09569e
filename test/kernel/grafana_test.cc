// SPDX-License-Identifier: Apache-2.0
//
// The calls of Grafana's data source to the real daemon, over its socket: their figures are those of its other answers.
#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "api/text/gzip.h"
#include "base/protobuf_reader.h"
#include "base/protobuf_writer.h"
#include "test/catch.h"
#include "test/kernel/folded_stacks.h"
#include "test/support/child_process.h"
#include "test/support/level_stacks.h"
#include "test/support/running_daemon.h"

namespace flamed::test {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

constexpr std::int64_t kStepMs = 5000;

std::int64_t now_ms() {
  return std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

HttpAnswer call(const RunningDaemon& daemon, const std::string& method, const std::string& body,
                std::map<std::string, std::string> headers = {}) {
  headers.emplace("Content-Type", "application/json");
  return daemon.send({"POST", "/querier.v1.QuerierService/" + method, headers, body});
}

json ask(const RunningDaemon& daemon, const std::string& method, const json& body) {
  const HttpAnswer answer = call(daemon, method, body.dump());
  INFO(method << ": " << answer.body);
  REQUIRE(answer.status == 200);
  return json::parse(answer.body);
}

/// By the end of each step that has samples: its nanoseconds.
using Points = std::map<std::int64_t, double>;

Points points_of(const json& answer) {
  Points points;
  for (const json& series : answer.value("series", json::array())) {
    for (const json& point : series["points"])
      points[std::stoll(point["timestamp"].get<std::string>())] += point["value"].get<double>();
  }
  return points;
}

Points points_of_timeline(const json& timeline) {
  Points points;
  const json& steps = timeline["steps"];
  for (std::size_t i = 0; i < steps["user_samples"].size(); ++i) {
    const auto samples = steps["user_samples"][i].get<std::int64_t>() + steps["kernel_samples"][i].get<std::int64_t>();
    const std::int64_t end_ms = timeline["start_ms"].get<std::int64_t>() + static_cast<std::int64_t>(i + 1) * kStepMs;
    if (samples != 0) points[end_ms] = static_cast<double>(samples * timeline["period_ns"].get<std::int64_t>());
  }
  return points;
}

/// Two steps of a program's work that all of the daemon's threads are done with.
struct Busy {
  Busy() : program({victim("known_chain")}) {
    REQUIRE(has_samples(daemon, program.pid(), 100));
    from_ms = (now_ms() / kStepMs + 1) * kStepMs;
    to_ms = from_ms + 2 * kStepMs;
    // Stacks of new programs may be walked up to 2 s later, and samples of the last second are on their way.
    std::this_thread::sleep_for(milliseconds(to_ms + 4000 - now_ms()));
  }
  [[nodiscard]] std::string window() const {
    return "from=" + std::to_string(from_ms) + "&to=" + std::to_string(to_ms);
  }
  [[nodiscard]] json select(const std::string& selector) const {
    return {{"profileTypeID", "process_cpu:cpu:nanoseconds:cpu:nanoseconds"},
            {"labelSelector", selector},
            {"start", from_ms},
            {"end", to_ms},
            {"step", kStepMs / 1000}};
  }
  [[nodiscard]] std::string of_program() const { return "{pid=\"" + std::to_string(program.pid()) + "\"}"; }

  RunningDaemon daemon;
  ChildProcess program;
  std::int64_t from_ms = 0;
  std::int64_t to_ms = 0;
};

/// The same for all cases, which only ask.
const Busy& busy_program() {
  static const Busy busy;
  return busy;
}

TEST_CASE("flame graph and series of Grafana's calls equal the profile and the timeline, to the sample") {
  const Busy& busy = busy_program();
  const std::string pid = "pid=" + std::to_string(busy.program.pid());
  const json timeline = busy.daemon.get_json("/timeline?step=5s&" + pid + "&" + busy.window());
  const auto period_ns = timeline["period_ns"].get<std::uint64_t>();

  json graph = busy.select(busy.of_program());
  graph["maxNodes"] = 1'000'000;
  FoldedStacks stacks = stacks_of_levels(ask(busy.daemon, "SelectMergeStacktraces", graph)["flamegraph"]);
  for (auto& [stack, ns] : stacks) ns /= period_ns;
  CHECK(total(stacks) >= 20);  // how much CPU time the program gets beside others is not tested
  CHECK(stacks == busy.daemon.folded("/profile?format=folded&group=none&" + pid + "&" + busy.window()));

  CHECK(points_of(ask(busy.daemon, "SelectSeries", busy.select(busy.of_program()))) == points_of_timeline(timeline));
  // The whole machine, as one series and by service.
  const Points machine = points_of_timeline(busy.daemon.get_json("/timeline?step=5s&" + busy.window()));
  CHECK(points_of(ask(busy.daemon, "SelectSeries", busy.select("{}"))) == machine);
  json by_service = busy.select("{}");
  by_service["groupBy"] = {"service_name", "process"};
  const json grouped = ask(busy.daemon, "SelectSeries", by_service);
  CHECK(grouped["series"].size() >= 2);
  CHECK(points_of(grouped) == machine);
}

TEST_CASE("labels of Grafana's calls are those of the processes with samples") {
  const Busy& busy = busy_program();
  const auto values = [&](const std::string& name, const std::string& selector) {
    return ask(busy.daemon, "LabelValues",
               {{"name", name}, {"matchers", {selector}}, {"start", busy.from_ms}, {"end", busy.to_ms}})
        .value("names", std::vector<std::string>());
  };
  const json row = [&] {
    const json listed = busy.daemon.get_json("/processes?" + busy.window());
    for (const json& process : listed["processes"]) {
      if (process["pid"] == busy.program.pid()) return process;
    }
    return json::object();
  }();
  CHECK(values("process", busy.of_program()) == std::vector<std::string>{row["comm"].get<std::string>()});
  CHECK(values("user", busy.of_program()) == std::vector<std::string>{std::to_string(row["uid"].get<unsigned>())});
  CHECK(values("host", "{}").size() == 1);
  const std::string unit = row["unit"].is_null() ? "" : row["unit"].get<std::string>();
  CHECK(values("unit", busy.of_program()) == (unit.empty() ? std::vector<std::string>() : std::vector{unit}));
  const std::vector<std::string> service = values("service_name", busy.of_program());
  REQUIRE(service.size() == 1);
  const std::vector<std::string> pids = values("pid", "{service_name=\"" + service[0] + "\"}");
  CHECK(std::find(pids.begin(), pids.end(), std::to_string(busy.program.pid())) != pids.end());

  const json types = ask(busy.daemon, "ProfileTypes", {{"start", 1000}, {"end", 4000}});
  CHECK(types["profileTypes"][0]["ID"] == "process_cpu:cpu:nanoseconds:cpu:nanoseconds");
  CHECK(ask(busy.daemon, "GetProfileStats", json::object())["dataIngested"] == true);
  CHECK(ask(busy.daemon, "Series", {{"labelNames", {"service_name"}}})["labelsSet"].size() >= 2);
}

TEST_CASE("Grafana's calls over the socket come as protocol buffers too, packed, and are refused with a code") {
  const Busy& busy = busy_program();
  std::string body;
  ProtobufWriter(body)
      .bytes(1, "process_cpu:cpu:nanoseconds:cpu:nanoseconds")
      .bytes(2, busy.of_program())
      .number(3, static_cast<std::uint64_t>(busy.from_ms))
      .number(4, static_cast<std::uint64_t>(busy.to_ms))
      .real(6, 10);
  const std::map<std::string, std::string> type{{"Content-Type", "application/proto"}};
  const HttpAnswer plain = call(busy.daemon, "SelectSeries", body, type);
  REQUIRE(plain.status == 200);
  CHECK(plain.content_type == "application/proto");
  const auto series = ProtobufReader(plain.body).next();
  REQUIRE(series.ok());
  const auto point = ProtobufReader(series.value().value().bytes).next();
  const auto value = ProtobufReader(point.value().value().bytes).next();
  const json in_json = ask(busy.daemon, "SelectSeries", [&] {
    json select = busy.select(busy.of_program());
    select["step"] = 10;
    return select;
  }());
  CHECK(std::bit_cast<double>(value.value().value().value) == in_json["series"][0]["points"][0]["value"].get<double>());

  std::map<std::string, std::string> packed_type = type;
  packed_type.emplace("Content-Encoding", "gzip");
  CHECK(call(busy.daemon, "SelectSeries", api::gzip(body).value(), packed_type).body == plain.body);

  const auto refused = [&](const HttpAnswer& answer, int status, const std::string& code) {
    CHECK(answer.status == status);
    CHECK(json::parse(answer.body)["code"] == code);
  };
  refused(call(busy.daemon, "SelectHeatmap", "", type), 501, "unimplemented");
  refused(call(busy.daemon, "SelectSeries", body.substr(0, 5), type), 400, "invalid_argument");
  refused(call(busy.daemon, "SelectSeries", api::gzip(std::string(64U << 20, ' ')).value(), packed_type), 400,
          "invalid_argument");
  refused(call(busy.daemon, "LabelNames", "{}", {{"Origin", "http://evil.example"}}), 403, "permission_denied");
  CHECK(call(busy.daemon, "LabelNames", std::string((1U << 20) + 1, ' ')).status == 413);
  CHECK(call(busy.daemon, "LabelNames", "{" + std::string((1U << 20) - 2, ' ') + "}").status == 200);
  CHECK(busy.daemon.get("/querier.v1.QuerierService/LabelNames").status == 405);
}

}  // namespace
}  // namespace flamed::test
