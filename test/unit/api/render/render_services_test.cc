// SPDX-License-Identifier: Apache-2.0
#include "api/render/render_services.h"

#include <map>
#include <string>
#include <vector>

#include "test/catch.h"
#include "test/support/engine_messages.h"
#include "test/unit/api/render/stack_profile_builder.h"

namespace flamed::api {
namespace {

using Labels = std::map<std::string, std::string>;
using Stacks = std::map<std::string, std::uint64_t>;

const HostLabels kHost{"build7", "0123", {{"env", "test"}}};

/// The stacks of example_stacks(), by service.
const Stacks kWorker{{"main;work;step", 5}, {"main;read;ksys_read", 3}};

void check_services(const std::vector<test::ReceivedProfile>& profiles, const std::string& service_label) {
  REQUIRE(profiles.size() == 2);
  const test::ReceivedProfile& other = profiles[0];
  const test::ReceivedProfile& worker = profiles[1];
  CHECK(other.labels.at(service_label) == "[kernel threads and unknown]");
  CHECK(worker.labels.at(service_label) == "worker.service");
  CHECK(worker.labels.at("env") == "test");
  CHECK(worker.stacks == kWorker);
  CHECK(other.stacks.at("[no stack]") == 1);
  CHECK(other.stacks.size() == 2);
  CHECK(worker.time_ns == StackProfileBuilder::kStartNs);
  CHECK(worker.duration_ns == 60 * kNsPerSecond);
  CHECK(worker.period == 10'000'000);
  CHECK(worker.id != other.id);
}

TEST_CASE("Pyroscope gets a series with one pprof for each service, without labels of samples") {
  const auto profiles = test::profiles_of_push(render_pyroscope(example_stacks(), kHost).value());
  check_services(profiles, "service_name");
  CHECK(profiles[1].labels == Labels{{"__name__", "process_cpu"},
                                     {"env", "test"},
                                     {"host", "build7"},
                                     {"service_name", "worker.service"},
                                     {"unit", "worker.service"}});
  CHECK(profiles[1].types == "samples/count cpu/nanoseconds per cpu/nanoseconds");
  // As https://www.rfc-editor.org/rfc/rfc9562 writes a UUID of version 8.
  REQUIRE(profiles[1].id.size() == 36);
  CHECK(profiles[1].id[14] == '8');
  CHECK(std::string("89ab").find(profiles[1].id[19]) != std::string::npos);
}

TEST_CASE("OTLP has a resource with one profile for each service, in both layouts of samples") {
  const auto profiles = test::profiles_of_otlp(encode_otlp(example_stacks(), kHost, OtlpLayout::kCurrent));
  check_services(profiles, "service.name");
  CHECK(profiles[1].labels == Labels{{"env", "test"},
                                     {"host.name", "build7"},
                                     {"service.name", "worker.service"},
                                     {"systemd.unit", "worker.service"}});
  CHECK(profiles[1].types == "samples/count per cpu/nanoseconds");
  CHECK(profiles[1].id.size() == 16);
  check_services(test::profiles_of_otlp(encode_otlp(example_stacks(), kHost, OtlpLayout::kBefore110), 2),
                 "service.name");
}

TEST_CASE("a service is a container by its name, and pods of one container are one service") {
  StackProfileBuilder b;
  const std::uint32_t main = b.node(0, b.frame(1, {{"main", "nginx", store::FrameKind::kNative, ""}}));
  auto count = [&, pid = 10](const std::string& container) mutable {
    store::ProcessInfo process{{++pid, 20}, "nginx", "/usr/sbin/nginx", 0, {}, {}};
    process.container = container;
    b.count(b.thread(process, pid, "nginx"), main, 1);
  };
  const std::string id(64, 'a');
  count(id + " shop/web-1/nginx");
  count(std::string(64, 'b') + " shop/web-2/nginx");
  count(std::string(64, 'c') + " db");
  count(std::string(64, 'd'));
  const auto pushed = test::profiles_of_push(render_pyroscope(b.profile, {"h", "", {}}).value());
  std::map<std::string, Labels> by_service;
  for (const auto& profile : pushed) by_service[profile.labels.at("service_name")] = profile.labels;
  REQUIRE(by_service.size() == 3);
  CHECK(by_service.at("shop/nginx") == Labels{{"__name__", "process_cpu"},
                                              {"container", "nginx"},
                                              {"host", "h"},
                                              {"namespace", "shop"},
                                              {"service_name", "shop/nginx"}});
  CHECK(by_service.at("db").at("container") == "db");
  CHECK(by_service.at(std::string(12, 'd')).at("container") == std::string(64, 'd'));
}

TEST_CASE("the same window of the same host has the same ids again, and another one others") {
  const auto ids = [](const store::StackProfile& profile, const HostLabels& host) {
    std::vector<std::string> found;
    for (const auto& each : test::profiles_of_push(render_pyroscope(profile, host).value())) found.push_back(each.id);
    return found;
  };
  const auto first = ids(example_stacks(), kHost);
  CHECK(ids(example_stacks(), kHost) == first);
  store::StackProfile later = example_stacks();
  later.used.to.ns += kNsPerSecond;
  CHECK(ids(later, kHost) != first);
  CHECK(ids(example_stacks(), {"build7", "4567", {{"env", "test"}}}) != first);
}

TEST_CASE("waiting time is sent in nanoseconds as off-CPU time, without a period") {
  store::StackProfile waits = example_stacks();
  waits.measure = store::Measure::kWait;
  const auto pushed = test::profiles_of_push(render_pyroscope(waits, kHost).value());
  CHECK(pushed[1].labels.at("__name__") == "off_cpu");
  CHECK(pushed[1].types == "off_cpu/nanoseconds");
  CHECK(pushed[1].stacks.at("main;work;step") == 50'000'000);
  const auto otlp = test::profiles_of_otlp(encode_otlp(waits, kHost, OtlpLayout::kCurrent));
  CHECK(otlp[1].types == "off_cpu/nanoseconds");
  CHECK(otlp[1].stacks.at("main;work;step") == 50'000'000);
}

TEST_CASE("threads and processes of a service are added up, and what they don't share is no label") {
  StackProfileBuilder b;
  store::ProcessInfo process{{10, 20}, "worker", "/opt/a/worker", 0, {}, {}};
  const std::uint32_t one = b.thread(process, 10, "worker");
  process.id.pid = 11;
  process.executable = "/opt/b/worker";
  const std::uint32_t two = b.thread(process, 11, "worker");
  const std::uint32_t main = b.node(0, b.frame(1, {{"main", "worker", store::FrameKind::kNative, ""}}));
  b.count(one, main, 2);
  b.count(two, main, 3);
  b.count(two, main, 4, store::Truncation::kDepthLimit);
  const auto profiles = test::profiles_of_push(render_pyroscope(b.profile, {"h", "", {}}).value());
  REQUIRE(profiles.size() == 1);
  CHECK(profiles[0].labels == Labels{{"__name__", "process_cpu"}, {"host", "h"}, {"service_name", "worker"}});
  CHECK(profiles[0].stacks.at("main") == 5);
  CHECK(profiles[0].stacks.size() == 2);
}

}  // namespace
}  // namespace flamed::api
