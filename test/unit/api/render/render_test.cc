// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "api/render/render_columns.h"
#include "api/render/render_flamegraph.h"
#include "api/render/render_folded.h"
#include "api/render/render_health.h"
#include "api/render/render_metrics.h"
#include "api/render/render_processes.h"
#include "api/text/json_writer.h"
#include "api/text/utf8.h"
#include "test/catch.h"
#include "test/unit/api/render/profile_builder.h"

namespace flamed::api {
namespace {

using nlohmann::json;

const std::string kNul("a\0b", 3);

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

store::UsageTable<store::ProcessUsage> table_of(const std::vector<store::ProcessUsage>& rows) {
  store::UsageTable<store::ProcessUsage> table;
  table.asked = table.used = {WallTime{0}, WallTime{kNsPerMinute}};
  table.rows = rows;
  for (const store::ProcessUsage& row : rows) {
    table.total_samples += row.samples;
    table.total_ns += row.cpu_ns;
  }
  return table;
}

TEST_CASE("a flame graph is nested as d3-flame-graph reads it") {
  ProfileBuilder builder("worker");
  const auto main = builder.add(0, "main", 1);
  const auto spin = builder.add(main, "spin", 6);
  builder.add(spin, {"sys_read", "[kernel]", store::FrameKind::kKernel, ""}, 2);
  builder.add(main, {"[unknown] (lib+0x10)", "lib", store::FrameKind::kUnknown, "no symbols"}, 1);
  const json tree = json::parse(render_flamegraph(builder.profile, 99));

  CHECK(tree["name"] == "worker");
  CHECK(tree["value"] == 10);
  CHECK(tree["self"] == 0);
  REQUIRE(tree["children"].size() == 1);
  const json& node = tree["children"][0];
  CHECK(node["name"] == "main");
  CHECK(node["kind"] == "native");
  CHECK(node["module"] == "m");
  CHECK(node["value"] == 10);
  CHECK(node["self"] == 1);
  REQUIRE(node["children"].size() == 2);
  CHECK(node["children"][0]["name"] == "spin");
  CHECK(node["children"][0]["children"][0]["kind"] == "kernel");
  CHECK(node["children"][0]["children"][0]["value"] == 2);
  CHECK_FALSE(node["children"][0]["children"][0].contains("children"));
  CHECK(node["children"][1]["reason"] == "no symbols");
}

store::NamedFrame unnamed(const std::string& module, std::uint64_t offset, const std::string& name) {
  store::NamedFrame frame{name, module, store::FrameKind::kUnnamed, "no symbols in " + module};
  frame.offset = offset;
  frame.build_id = "00ff";
  return frame;
}

TEST_CASE("a function without a name has its place in every format of functions") {
  ProfileBuilder builder;
  builder.add(builder.add(0, "main", 1), unnamed("lib.so", 0x1a20, "[lib.so+0x1a20]"), 3);
  const json node = json::parse(render_flamegraph(builder.profile, 99))["children"][0]["children"][0];
  CHECK(node["name"] == "[lib.so+0x1a20]");
  CHECK(node["kind"] == "unnamed");
  CHECK(node["offset"] == 0x1a20);
  CHECK(node["reason"] == "no symbols in lib.so");
  CHECK_FALSE(json::parse(render_flamegraph(builder.profile, 99))["children"][0].contains("offset"));
  CHECK(lines_of(render_folded(builder.profile)) == std::vector<std::string>{"main 1", "main;[lib.so+0x1a20] 3"});
  const json columns = json::parse(render_columns(builder.profile, 99, ColumnForm::kJson))["columns"];
  CHECK(columns["kinds"][columns["frames"]["kind"][2].get<std::size_t>()] == "unnamed");
}

TEST_CASE("modules with code without names are listed, those in most stacks first, each once with its reason") {
  ProfileBuilder builder;
  const std::uint32_t main = builder.add(0, unnamed("tool", 0x100, "[tool+0x100]"), 0);
  const std::uint32_t called = builder.add(main, unnamed("lib.so", 0x10, "[lib.so+0x10]"), 5);
  builder.add(called, unnamed("lib.so", 0x20, "[lib.so+0x20]"), 7);
  builder.add(main, {"[unknown] ([anon]+0x1)", "[anon]", store::FrameKind::kUnknown, "no perf map"}, 20);
  builder.add(0, unnamed("unused", 0x10, "[unused+0x10]"), 0);
  builder.add(0, "named", 10);
  const json answer = json::parse(render_flamegraph(builder.profile, 99));
  CHECK(answer["symbolised_share"].get<double>() == 10.0 / 81);
  const json expected = json::parse(R"([
      {"module": "tool", "build_id": "00ff", "samples": 32, "reason": "no symbols in tool"},
      {"module": "[anon]", "samples": 20, "reason": "no perf map"},
      {"module": "lib.so", "build_id": "00ff", "samples": 12, "reason": "no symbols in lib.so"}])");
  CHECK(answer["unnamed"] == expected);
  CHECK(json::parse(render_columns(builder.profile, 99, ColumnForm::kJson))["unnamed"] == expected);
  for (int i = 0; i < 9; ++i) builder.add(0, unnamed("m" + std::to_string(i), 1, "[m+0x1]"), 1);
  CHECK(json::parse(render_flamegraph(builder.profile, 99))["unnamed"].size() == 5);
}

TEST_CASE("gaps say when samples are missing, on which CPU, and why") {
  ProfileBuilder builder;
  builder.add(0, "f", 100);
  const WallTime start = builder.profile.used.from;
  builder.profile.missing = {
      {.from = start,
       .to = {start.ns + 700 * kNsPerMs},
       .reason = store::GapReason::kTimerSilent,
       .cpu = std::uint16_t{3}},
      {.from = start, .to = {start.ns + kNsPerSecond}, .reason = store::GapReason::kLost, .lost_samples = 12}};
  const json gaps = json::parse(render_flamegraph(builder.profile, 99))["missing"];
  REQUIRE(gaps.size() == 2);
  CHECK(gaps[0]["reason"] == "timer_silent");
  CHECK(gaps[0]["cpu"] == 3);
  CHECK(gaps[0]["to_ms"].get<std::int64_t>() - gaps[0]["from_ms"].get<std::int64_t>() == 700);
  CHECK_FALSE(gaps[0].contains("lost_samples"));
  CHECK(gaps[1]["reason"] == "samples_lost");
  CHECK(gaps[1]["cpu"].is_null());
  CHECK(gaps[1]["lost_samples"] == 12);
}

TEST_CASE("a profile has the figures of its quality beside the tree") {
  ProfileBuilder builder;
  builder.add(0, "f", 100);
  builder.profile.used.from.ns -= kNsPerMinute;
  builder.profile.quality.whole = 97;
  builder.profile.quality.truncated[0] = 3;
  builder.profile.quality.lost[0] = 5;
  builder.profile.warnings = {"look out"};
  builder.profile.periods = {{10'101'010, 0.75}, {40'404'040, 0.25}};
  builder.profile.processes.push_back({{7, 8}, "worker", "/bin/worker", 0, WallTime{0}, std::nullopt});
  const json answer = json::parse(render_flamegraph(builder.profile, 99));

  CHECK(answer["window"]["asked"]["from"] == "2026-01-31T14:00:00.000Z");
  CHECK(answer["window"]["asked"]["to_ms"] == 1769868900000);
  CHECK(answer["window"]["used"]["from_ms"] == 1769867940000);
  CHECK(answer["resolution_ms"] == 60000);
  CHECK(answer["period_ns"] == 10101010);
  CHECK(answer["frequency_hz"] == 99);
  CHECK(answer["samples"] == 100);
  CHECK(answer["cpu_seconds"].get<double>() == 1.010101);
  CHECK(answer["quality"]["whole"] == 97);
  CHECK(answer["quality"]["truncated"]["depth_limit"] == 3);
  CHECK(answer["quality"]["truncated"].size() == store::kTruncationCount - 1);  // all but the guessed ones
  CHECK(answer["quality"]["guessed"] == 0);
  CHECK(answer["quality"]["lost"]["ring_full"] == 5);
  CHECK(answer["quality"]["lost"].size() == store::kLossCount);
  CHECK(answer["quality"]["frequencies"] ==
        json::parse(R"([{"hz": 99, "share": 0.75}, {"hz": 24.75, "share": 0.25}])"));
  CHECK(answer["warnings"] == json::array({"look out"}));
  const json& process = answer["processes"][0];
  CHECK(process["id"] == "7@8");
  CHECK(process["comm"] == "worker");
  CHECK(process["executable"] == "/bin/worker");
  CHECK(process["started"] == "1970-01-01T00:00:00.000Z");
  CHECK(process["ended"].is_null());
}

TEST_CASE("an empty profile is a root without children") {
  const json tree = json::parse(render_flamegraph(ProfileBuilder().profile, 99));
  CHECK(tree["value"] == 0);
  CHECK(tree["children"] == json::array());
  CHECK(render_folded(ProfileBuilder().profile).empty());
}

TEST_CASE("hostile names stay plain text in every format") {
  struct Case {
    std::string raw;
    std::string in_json;
    std::string in_folded;
  };
  const Case cases[] = {
      {"say \"hi\" \\ there", "say \"hi\" \\ there", "say \"hi\" \\ there"},
      {"a;b", "a;b", "a:b"},
      {"line\nbreak\r\t", "line\nbreak\r\t", "line_break__"},
      {kNul, kNul, "a_b"},
      {"\x7f", "\x7f", "_"},
      {"\u202Eevil\u200F", "\u202Eevil\u200F", "\u202Eevil\u200F"},
      {"bad \xff\xc0\xaf utf-8", "bad \uFFFD\uFFFD\uFFFD utf-8", "bad \uFFFD\uFFFD\uFFFD utf-8"},
      {"cut \xe2\x82", "cut \uFFFD\uFFFD", "cut \uFFFD\uFFFD"},
      {"\xed\xa0\x80", "\uFFFD\uFFFD\uFFFD", "\uFFFD\uFFFD\uFFFD"},
      {"<img onerror=alert(1)>", "<img onerror=alert(1)>", "<img onerror=alert(1)>"},
      {"", "", "[unnamed]"},
      {std::string(10'000, 'x'), std::string(10'000, 'x'), std::string(10'000, 'x')},
  };
  for (const Case& c : cases) {
    INFO(c.in_json);
    ProfileBuilder builder;
    builder.add(0, {c.raw, c.raw, store::FrameKind::kUnknown, c.raw}, 3);
    builder.profile.warnings.push_back(c.raw);
    builder.profile.processes.push_back({{1, 1}, c.raw, c.raw, 0, std::nullopt, std::nullopt});
    const json tree = json::parse(render_flamegraph(builder.profile, 99));
    CHECK(tree["children"][0]["name"] == c.in_json);
    CHECK(tree["warnings"][0] == c.in_json);
    CHECK(tree["processes"][0]["comm"] == c.in_json);
    CHECK(render_folded(builder.profile) == c.in_folded + " 3\n");
  }
}

TEST_CASE("stacks of ten thousand frames are written without recursion") {
  ProfileBuilder builder;
  std::uint32_t node = 0;
  for (int depth = 0; depth < 10'000; ++depth) node = builder.add(node, "f", 0);
  // Samples are counted here and not on adding, since each count walks to the root.
  builder.count(node, 1);
  const std::string tree = render_flamegraph(builder.profile, 99);
  CHECK(std::count(tree.begin(), tree.end(), '{') == std::count(tree.begin(), tree.end(), '}'));
  CHECK(json::accept(tree));
  const std::string folded = render_folded(builder.profile);
  CHECK(std::count(folded.begin(), folded.end(), ';') == 9'999);
}

TEST_CASE("folded stacks are in byte order and add up to the samples") {
  ProfileBuilder builder;
  const auto a = builder.add(0, "a", 5);
  builder.add(a, "c", 1);
  builder.add(a, "b", 2);
  builder.add(0, "a b", 3);
  const auto call = builder.add(0, "a(int)", 4);
  builder.add(call, "z", 7);
  builder.count(0, 9);
  const std::string folded = render_folded(builder.profile);
  const std::vector<std::string> lines = lines_of(folded);
  CHECK(lines == std::vector<std::string>{"a 5", "a b 3", "a(int) 4", "a(int);z 7", "a;b 2", "a;c 1", "all 9"});
  CHECK(std::is_sorted(lines.begin(), lines.end()));
}

TEST_CASE("stacks with the same folded text are one line") {
  ProfileBuilder builder;
  const auto first = builder.add(0, {"f", "one", store::FrameKind::kNative, ""}, 1);
  builder.add(first, "x;y", 2);
  builder.add(first, "x:y", 3);
  const auto second = builder.add(0, {"f", "two", store::FrameKind::kNative, ""}, 4);
  builder.add(second, "x:y", 5);
  CHECK(render_folded(builder.profile) == "f 5\nf;x:y 10\n");
}

TEST_CASE("processes are listed with their share of the CPU") {
  const std::vector<store::ProcessUsage> usage{
      {{{10, 20}, "<b>", "", 0, WallTime{5 * kNsPerSecond}, WallTime{6 * kNsPerSecond}}, 99, 1'000'000'000},
      {{{11, 21}, "idle", "/bin/idle", 0, std::nullopt, std::nullopt}, 1, 10'000'000}};
  const json answer = json::parse(render_processes(table_of(usage), 99));
  CHECK(answer["samples"] == 100);
  CHECK(answer["cpu_seconds"].get<double>() == 1.01);
  CHECK(answer["window"]["used"]["to_ms"] == 60000);
  REQUIRE(answer["processes"].size() == 2);
  CHECK(answer["processes"][0]["id"] == "10@20");
  CHECK(answer["processes"][0]["comm"] == "<b>");
  CHECK(answer["processes"][0]["executable"].is_null());
  CHECK(answer["processes"][0]["ended"] == "1970-01-01T00:00:06.000Z");
  CHECK(answer["processes"][0]["samples"] == 99);
  CHECK(answer["processes"][0]["cpu_seconds"] == 1.0);
}

TEST_CASE("a process is listed with its owner, parent and cgroup, as far as known") {
  store::ProcessUsage usage{{{10, 20}, "worker", "", 0, std::nullopt, std::nullopt}, 1, 1};
  usage.info.uid = 0;
  usage.info.command_line = "worker --fast";
  usage.info.cgroup = "/system.slice/docker-x.scope";
  usage.info.unit = "docker-x.scope";
  usage.info.parent_pid = 5;
  usage.info.parent_start_ticks = 6;
  store::ProcessUsage unknown{{{11, 21}, "gone", "", 0, std::nullopt, std::nullopt}, 1, 1};
  const std::vector<store::ProcessUsage> rows{usage, unknown};
  const json answer = json::parse(render_processes(table_of(rows), 99));
  const json& row = answer["processes"][0];
  CHECK(row["uid"] == 0);
  CHECK(row["command_line"] == "worker --fast");
  CHECK(row["cgroup"] == "/system.slice/docker-x.scope");
  CHECK(row["unit"] == "docker-x.scope");
  CHECK(row["container"].is_null());
  CHECK(row["container_name"].is_null());
  CHECK(row["parent"] == "5@6");
  for (const char* member : {"uid", "command_line", "cgroup", "unit", "container", "parent"}) {
    CHECK(answer["processes"][1].at(member).is_null());
  }
  usage.info.container = std::string(64, 'a') + " web";
  const std::vector<store::ProcessUsage> named{usage};
  const json container = json::parse(render_processes(table_of(named), 99))["processes"][0];
  CHECK(container["container"] == std::string(64, 'a'));
  CHECK(container["container_name"] == "web");
}

TEST_CASE("a frame has only the members that are known") {
  ProfileBuilder builder;
  store::NamedFrame frame{"f", "lib.so", store::FrameKind::kNative, ""};
  frame.build_id = "0a1b";
  frame.file = "src/f.cc";
  frame.line = 7;
  frame.inlined = true;
  builder.add(0, frame, 1);
  builder.add(0, "g", 1);
  const json tree = json::parse(render_flamegraph(builder.profile, 99));
  CHECK(tree["children"][0]["build_id"] == "0a1b");
  CHECK(tree["children"][0]["file"] == "src/f.cc");
  CHECK(tree["children"][0]["line"] == 7);
  CHECK(tree["children"][0]["inlined"] == true);
  for (const char* member : {"build_id", "file", "line", "inlined"}) CHECK_FALSE(tree["children"][1].contains(member));
}

TEST_CASE("columns hold the known members of frames, and a member that no frame has gets no column") {
  ProfileBuilder builder;
  const std::uint32_t main = builder.add(0, "main", 1);
  store::NamedFrame frame{"f", "libf.so", store::FrameKind::kNative, ""};
  frame.full_name = "f(int)";
  frame.build_id = "0a1b";
  frame.line = 12;
  frame.inlined = true;
  builder.add(main, frame, 2);
  const json columns = json::parse(render_columns(builder.profile, 99, ColumnForm::kJson))["columns"];
  const json& frames = columns["frames"];
  const auto text = [&](const char* column, std::size_t index) {
    return columns["strings"][frames[column][index].get<std::size_t>()].get<std::string>();
  };
  CHECK(text("full_name", 2) == "f(int)");
  CHECK(text("full_name", 1).empty());
  CHECK(text("build_id", 2) == "0a1b");
  CHECK(frames["line"] == json{0, 0, 12});
  CHECK(frames["inlined"] == json{0, 0, 1});
  CHECK_FALSE(frames.contains("reason"));
  CHECK_FALSE(frames.contains("file"));
}

TEST_CASE("metrics follow the Prometheus text format") {
  const std::vector<Metric> metrics{
      {"flamed_samples_total",
       "Samples\nby \\ result.",
       Metric::Type::kCounter,
       {{{{"result", "whole"}}, 1e6}, {{{"result", "a\"b\\c\nd\xff"}, {"cpu", "0"}}, 0.25}}},
      {"flamed_up", "Is it up?", Metric::Type::kGauge, {{{}, 1}}},
      {"flamed_odd",
       "Odd values.",
       Metric::Type::kGauge,
       {{{{"v", "nan"}}, std::numeric_limits<double>::quiet_NaN()},
        {{{"v", "inf"}}, -std::numeric_limits<double>::infinity()},
        {{{"v", "large"}}, 1e300}}},
      {"flamed_none", "No values.", Metric::Type::kGauge, {}}};
  CHECK(render_metrics(metrics) ==
        "# HELP flamed_samples_total Samples\\nby \\\\ result.\n"
        "# TYPE flamed_samples_total counter\n"
        "flamed_samples_total{result=\"whole\"} 1000000\n"
        "flamed_samples_total{result=\"a\\\"b\\\\c\\nd\uFFFD\",cpu=\"0\"} 0.25\n"
        "# HELP flamed_up Is it up?\n"
        "# TYPE flamed_up gauge\n"
        "flamed_up 1\n"
        "# HELP flamed_odd Odd values.\n"
        "# TYPE flamed_odd gauge\n"
        "flamed_odd{v=\"nan\"} NaN\n"
        "flamed_odd{v=\"inf\"} -Inf\n"
        "flamed_odd{v=\"large\"} 1e+300\n"
        "# HELP flamed_none No values.\n"
        "# TYPE flamed_none gauge\n");
}

TEST_CASE("health names each component") {
  const Health health{false, true, {{"sampler", false, "no samples for 12 s"}}};
  const json answer = json::parse(render_health(health));
  CHECK(answer["status"] == "failing");
  CHECK(answer["components"][0]["name"] == "sampler");
  CHECK(answer["components"][0]["ok"] == false);
  CHECK(answer["components"][0]["detail"] == "no samples for 12 s");
  CHECK(json::parse(render_readiness(health))["status"] == "ready");
  CHECK_FALSE(answer.contains("file"));
  CHECK_FALSE(answer.contains("oldest"));
}

TEST_CASE("health says how far back answers reach, and of which file they are") {
  Health health;
  health.oldest = WallTime{1769868330 * kNsPerSecond};
  const HistoryFile file{"a.db", "", {{1769868330 * kNsPerSecond}, {1769868390 * kNsPerSecond}}};
  const json answer = json::parse(render_health(health, file));
  CHECK(answer["oldest"] == "2026-01-31T14:05:30.000Z");
  CHECK(answer["oldest_ms"] == 1769868330000);
  CHECK(answer["file"]["name"] == "a.db");
  CHECK(answer["file"]["host"].is_null());
  CHECK(answer["file"]["window"]["to_ms"] == 1769868390000);
  CHECK(json::parse(render_health(health, HistoryFile{"a.db", "web-1", {}}))["file"]["host"] == "web-1");
}

TEST_CASE("numbers that JSON cannot represent are null") {
  std::string out;
  JsonWriter(out).begin_array().number(std::numeric_limits<double>::infinity()).number(0.5).end_array();
  CHECK(out == "[null,0.5]");
}

TEST_CASE("only well-formed UTF-8 is accepted") {
  CHECK(repair_utf8("aé€😀") == "aé€😀");
  CHECK(repair_utf8("\xf4\x90\x80\x80") == "\uFFFD\uFFFD\uFFFD\uFFFD");
  CHECK(repair_utf8("\xe0\x80\xaf") == "\uFFFD\uFFFD\uFFFD");
  CHECK(repair_utf8("\xf0\x9f\x98") == "\uFFFD\uFFFD\uFFFD");
}

}  // namespace
}  // namespace flamed::api
