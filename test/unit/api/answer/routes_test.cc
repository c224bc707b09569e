// SPDX-License-Identifier: Apache-2.0
#include "api/answer/routes.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <nlohmann/json.hpp>

#include "api/http/assets.h"
#include "api/text/gzip.h"
#include "store/model/wait_reason.h"
#include "test/catch.h"
#include "test/unit/api/answer/fake_sources.h"
#include "test/unit/api/answer/roots_router.h"

namespace flamed::api {
namespace {

using nlohmann::json;

constexpr ProcessId kWorker{123, 4567};
constexpr ProcessId kIdle{200, 4000};

/// One hour east of UTC, so that local times differ from UTC.
std::int64_t local_offset_s(WallTime) { return 3600; }

struct Fixture {
  Fixture() {
    sources.add_process(kWorker, "worker");
    sources.add_samples(kWorker, "worker", {"main", "spin"}, 20);
    sources.add_samples(kWorker, "worker", {"main", "rest"}, 10);
    sources.add_process(kIdle, "idle");
  }

  Response get(const std::string& target, const std::string& method = "GET", const std::string& accept_encoding = "") {
    return router.handle({method, target, accept_encoding, false});
  }

  FakeSources sources;
  RootsRouter router{sources, local_offset_s};
};

std::string header(const Response& response, std::string_view name) {
  for (const auto& [key, value] : response.headers) {
    if (key == name) return value;
  }
  return {};
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

TEST_CASE("what is on disk is read from sums only for answers that tell neither threads nor stacks apart") {
  Fixture fixture;
  const auto asked = [&](const std::string& target) {
    CAPTURE(target);
    CHECK(fixture.get(target).status == 200);
    return fixture.sources.asked_of_disk;
  };
  for (const char* processes : {"/processes", "/processes?group=program", "/timeline?step=600s&processes=3",
                                "/processes?exe=worker&side=kernel"}) {
    CHECK(asked(processes).only_processes);
    CHECK(asked(processes).step_ns >= 600 * kNsPerSecond);
    CHECK_FALSE(asked(processes).each_process);
  }
  CHECK(asked("/processes?pid=123").each_process);
  CHECK(asked("/timeline?tree=123").each_process);
  CHECK(asked("/timeline?step=60s").step_ns == 60 * kNsPerSecond);
  for (const char* threads :
       {"/threads", "/profile", "/heatmap", "/processes?tid=123", "/processes?comm=worker", "/timeline?comm=worker",
        "/processes?measure=wait", "/timeline?measure=wall", "/timeline?offset_from=10&offset_to=20"}) {
    CHECK_FALSE(asked(threads).only_processes);
  }
}

TEST_CASE("only answers about samples are shared") {
  struct Case {
    std::string what;
    Request request;
    bool is_shareable;
  };
  const auto get = [](const std::string& target) { return Request{"GET", target, "", false}; };
  std::vector<Case> cases = {
      {"a profile", get("/profile?pid=123"), true},
      {"a profile, head alone", {"HEAD", "/profile?pid=123", "", false}, true},
      {"processes", get("/processes"), true},
      {"threads", get("/threads"), true},
      {"a timeline", get("/timeline"), true},
      {"a heat map", get("/heatmap"), true},
      {"a difference", get("/diff?from=now-1m"), true},
      {"marks", get("/marks"), false},
      {"what Go's tools ask for", get("/debug/pprof/profile?from=now-1m"), false},
      {"health", get("/healthz"), false},
      {"figures", get("/metrics"), false},
      {"the page", get("/"), false},
      {"what is not there", get("/nothing"), false},
      {"a target that is none", get("profile"), false},
      {"another method", {"POST", "/profile", "", false}, false},
      {"a body", {"GET", "/profile", "", true}, false},
  };
  Request known = get("/profile?pid=123");
  known.if_none_match = "W/\"0\"";
  cases.push_back({"what the client has already", known, false});
  Request waited = get("/profile?seconds=5");
  waited.asked = WallTime{FakeSources::kNowNs};
  cases.push_back({"what waited for its samples", waited, false});
  Request foreign = get("/profile?pid=123");
  foreign.origin = "https://example.org";
  cases.push_back({"what another page asks", foreign, false});
  Fixture fixture;
  for (const Case& c : cases) {
    INFO(c.what);
    CHECK(fixture.router.shareable(c.request).has_value() == c.is_shareable);
  }
}

TEST_CASE("each bad request is answered with what is wrong and what to do") {
  struct Case {
    std::string method;
    std::string target;
    int status;
    std::string kind;
    std::string parameter;
    std::string said;
  };
  const Case cases[] = {
      {"GET", "/profile?pid=abc", 400, "bad-parameter", "pid", "1234@567890"},
      {"GET", "/profile?pid=", 400, "bad-parameter", "pid", "not a process"},
      {"GET", "/profile?pid=0", 400, "bad-parameter", "pid", "not a process"},
      {"GET", "/profile?pid=-1", 400, "bad-parameter", "pid", "not a process"},
      {"GET", "/profile?pid=123@", 400, "bad-parameter", "pid", "not a process"},
      {"GET", "/profile?pid=99999999999999999999", 400, "bad-parameter", "pid", "not a process"},
      {"GET", "/profile?pid=1%00", 400, "bad-parameter", "pid", "not a process"},
      {"GET", "/profile?format=top&format=top", 400, "bad-parameter", "format", "more than once"},
      {"GET", "/profile?seconds=5&from=now-1h&to=now", 400, "bad-parameter", "seconds", "Leave out one"},
      {"GET", "/profile?tree=76", 404, "unknown-process", "tree", "leave tree out"},
      {"GET", "/profile?pid=123&tree=76", 404, "unknown-process", "tree", "never seen process 76"},
      {"GET", "/diff?tree=76", 404, "unknown-process", "tree", "leave tree out"},
      {"GET", "/diff?base_pid=76", 404, "unknown-process", "base_pid", "leave base_pid out"},
      {"GET", "/diff?base_tree=76", 404, "unknown-process", "base_tree", "leave base_tree out"},
      {"GET", "/diff?from=now-1m&base_from=now&base_to=now-1m", 400, "bad-parameter", "base_from", "must be before"},
      {"GET", "/diff?base_ago=1h&base_to=now", 400, "bad-parameter", "base_ago", "given twice"},
      {"GET", "/diff?base_ago=-1h", 400, "bad-parameter", "base_ago", "5m or 1h30m"},
      {"GET", "/profile?from=teatime", 400, "bad-parameter", "from", "RFC 3339"},
      {"GET", "/profile?to=25:00", 400, "bad-parameter", "to", "RFC 3339"},
      {"GET", "/profile?to=9223372036854775807", 400, "bad-parameter", "to", "1970 to 2199"},
      {"GET", "/profile?from=now&to=now-1m", 400, "bad-parameter", "from", "2026-01-31T14:04:30.000Z"},
      {"GET", "/profile?from=now&to=now", 400, "bad-parameter", "from", "2026-01-31T14:05:30.000Z"},
      {"GET", "/profile?format=svg", 400, "bad-parameter", "format",
       "flamegraph, columns, columns-binary, folded, pprof"},
      {"GET", "/profile?fromm=now", 400, "bad-parameter", "fromm", "pid, tid, comm"},
      {"GET", "/heatmap?format=folded", 400, "bad-parameter", "format", "from, to"},
      {"GET", "/processes?format=folded", 400, "bad-parameter", "format", "json, text"},
      {"GET", "/processes?from=x", 400, "bad-parameter", "from", "RFC 3339"},
      {"GET", "/healthz?verbose", 400, "bad-parameter", "verbose", "no parameters"},
      {"GET", "/metrics?x=1", 400, "bad-parameter", "x", "no parameters"},
      {"GET", "/profile?pid=%zz", 400, "bad-request", "", "%25"},
      {"GET", "*", 400, "bad-request", "", "slash"},
      {"GET", "/profile?pid=76", 404, "unknown-process", "pid", "never seen process 76"},
      {"GET", "/profile?pid=123@1", 404, "unknown-process", "pid", "never seen process 123@1"},
      {"GET", "/nothing", 404, "unknown-path", "", "/profile, /diff, /processes"},
      {"GET", "/profile/", 404, "unknown-path", "", "/profile, /diff, /processes"},
      {"GET", "/../../etc/passwd", 404, "unknown-path", "", "/profile, /diff, /processes"},
      {"GET", "/assets/none.js", 404, "unknown-path", "", "/profile, /diff, /processes"},
      {"POST", "/nothing", 405, "method-not-allowed", "", "use GET or HEAD"},
      {"POST", "/profile", 405, "method-not-allowed", "", "use GET or HEAD"},
      {"PUT", "/", 405, "method-not-allowed", "", "use GET or HEAD"},
      {"DELETE", "/processes", 405, "method-not-allowed", "", "use GET or HEAD"},
      {"OPTIONS", "/metrics", 405, "method-not-allowed", "", "use GET or HEAD"},
  };
  Fixture fixture;
  for (const Case& c : cases) {
    INFO(c.method << " " << c.target);
    const Response response = fixture.get(c.target, c.method);
    CHECK(response.status == c.status);
    CHECK(response.content_type == "application/problem+json");
    const json problem = json::parse(response.body);
    CHECK(problem["type"] == "urn:flamed:problem:" + c.kind);
    CHECK(problem["status"] == c.status);
    CHECK_FALSE(problem["title"].get<std::string>().empty());
    CHECK(problem.value("parameter", "") == c.parameter);
    CHECK(contains(problem["detail"].get<std::string>(), c.said));
    CHECK(header(response, "Allow") == (c.status == 405 ? "GET, HEAD" : ""));
  }
}

TEST_CASE("a request with a body that was not read is refused on every path") {
  Fixture fixture;
  for (const std::string method : {"GET", "POST"}) {
    for (const std::string target : {"/profile", "/", "/nothing", "/marks"}) {
      CHECK(fixture.router.handle({method, target, "", true}).status == 413);
    }
  }
}

TEST_CASE("a profile of one process is its flame graph") {
  Fixture fixture;
  const Response response = fixture.get("/profile?pid=123");
  CHECK(response.status == 200);
  CHECK(response.content_type == "application/json");
  CHECK(header(response, "Cache-Control") == "no-store");
  const json tree = json::parse(response.body);
  CHECK(tree["value"] == 30);
  CHECK(tree["cpu_seconds"].get<double>() == 0.3);
  CHECK(tree["children"][0]["name"] == "main");
  CHECK(tree["children"][0]["children"][1]["name"] == "spin");
  CHECK(tree["children"][0]["children"][1]["value"] == 20);
  CHECK(tree["processes"][0]["id"] == "123@4567");
  CHECK(tree["window"]["asked"]["to"] == "2026-01-31T14:05:30.000Z");
}

TEST_CASE("without a start the window is the last 15 minutes, or since the profiler's start if that is less") {
  Fixture fixture;
  const json fresh = json::parse(fixture.get("/profile?pid=123").body);
  CHECK(fresh["window"]["asked"]["from"] == "2026-01-31T14:05:20.000Z");
  CHECK(fresh["warnings"].empty());
  const json asked = json::parse(fixture.get("/profile?pid=123&from=now-15m").body);
  CHECK(asked["window"]["asked"]["from"] == "2026-01-31T13:50:30.000Z");
  CHECK_FALSE(asked["warnings"].empty());
}

TEST_CASE("a request for the window that an answer names gives the same samples") {
  Fixture fixture;
  fixture.sources.clock_.advance_ns(700'000);
  // In the millisecond in which the window begins.
  fixture.sources.add_samples(kWorker, "worker", {"main"}, 1, 5 * kNsPerSecond + 300'000);
  const json first = json::parse(fixture.get("/profile?pid=123&from=now-5s&to=now-1s").body);
  const json window = first["window"]["asked"];
  const json again = json::parse(
      fixture.get("/profile?pid=123&from=" + window["from_ms"].dump() + "&to=" + window["to_ms"].dump()).body);
  CHECK(again["value"] == 1);
  CHECK(first["value"] == again["value"]);
  CHECK(first["window"] == again["window"]);
}

TEST_CASE("a process may be selected by its start time") {
  Fixture fixture;
  CHECK(json::parse(fixture.get("/profile?pid=123@4567").body)["value"] == 30);
}

TEST_CASE("a profile without a pid has a child for each process") {
  Fixture fixture;
  fixture.sources.add_samples({300, 1}, "other", {"main"}, 5);
  const json tree = json::parse(fixture.get("/profile").body);
  CHECK(tree["value"] == 35);
  CHECK(tree["children"].size() == 2);
}

TEST_CASE("a profile is folded on request") {
  Fixture fixture;
  const Response response = fixture.get("/profile?pid=123&format=folded");
  CHECK(response.status == 200);
  CHECK(response.content_type == "text/plain; charset=utf-8");
  CHECK(response.body == "main;rest 10\nmain;spin 20\n");
  CHECK(header(response, "Flamed-Quality") == "samples=30, truncated=0, lost=0, symbolised=1.000");
}

TEST_CASE("every format has the share of samples whose names are known") {
  const auto kind = GENERATE(store::FrameKind::kUnknown, store::FrameKind::kUnnamed);
  Fixture fixture;
  for (auto& [offset, frame] : fixture.sources.namer_.names) {
    if (frame.name == "spin") frame.kind = kind;
  }
  // main, which all 30 samples have, and rest of 10 are known; spin of 20 is not.
  for (const std::string format : {"flamegraph", "columns", "top"}) {
    const json answer = json::parse(fixture.get("/profile?pid=123&format=" + format).body);
    CHECK(answer["symbolised_share"].get<double>() == Approx(40.0 / 60));
  }
  for (const std::string format : {"folded", "top-text", "pprof", "speedscope", "perf-script"}) {
    const std::string quality = header(fixture.get("/profile?pid=123&format=" + format), "Flamed-Quality");
    CHECK(contains(quality, "symbolised=0.667"));
  }
  const json diff = json::parse(fixture.get("/diff?pid=123&format=top").body);
  CHECK(diff["after"]["symbolised_share"].get<double>() == Approx(40.0 / 60));
}

TEST_CASE("a profile has the kernel's CPU time beside the samples, or why it is not known") {
  Fixture fixture;
  fixture.sources.machine_cpu_ = {400'000'000, {}};
  fixture.sources.process_cpu_[123] = {300'000'000, {}};
  const auto coverage = [&](const std::string& target) { return json::parse(fixture.get(target).body)["coverage"]; };
  for (const std::string format : {"flamegraph", "columns", "top"}) {
    CAPTURE(format);
    const json machine = coverage("/profile?format=" + format);
    CHECK(machine["cpu_seconds_accounted"].get<double>() == Approx(0.4));
    CHECK(machine["share"].get<double>() == Approx(0.75));
    CHECK_FALSE(machine.contains("reason"));
    CHECK(coverage("/profile?pid=123&format=" + format)["share"].get<double>() == Approx(1));
  }
  CHECK(header(fixture.get("/profile?pid=123&format=folded"), "Flamed-Quality") ==
        "samples=30, truncated=0, lost=0, symbolised=1.000, coverage=1.000");
  CHECK(coverage("/timeline?pid=123")["share"].get<double>() == Approx(1));
  const json diff = json::parse(fixture.get("/diff?base_pid=123&format=top").body);
  CHECK(diff["before"]["coverage"]["share"].get<double>() == Approx(1));
  CHECK(diff["after"]["coverage"]["share"].get<double>() == Approx(0.75));

  // The CPU time is the sum over the selected processes.
  CHECK(coverage("/profile?exe=worker")["share"].get<double>() == Approx(1));
  CHECK(coverage("/profile?tree=123")["share"].get<double>() == Approx(1));
  CHECK(coverage("/profile?unit=nobody.service")["reason"] == "no sample of the selection is retained");

  // The number of samples is the same, whatever part of them is shown.
  CHECK(coverage("/profile?pid=123&focus=spin")["share"].get<double>() == Approx(1));
  for (const std::string query : {"pid=123&side=user", "comm=worker", "pid=123&tid=123"}) {
    CAPTURE(query);
    CHECK(coverage("/profile?" + query)["share"].is_null());
    CHECK(coverage("/profile?" + query)["reason"].is_string());
  }
  fixture.sources.process_cpu_.clear();
  CHECK(coverage("/profile?pid=123")["reason"] == "it ended between readings");
  CHECK(coverage("/profile?pid=123")["cpu_seconds_accounted"].is_null());
  fixture.sources.process_cpu_[123] = {0, {}};
  CHECK(coverage("/profile?pid=123")["share"].is_null());
}

TEST_CASE("a profile of waiting time has beside it for how long threads existed, or why that is not known") {
  Fixture fixture;
  fixture.sources.machine_cpu_ = {2'000'000'000, {}};
  fixture.sources.thread_time_ = {.ns = 10'000'000'000, .error_ns = 100'000'000};
  store::Store& store = fixture.sources.store_;
  // The store begins ten seconds ago.
  const MonotonicTime visited{fixture.sources.clock_.monotonic().ns - 2 * kNsPerSecond};
  for (const auto& [reason, ns] :
       {std::pair{store::WaitReason::kLock, 2 * kNsPerSecond}, std::pair{store::WaitReason::kPoll, 4 * kNsPerSecond}}) {
    const std::vector<Frame> frames{store::wait_frame(reason)};
    store::WaitSample wait;
    wait.sample = {visited, {123, 4567}, 123, "worker", frames, {}};
    wait.sample.owner = ::getuid();
    wait.waited_ns = ns;
    store.add_wait(wait);
    store.end_wait(123, visited);
  }
  store.set_waits_seen(visited);
  const auto coverage = [&](const std::string& query) {
    return json::parse(fixture.get("/profile?" + query).body)["coverage"];
  };
  // What waits for work is shown or not, but exists.
  for (const std::string idle : {"hide", "show"}) {
    CAPTURE(idle);
    const json waited = coverage("measure=wait&idle=" + idle);
    CHECK(waited["thread_seconds"].get<double>() == Approx(10));
    CHECK(waited["thread_seconds_error"].get<double>() == Approx(0.1));
    CHECK(waited["cpu_seconds_accounted"].get<double>() == Approx(2));
    CHECK(waited["share"].get<double>() == Approx(6.0 / 8));
  }
  const json wall = coverage("measure=wall");
  CHECK(wall["cpu_seconds_accounted"].is_null());
  CHECK(wall["share"].get<double>() == Approx(0.63));  // with 30 samples of 10 ms
  CHECK_FALSE(wall.contains("reason"));
  CHECK(coverage("measure=wait&pid=123")["reason"].is_string());
  fixture.sources.thread_time_ = {.reason = "nobody counted them"};
  CHECK(coverage("measure=wait")["reason"] == "nobody counted them");
  CHECK(coverage("measure=wait")["thread_seconds_error"].is_null());
  CHECK_FALSE(coverage("pid=123").contains("thread_seconds"));
}

TEST_CASE("a known process without samples in the window is an empty tree and a warning") {
  Fixture fixture;
  fixture.sources.running_ = {{77, 0}};
  for (const std::string target : {"/profile?pid=200", "/profile?pid=123&from=now-2h&to=now-1h", "/profile?pid=77"}) {
    INFO(target);
    const Response response = fixture.get(target);
    CHECK(response.status == 200);
    const json tree = json::parse(response.body);
    CHECK(tree["value"] == 0);
    CHECK(tree["children"].empty());
    CHECK_FALSE(tree["warnings"].empty());
  }
}

TEST_CASE("a window may be given in the host's local time") {
  Fixture fixture;
  // 15:05 an hour east is 14:05 UTC.
  const json tree = json::parse(fixture.get("/profile?from=15:05").body);
  CHECK(tree["window"]["asked"]["from"] == "2026-01-31T14:05:00.000Z");
}

TEST_CASE("a window that ends a little in the future ends now, on every route and on both sides of a comparison") {
  Fixture fixture;
  for (const std::string path : {"/profile", "/processes", "/threads", "/timeline", "/heatmap"}) {
    for (const std::string to : {"15:10", "2026-01-31T14:10:00Z", "1769868600000"}) {
      INFO(path << " " << to);
      std::string target = path;
      const Response response = fixture.get(target.append("?from=15:05&to=").append(to));
      REQUIRE(response.status == 200);
      const json answer = json::parse(response.body);
      CHECK(answer["window"]["asked"]["from"] == "2026-01-31T14:05:00.000Z");
      CHECK(answer["window"]["asked"]["to"] == "2026-01-31T14:05:30.000Z");
      CHECK(answer["samples"] == 30);
    }
  }
  const json length = json::parse(fixture.get("/profile?from=15:05&seconds=300").body);
  CHECK(length["window"]["asked"]["to"] == "2026-01-31T14:05:30.000Z");
  const json diff = json::parse(fixture.get("/diff?from=15:05&to=15:10&base_from=15:04&base_to=15:09").body);
  CHECK(diff["before"]["window"]["asked"]["from"] == "2026-01-31T14:04:00.000Z");
  CHECK(diff["before"]["window"]["asked"]["to"] == "2026-01-31T14:05:30.000Z");
  const json ago = json::parse(fixture.get("/diff?from=15:05&to=15:10&base_ago=1d").body);
  CHECK(ago["before"]["window"]["asked"]["from"] == "2026-01-30T14:05:00.000Z");
  CHECK(ago["before"]["window"]["asked"]["to"] == "2026-01-30T14:05:30.000Z");
  CHECK(ago["before"]["warnings"][0].get<std::string>().find("before flamed began to sample") != std::string::npos);
  const json yesterday = json::parse(fixture.get("/diff?from=15:05&base_from=yesterday+15:05").body);
  CHECK(yesterday["before"]["window"]["asked"]["from"] == "2026-01-30T14:05:00.000Z");
  // The time before is as long as the window.
  const json before = json::parse(fixture.get("/diff?from=15:05&to=15:10").body);
  CHECK(before["before"]["window"]["asked"]["from"] == "2026-01-31T14:04:30.000Z");
}

TEST_CASE("a comparison with time before flamed's start says so in text formats, too") {
  Fixture fixture;
  const std::string before =
      "The window is before flamed began to sample, at 2026-01-31T14:05:20Z: there are no samples of it.";
  const std::string alone = "One side has no samples: there is nothing to compare with.";
  CHECK(fixture.get("/diff?format=folded").body ==
        "# before: " + before + "\n# " + alone + "\nmain;rest 0 10\nmain;spin 0 20\n");
  const std::string table = fixture.get("/diff?format=top-text").body;
  CHECK(table.starts_with("warning: before: " + before + "\nwarning: " + alone + "\n    before     after "));
  // Partly before the start.
  const std::string partly =
      "flamed began to sample at 2026-01-31T14:05:20Z, after the window's start: there are no "
      "samples from before.";
  const std::string query = "/diff?from=now-5s&base_from=now-1m&base_to=now-5s&format=";
  CHECK(fixture.get(query + "folded").body.starts_with("# before: " + partly + "\n"));
  CHECK(fixture.get(query + "top-text").body.starts_with("warning: before: " + partly + "\n"));
  // Readers do not take these lines for stacks, since the lines do not end in a number.
  for (const std::string& line : {before, alone, partly}) {
    CHECK(line.back() == '.');
    CHECK_FALSE(std::isdigit(static_cast<unsigned char>(line[line.size() - 2])));
  }

  fixture.sources.add_samples(kWorker, "worker", {"main"}, 1, 3 * kNsPerSecond);
  CHECK(fixture.get("/diff?from=now-5s&base_from=now-10s&base_to=now-5s&format=folded").body ==
        "main 0 1\nmain;rest 10 0\nmain;spin 20 0\n");
}

TEST_CASE("the text table has the warnings") {
  Fixture fixture;
  CHECK_FALSE(contains(fixture.get("/profile?format=top-text").body, "warning"));
  const std::string table = fixture.get("/profile?from=now-1m&format=top-text").body;
  CHECK(contains(table,
                 "2026-01-31T14:05:30.000Z\nwarning: flamed began to sample at 2026-01-31T14:05:20Z, after the "
                 "window's start: there are no samples from before.\n      self  self%"));
}

/// Columns are JSON behind their first 16 bytes.
json head_of(const Response& response) {
  if (response.content_type != "application/x-flamed-columns") return json::parse(response.body);
  const std::string& body = response.body;
  std::uint32_t length = 0;
  std::memcpy(&length, body.data() + 8, sizeof(length));
  return json::parse(body.substr(16, length));
}

TEST_CASE("every format says if a selection never matched") {
  Fixture fixture;
  struct Case {
    std::string filter;
    std::string names;  // empty: it has samples, before the window
  };
  const Case cases[] = {
      {"comm=nosuch", "comm"},
      {"pid=200", "pid"},
      {"exe=worker&comm=nosuch", "comm and exe"},
      {"pid=123&comm=worker&side=kernel", "pid, comm and side"},
      {"comm=worker", ""},
      {"pid=123", ""},
      {"", ""},
  };
  for (const Case& c : cases) {
    INFO(c.filter);
    const std::string said = "No sample in all that is retained, from 2026-01-31T14:05:20Z on, matches " + c.names +
                             ": another window would be as empty. /threads lists what was sampled.";
    const auto ask = [&](std::string target, const std::string& format = "") {
      target.append("?from=now-5s&").append(c.filter);
      if (!format.empty()) target.append("&format=").append(format);
      return fixture.get(target);
    };
    const auto says = [&](const std::string& text) { return contains(text, "No sample in all"); };
    const auto check_json = [&](const json& answer) {
      CHECK(answer["samples"] == 0);
      CHECK(answer["matched_ever"] == c.names.empty());
      const auto warnings = answer["warnings"].get<std::vector<std::string>>();
      CHECK((std::find(warnings.begin(), warnings.end(), said) != warnings.end()) != c.names.empty());
    };
    for (const std::string format : {"flamegraph", "columns", "columns-binary", "top"}) {
      INFO(format);
      check_json(head_of(ask("/profile", format)));
      const json diff = head_of(ask("/diff", format));
      check_json(diff["after"]);
      CHECK(diff["before"]["matched_ever"] == c.names.empty());
    }
    for (const std::string path : {"/processes", "/threads", "/timeline", "/heatmap"}) {
      INFO(path);
      check_json(json::parse(ask(path).body));
    }
    for (const std::string format : {"folded", "top-text", "perf-script", "pprof", "speedscope"}) {
      INFO(format);
      const Response response = ask("/profile", format);
      CHECK(contains(header(response, "Flamed-Quality"), "samples=0"));
      CHECK(contains(header(response, "Flamed-Warnings"), said) != c.names.empty());
      std::string text = response.body;
      if (format == "pprof") {
        text = *gunzip({reinterpret_cast<const unsigned char*>(response.body.data()), response.body.size()});
      }
      CHECK(says(text) != c.names.empty());
      if (c.names.empty()) continue;
      if (format == "folded" || format == "perf-script") CHECK(contains(text, "# " + said + "\n"));
      if (format == "top-text") CHECK(contains(text, "\nwarning: " + said + "\n"));
      if (format == "speedscope")
        CHECK(contains(json::parse(text)["profiles"][0]["name"].get<std::string>(), " - " + said));
    }
    for (const std::string format : {"folded", "top-text"}) {
      INFO(format);
      const std::string text = ask("/diff", format).body;
      CHECK(contains(text, "before: " + said) != c.names.empty());
      CHECK(contains(text, "after: " + said) != c.names.empty());
    }
  }
}

TEST_CASE("a function or path that was never sampled is distinguished from one outside of the window") {
  Fixture fixture;
  const std::string window = "/profile?from=now-5s&format=top&";
  const auto ever = [&](const std::string& filter) {
    return json::parse(fixture.get(window + filter).body)["matched_ever"].get<bool>();
  };
  CHECK(ever("focus=spin"));
  CHECK_FALSE(ever("focus=spim"));
  CHECK(ever("ignore=spin"));
  CHECK_FALSE(ever("ignore=main"));
  CHECK(ever("group=none&root=main&root=spin"));
  CHECK_FALSE(ever("group=none&root=spin"));
  CHECK_FALSE(ever("pid=123&focus=spin&ignore=main"));
  const std::string text = fixture.get("/profile?from=now-1m&pid=123&focus=spim&ignore=x&format=top-text").body;
  CHECK(contains(text, "matches pid, focus and ignore:"));
  CHECK(contains(fixture.get("/profile?focus=spim&format=top-text").body,
                 "matches focus: another window would be as empty. /profile?format=top-text lists the functions"));
  // Stacks can't be selected by path.
  CHECK_FALSE(contains(fixture.get(window + "root=spin&format=folded").body, "No sample in all"));
}

TEST_CASE("each side of a comparison names its parameters that never matched") {
  Fixture fixture;
  const json diff = json::parse(fixture.get("/diff?comm=worker&base_comm=nosuch&format=top").body);
  CHECK(diff["after"]["matched_ever"] == true);
  CHECK(diff["before"]["matched_ever"] == false);
  CHECK(contains(diff["before"]["warnings"].dump(), "matches base_comm:"));
  const std::string text = fixture.get("/diff?comm=worker&base_comm=nosuch&format=folded").body;
  CHECK(text.starts_with("# before: Nothing in the selection has samples in the window.\n# before: No sample in all"));
  CHECK(contains(text, "\nmain;spin 0 20\n"));
}

TEST_CASE("an answer with samples, and one over an empty store, do not search the whole store") {
  Fixture fixture;
  CHECK(json::parse(fixture.get("/profile").body)["matched_ever"] == true);
  FakeSources fresh;
  RootsRouter router{fresh, local_offset_s};
  const json answer = json::parse(router.handle({"GET", "/profile?comm=x", "", false}).body);
  CHECK(answer["matched_ever"].is_null());
  CHECK_FALSE(contains(answer["warnings"].dump(), "No sample in all"));
}

TEST_CASE("processes are listed with the largest CPU time first") {
  Fixture fixture;
  fixture.sources.add_samples({300, 1}, "other", {"main"}, 50);
  const json answer = json::parse(fixture.get("/processes").body);
  REQUIRE(answer["processes"].size() == 2);
  CHECK(answer["processes"][0]["pid"] == 300);
  CHECK(answer["processes"][1]["id"] == "123@4567");
  CHECK(answer["processes"][1]["samples"] == 30);
  CHECK(answer["samples"] == 80);
}

TEST_CASE("waiting time is told by reason where it is asked for, and in comparisons") {
  Fixture fixture;
  const std::vector<Frame> frames{{kFirstFreeModule, 1}, store::wait_frame(store::WaitReason::kLock)};
  store::WaitSample wait;
  wait.sample = {
      {fixture.sources.clock_.monotonic().ns - 2 * kNsPerSecond}, kWorker, kWorker.pid, "worker", frames, {}};
  wait.sample.owner = ::getuid();
  wait.waited_ns = 4 * kNsPerSecond;
  fixture.sources.store_.add_wait(wait);
  const auto answer = [&](const std::string& target) { return json::parse(fixture.get(target).body); };

  CHECK(answer("/threads?measure=wait")["threads"][0]["waits"] == json{{"lock", 4.0}});
  CHECK(answer("/threads?measure=wall")["threads"][0]["cpu_seconds"] == 4.3);
  CHECK(!answer("/threads")["threads"][0].contains("waits"));
  const json line = answer("/timeline?measure=wait");
  REQUIRE(line["waits"].size() == 1);
  double ms = 0;
  for (const json& step : line["waits"]["lock"]) ms += step.get<double>();
  CHECK(ms == 4000);
  CHECK(line["waits"]["lock"].size() == line["steps"]["user_cpu_ms"].size());
  CHECK(!answer("/timeline").contains("waits"));
  const json map = answer("/heatmap?measure=wait&rows=10");
  CHECK(map["measure"] == "wait");
  double seconds = 0;
  for (const json& count : map["counts"]) seconds += count.get<double>() * map["period_ns"].get<double>() / 1e9;
  CHECK(seconds == Approx(4).margin(0.01));
  CHECK(answer("/profile?measure=wait&offset_from=0&offset_to=500")["cpu_seconds"].get<double>() ==
        Approx(2).margin(0.01));
  const json compared = answer("/diff?measure=wait&base_from=now-15m&base_to=now-10m");
  CHECK(compared["after"]["measure"] == "wait");
  CHECK(compared["after"]["cpu_seconds"] == 4.0);

  CHECK(answer("/healthz")["measures"] == json{"cpu"});
  fixture.sources.health_.has_waits = true;
  CHECK(answer("/healthz")["measures"] == json{"cpu", "wait", "wall"});
}

TEST_CASE("health and readiness each answer 503 when they are bad") {
  Fixture fixture;
  CHECK(fixture.get("/healthz").status == 200);
  CHECK(fixture.get("/readyz").status == 200);
  fixture.sources.health_.healthy = false;
  CHECK(fixture.get("/healthz").status == 503);
  CHECK(json::parse(fixture.get("/healthz").body)["status"] == "failing");
  CHECK(fixture.get("/readyz").status == 200);
  fixture.sources.health_.ready = false;
  CHECK(fixture.get("/readyz").status == 503);
}

TEST_CASE("metrics are the daemon's and the API's own") {
  Fixture fixture;
  fixture.get("/nothing");
  const Response response = fixture.get("/metrics");
  CHECK(response.content_type == "text/plain; version=0.0.4; charset=utf-8");
  CHECK(contains(response.body, "flamed_samples_total 42\n"));
  CHECK(contains(response.body, "flamed_http_requests_total{code=\"4xx\"} 1\n"));
  CHECK(fixture.router.answered() == 2);
}

TEST_CASE("the version is that of the daemon") {
  Fixture fixture;
  CHECK(json::parse(fixture.get("/version").body)["version"] == "1.2.3");
}

TEST_CASE("every answer has headers that keep browsers from sharing it with other sites") {
  Fixture fixture;
  for (const std::string target : {"/", "/profile", "/nothing", "/profile?pid=x", "/healthz"}) {
    const Response response = fixture.get(target);
    CHECK(header(response, "X-Content-Type-Options") == "nosniff");
    CHECK(header(response, "Content-Security-Policy").starts_with("default-src 'self';"));
    CHECK(header(response, "Access-Control-Allow-Origin").empty());
  }
}

TEST_CASE("a large answer is compressed for clients that accept it, a small one never") {
  Fixture fixture;
  for (int i = 0; i < 50; ++i) fixture.sources.add_samples(kWorker, "worker", {"main", "f" + std::to_string(i)}, 1);
  const Response plain = fixture.get("/profile");
  CHECK(header(plain, "Content-Encoding").empty());
  CHECK(header(plain, "Vary") == "Accept-Encoding");
  const Response packed = fixture.get("/profile", "GET", "br, gzip");
  CHECK(header(packed, "Content-Encoding") == "gzip");
  const auto unpacked = gunzip({reinterpret_cast<const unsigned char*>(packed.body.data()), packed.body.size()});
  REQUIRE(unpacked.ok());
  CHECK(*unpacked == plain.body);
  CHECK(header(fixture.get("/version", "GET", "gzip"), "Content-Encoding").empty());
}

TEST_CASE("the page and its files are served, compressed or not") {
  Fixture fixture;
  REQUIRE_FALSE(assets().empty());
  for (const Asset& asset : assets()) {
    INFO(asset.path);
    const Response packed = fixture.get(std::string(asset.path), "GET", "gzip");
    CHECK(packed.status == 200);
    CHECK(header(packed, "Content-Encoding") == "gzip");
    const Response smallest = fixture.get(std::string(asset.path), "GET", "gzip, deflate, br");
    CHECK(header(smallest, "Content-Encoding") == (asset.brotli.empty() ? "gzip" : "br"));
    const Response plain = fixture.get(std::string(asset.path));
    CHECK(header(plain, "Content-Encoding").empty());
    CHECK(plain.body.size() > packed.body.size() / 2);
    CHECK(plain.content_type == asset.content_type);
    CHECK(header(plain, "Vary") == "Accept-Encoding");
    const bool is_document = asset.content_type.starts_with("text/html");
    CHECK(contains(header(plain, "Cache-Control"), is_document ? "no-cache" : "immutable"));
    const bool is_speedscope = asset.path.starts_with("/speedscope/");
    CHECK(contains(header(plain, "Content-Security-Policy"), "unsafe") == is_speedscope);
  }
  CHECK(fixture.get("/?pid=1&anything=goes").status == 200);
}

TEST_CASE("an exception in a route becomes an answer with status 500") {
  Fixture fixture;
  fixture.sources.namer_.fails = true;
  const Response response = fixture.get("/profile");
  CHECK(response.status == 500);
  const json problem = json::parse(response.body);
  CHECK(problem["type"] == "urn:flamed:problem:internal-error");
  CHECK(contains(problem["detail"].get<std::string>(), "the namer fell over"));
}

TEST_CASE("each path can list its parameters") {
  REQUIRE(Router::parameters_of("/profile").has_value());
  CHECK(Router::parameters_of("/profile")->size() == 33);
  CHECK(Router::parameters_of("/healthz")->empty());
  CHECK_FALSE(Router::parameters_of("/nothing").has_value());
}

}  // namespace
}  // namespace flamed::api
