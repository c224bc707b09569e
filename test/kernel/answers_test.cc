// SPDX-License-Identifier: Apache-2.0
//
// Queries to the real daemon about known loads: every format has the same samples, windows are exact, changes are
// found, and selections add up to the whole.
#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <thread>

#include "test/catch.h"
#include "test/kernel/folded_stacks.h"
#include "test/support/child_process.h"
#include "test/support/running_daemon.h"

namespace flamed::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Milliseconds of unix time, half open.
struct Window {
  std::int64_t from = 0;
  std::int64_t to = 0;

  [[nodiscard]] std::string query() const { return "&from=" + std::to_string(from) + "&to=" + std::to_string(to); }
};

std::int64_t now_ms() {
  return std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string pid_query(pid_t pid) { return "pid=" + std::to_string(pid); }

/// Waits until all samples before `time` are in the store, that is until a busy process has samples that are younger by
/// more than a drain's interval.
bool is_stored(const RunningDaemon& daemon, pid_t busy, std::int64_t time) {
  const std::string younger = profile_of(busy) + "&from=" + std::to_string(time + 2000);
  return RunningDaemon::eventually(seconds(60),
                                   [&] { return now_ms() > time + 2000 && total(daemon.folded(younger)) > 0; });
}

/// A closed window with at least this many samples of a busy process.
Window window_with(const RunningDaemon& daemon, pid_t busy, std::uint64_t samples) {
  Window window{now_ms(), 0};
  const std::string since = profile_of(busy) + "&from=" + std::to_string(window.from);
  std::uint64_t seen = 0;
  while (seen < samples) {
    std::uint64_t now = seen;
    REQUIRE(RunningDaemon::eventually(
        seconds(30), [&] { return now_ms() > window.from && (now = total(daemon.folded(since))) > seen; }));
    seen = now;
    if (seen < samples) std::this_thread::sleep_for(milliseconds(500));
  }
  window.to = now_ms();
  REQUIRE(is_stored(daemon, busy, window.to));
  return window;
}

/// The output of a command; empty if it fails.
std::optional<std::vector<std::string>> lines_of(const std::string& command) {
  ChildProcess shell({"sh", "-c", command});
  std::vector<std::string> lines;
  while (auto line = shell.read_line(seconds(60))) lines.push_back(std::move(*line));
  if (shell.wait(seconds(60)) != 0) return std::nullopt;
  return lines;
}

bool has_command(const std::string& name) { return lines_of("command -v " + name).has_value(); }

/// A file that is removed with the test.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& content) {
    std::string name = (std::filesystem::temp_directory_path() / "flamed-test-XXXXXX").string();
    const int fd = ::mkstemp(name.data());
    if (fd < 0) throw std::runtime_error("mkstemp");
    static_cast<void>(::close(fd));
    path_ = name;
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::uint64_t self_of_all(const nlohmann::json& node) {
  std::uint64_t sum = node["self"].get<std::uint64_t>();
  if (const auto children = node.find("children"); children != node.end()) {
    for (const auto& child : *children) sum += self_of_all(child);
  }
  return sum;
}

/// The records of perf-script.
struct ScriptRecord {
  std::int64_t time_us = 0;
  std::uint64_t period_ns = 0;
};

std::vector<ScriptRecord> script_records(const std::string& text) {
  static const std::regex head(R"(^.* +\d+/\d+ +\[\d+\] +(\d+)\.(\d{6}): +(\d+) cpu-clock:.*$)");
  std::vector<ScriptRecord> records;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::smatch parts;
    if (line.empty() || line.front() == '\t' || line.front() == ' ' || line.front() == '#') continue;
    if (!std::regex_match(line, parts, head)) throw std::runtime_error("not a record of perf script: " + line);
    records.push_back({std::stoll(parts[1]) * 1000000 + std::stoll(parts[2]), std::stoull(parts[3])});
  }
  return records;
}

struct PprofTotals {
  std::uint64_t samples = 0;
  std::uint64_t cpu_ns = 0;
};

/// The profile as protobuf's own decoder reads it, by the fields that pprof documents. Fails on other fields.
PprofTotals decoded_by_protoc(const std::string& file, const std::string& schema) {
  const std::filesystem::path path(schema);
  const auto lines = lines_of("gunzip -c " + file + " | protoc --proto_path=" + path.parent_path().string() +
                              " --decode=pprof.Profile " + path.filename().string());
  REQUIRE(lines.has_value());
  static const std::regex value(R"(^  value: (\d+)$)");
  static const std::regex unknown(R"(^ *\d+(:| \{).*$)");
  PprofTotals totals;
  int values_seen = 0;
  for (const std::string& line : *lines) {
    INFO(line);
    CHECK_FALSE(std::regex_match(line, unknown));
    std::smatch parts;
    if (line == "sample {") values_seen = 0;
    if (!std::regex_match(line, parts, value)) continue;
    (values_seen++ == 0 ? totals.samples : totals.cpu_ns) += std::stoull(parts[1]);
  }
  return totals;
}

PprofTotals decoded_by_go(const std::string& file) {
  const auto lines = lines_of("go tool pprof -raw " + file + " 2>&1");
  REQUIRE(lines.has_value());
  static const std::regex sample(R"(^ +(\d+) +(\d+): .*$)");
  PprofTotals totals;
  bool in_samples = false;
  for (const std::string& line : *lines) {
    if (line == "Locations") in_samples = false;
    std::smatch parts;
    if (in_samples && std::regex_match(line, parts, sample)) {
      totals.samples += std::stoull(parts[1]);
      totals.cpu_ns += std::stoull(parts[2]);
    }
    if (line == "Samples:") in_samples = true;
  }
  return totals;
}

/// Includes the meaning of the lines in the report of a failed test.
bool any_line_holds(const std::vector<std::string>& lines, const std::string& part) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  if (text.find(part) != std::string::npos) return true;
  UNSCOPED_INFO("not found: " << part << "\nin:\n" << text);
  return false;
}

TEST_CASE("a closed window has the same samples in every format, and independent decoders agree") {
  RunningDaemon daemon;
  ChildProcess program({victim("known_chain")});
  ChildProcess other({victim("system_calls")});
  // On a busy machine its file may wait for a while before it is read.
  REQUIRE(RunningDaemon::eventually(seconds(120), [&] {
    return with(daemon.folded(profile_of(program.pid())), ";main;outer;middle;work_two;") > 50;
  }));
  const Window window = window_with(daemon, program.pid(), 200);
  for (const bool one : {true, false}) {
    INFO((one ? "one process" : "the whole machine"));
    const std::string ask =
        "/profile?" + (one ? pid_query(program.pid()) : "group=process") + window.query() + "&format=";

    const auto tree = daemon.get_json(ask + "flamegraph");
    const std::uint64_t samples = tree["samples"].get<std::uint64_t>();
    const std::uint64_t period = tree["period_ns"].get<std::uint64_t>();
    REQUIRE(samples >= 200);
    CHECK(tree["window"]["used"]["from_ms"] == window.from);
    CHECK(tree["window"]["used"]["to_ms"] == window.to);
    CHECK(tree["resolution_ms"] == 0);
    CHECK(tree["value"] == samples);
    CHECK(self_of_all(tree) == samples);

    const auto columns = daemon.get_json(ask + "columns");
    std::uint64_t self = 0;
    for (const auto& value : columns["columns"]["nodes"]["self"]) self += value.get<std::uint64_t>();
    CHECK(self == samples);

    const FoldedStacks folded = daemon.folded(ask + "folded");
    CHECK(total(folded) == samples);
    CHECK(with(folded, ";work_two;") > 0);

    std::uint64_t nanoseconds = 0;
    const auto speedscope = daemon.get_json(ask + "speedscope");
    CHECK(speedscope["$schema"] == "https://www.speedscope.app/file-format-schema.json");
    for (const auto& profile : speedscope["profiles"]) {
      CHECK(profile["unit"] == "nanoseconds");
      CHECK(profile["weights"].size() == profile["samples"].size());
      for (const auto& weight : profile["weights"]) nanoseconds += weight.get<std::uint64_t>();
    }
    CHECK(nanoseconds == samples * period);

    const std::vector<ScriptRecord> records = script_records(daemon.get(ask + "perf-script").body);
    CHECK(records.size() == samples);
    for (const ScriptRecord& record : records) CHECK(record.period_ns == period);

    const auto top = daemon.get_json(ask + "top&max_nodes=100000");
    self = 0;
    for (const auto& function : top["functions"]) self += function["self"].get<std::uint64_t>();
    CHECK(self == samples);

    const TemporaryFile pprof("");
    REQUIRE(lines_of("curl --silent --fail --output " + pprof.path() +
                     " 'http://127.0.0.1:" + std::to_string(daemon.port()) + ask + "pprof'"));
    const char* schema = std::getenv("FLAMED_PPROF_SCHEMA");
    if (schema != nullptr && has_command("protoc")) {
      const PprofTotals totals = decoded_by_protoc(pprof.path(), schema);
      CHECK(totals.samples == samples);
      CHECK(totals.cpu_ns == samples * period);
    } else {
      WARN(
          "SKIP: no protoc (Debian: protobuf-compiler), or FLAMED_PPROF_SCHEMA does not name test/support/pprof.proto");
    }
    if (has_command("go")) {
      const PprofTotals totals = decoded_by_go(pprof.path());
      CHECK(totals.samples == samples);
      CHECK(totals.cpu_ns == samples * period);
      const auto head = lines_of("go tool pprof -sample_index=samples -top " + pprof.path() + " 2>&1");
      REQUIRE(head.has_value());
      CHECK(any_line_holds(*head, "Total samples = " + std::to_string(samples)));
      CHECK(any_line_holds(*head, "work_two"));
      const auto traces = lines_of("go tool pprof -traces " + pprof.path() + " 2>&1");
      REQUIRE(traces.has_value());
      CHECK(any_line_holds(*traces, "work_one"));
      const auto tags = lines_of("go tool pprof -tags " + pprof.path() + " 2>&1");
      REQUIRE(tags.has_value());
      CHECK(any_line_holds(*tags, std::to_string(program.pid())));
      CHECK(any_line_holds(*tags, "victim_known_ch"));
    } else {
      WARN("SKIP: go tool pprof is not there");
    }
  }
}

TEST_CASE("a window of two seconds around a burst has the burst and nothing else") {
  RunningDaemon daemon({"--frequency", "499"});
  ChildProcess program({victim("burst"), "4000", "2000"});
  const auto line = program.read_line(seconds(60));
  REQUIRE(line.has_value());
  std::int64_t begin_ns = 0, end_ns = 0;
  std::istringstream(*line) >> begin_ns >> end_ns;
  REQUIRE(end_ns > begin_ns);
  REQUIRE(is_stored(daemon, program.pid(), end_ns / 1000000 + 1500));

  // To the millisecond before and after the burst's ends.
  const std::int64_t first = begin_ns / 1000000, last = end_ns / 1000000;
  const Window inside{first + 1, last}, before{first - 1500, first}, after{last + 1, last + 1500};
  const std::string ask = profile_of(program.pid());
  const FoldedStacks burst = daemon.folded(ask + inside.query());
  const std::uint64_t samples = total(burst);
  REQUIRE(samples > 20);
  CHECK(with(burst, ";main;calm_function;") == 0);
  // The rest is the reading of the clock between its rounds.
  CHECK(static_cast<double>(with(burst, ";main;burst_function;")) >= 0.9 * static_cast<double>(samples));
  for (const Window& beside : {before, after}) {
    const FoldedStacks calm = daemon.folded(ask + beside.query());
    CHECK(with(calm, ";burst_function;") == 0);
    CHECK(with(calm, ";main;calm_function;") > 10);
  }

  // The times of the single samples in a longer window give the number in the short one.
  const Window around{first - 2000, last + 1000};
  std::uint64_t counted = 0;
  const std::string script = "/profile?format=perf-script&" + pid_query(program.pid()) + around.query();
  for (const ScriptRecord& record : script_records(daemon.get(script).body)) {
    counted += record.time_us >= inside.from * 1000 && record.time_us < inside.to * 1000 ? 1U : 0U;
  }
  CHECK(counted == samples);
  const auto heatmap = daemon.get_json("/heatmap?" + pid_query(program.pid()) + inside.query());
  std::uint64_t in_cells = 0;
  for (const auto& count : heatmap["counts"]) in_cells += count.get<std::uint64_t>();
  CHECK(in_cells == samples);
}

TEST_CASE("a function that became slower is first in the difference, and the same load does not differ") {
  // At 30 %, z is 6 to 7. At 10 %, a z of 5 and more takes 20,000 samples; FLAMED_SLOWER_PERCENT and
  // FLAMED_SLOWER_SAMPLES choose that.
  const char* percent = std::getenv("FLAMED_SLOWER_PERCENT");
  const char* wanted = std::getenv("FLAMED_SLOWER_SAMPLES");
  const std::uint64_t samples = wanted != nullptr ? std::stoull(wanted) : 4000;
  RunningDaemon daemon({"--frequency", "997"});
  ChildProcess program({victim("slower"), percent != nullptr ? percent : "30"});
  REQUIRE(has_samples(daemon, program.pid(), 100));
  const Window first = window_with(daemon, program.pid(), samples);
  const Window second = window_with(daemon, program.pid(), samples);
  const Window third = window_with(daemon, program.pid(), samples);
  program.signal(SIGUSR1);
  std::this_thread::sleep_for(milliseconds(100));
  const Window slow = window_with(daemon, program.pid(), samples);

  const auto ask = [&](const Window& base, const Window& window) {
    return daemon.get_json("/diff?" + pid_query(program.pid()) + window.query() +
                           "&base_from=" + std::to_string(base.from) + "&base_to=" + std::to_string(base.to));
  };
  const auto change = ask(third, slow);
  const auto& most = change["functions"][0];
  INFO(most.dump());
  CHECK(most["name"] == "slower");
  CHECK(most["significant"] == true);
  CHECK(most["change_self"].get<double>() > 0);

  // By chance one of 100 comparisons marks something, so hardly both.
  const auto marks = [](const nlohmann::json& diff) {
    std::set<std::string> names;
    for (const auto& function : diff["functions"]) {
      if (function["significant"] == true) names.insert(function["name"].get<std::string>());
    }
    return names;
  };
  const auto one = marks(ask(first, second));
  const auto two = marks(ask(second, third));
  std::string marked;
  for (const auto& names : {one, two}) {
    for (const auto& name : names) marked += " " + name;
  }
  INFO("slower's z " << most["z"] << "; marked in the same load:" << marked);
  CHECK((one.empty() || two.empty()));
}

TEST_CASE("selections add up to the whole") {
  RunningDaemon daemon;
  ChildProcess program({victim("known_chain")});
  ChildProcess reader({victim("system_calls")});
  // A shell with two children and a grandchild, which ends before the query.
  const std::string worker = victim("known_chain") + " 1500";
  ChildProcess family({"sh", "-c", worker + " & sh -c '" + worker + "; true' & wait"});
  REQUIRE(family.wait(seconds(120)) == 0);
  const Window late = window_with(daemon, reader.pid(), 150);
  const Window window{late.from - 2500, late.to};
  const std::string closed = window.query();

  const auto whole = daemon.get_json("/profile?group=process" + closed);
  const std::uint64_t samples = whole["samples"].get<std::uint64_t>();
  const auto processes = daemon.get_json("/processes?" + closed.substr(1));
  const auto threads = daemon.get_json("/threads?" + closed.substr(1));
  CHECK(processes["samples"] == samples);
  CHECK(threads["samples"] == samples);

  {
    INFO("processes, threads, programs, users");
    std::map<std::string, std::uint64_t> by_exe, by_uid, by_comm, threads_by_comm, by_tid;
    std::uint64_t sum = 0;
    for (const auto& process : processes["processes"]) {
      const auto count = process["samples"].get<std::uint64_t>();
      sum += count;
      if (process["executable"].is_string()) by_exe[process["executable"].get<std::string>()] += count;
      if (process["uid"].is_number()) by_uid[std::to_string(process["uid"].get<std::uint64_t>())] += count;
    }
    CHECK(sum == samples);
    sum = 0;
    for (const auto& thread : threads["threads"]) {
      const auto count = thread["samples"].get<std::uint64_t>();
      sum += count;
      by_tid[std::to_string(thread["tid"].get<std::uint64_t>())] += count;
      if (!thread["comm"].is_string()) continue;
      by_comm[thread["comm"].get<std::string>()] += count;
      ++threads_by_comm[thread["comm"].get<std::string>()];
    }
    CHECK(sum == samples);
    const auto selected = [&](const std::string& parameter, const std::string& value) {
      return total(daemon.folded("/profile?format=folded&" + parameter + "=" + value + closed));
    };
    CHECK(by_exe.at(victim("known_chain")) > 0);
    CHECK(selected("exe", victim("known_chain")) == by_exe.at(victim("known_chain")));
    CHECK(selected("exe", "victim_system_calls") == by_exe.at(victim("system_calls")));
    CHECK(by_comm.at("victim_known_ch") > 0);
    // A thread that began in the window may have a sample from before its exec, with its name of then.
    const std::uint64_t with_comm = selected("comm", "victim_known_ch");
    CHECK(with_comm <= by_comm.at("victim_known_ch"));
    CHECK(with_comm + threads_by_comm.at("victim_known_ch") >= by_comm.at("victim_known_ch"));
    const std::string tid = std::to_string(program.pid());
    CHECK(selected("tid", tid) == by_tid.at(tid));
    CHECK(selected("pid", tid) == by_tid.at(tid));  // the process has one thread
    for (const auto& [uid, count] : by_uid) CHECK(selected("uid", uid) == count);
  }
  {
    INFO("groups");
    for (const std::string group : {"process", "thread", "comm", "exe", "unit", "container", "none"}) {
      INFO(group);
      const auto tree = daemon.get_json(std::string("/profile?group=").append(group).append(closed));
      CHECK(tree["value"] == samples);
      std::uint64_t sum = tree["self"].get<std::uint64_t>();
      for (const auto& child : tree["children"]) sum += child["value"].get<std::uint64_t>();
      CHECK(sum == samples);
    }
  }
  {
    INFO("sides, with their marks");
    const std::string ask = "/profile?format=folded&annotate=1&delimited=1&" + pid_query(reader.pid()) + closed;
    const FoldedStacks both = daemon.folded(ask);
    const auto in_kernel = [](const std::string& stack) { return stack.find("_[k]") != std::string::npos; };
    const auto in_both = [](const std::string& stack) { return stack.find(";--;") != std::string::npos; };
    const std::uint64_t kernel = total(daemon.folded(ask + "&side=kernel"));
    const std::uint64_t user = total(daemon.folded(ask + "&side=user"));
    CHECK(kernel == count_if(both, in_kernel));
    CHECK(kernel > 0);
    CHECK(user + kernel - count_if(both, in_both) == total(both));
    CHECK(total(both) == total(daemon.folded("/profile?format=folded&" + pid_query(reader.pid()) + closed)));
    CHECK(with(both, std::string(";main;read_zeros;--;") + kSystemCall + "_[k];") > 0);
  }
  {
    INFO("a tree of processes");
    // Its processes have ended, so ask from the start of the retained time.
    const std::string parent = std::to_string(family.pid());
    const std::string since = "&from=" + std::to_string(window.from - 60000) + "&to=" + std::to_string(window.to);
    const auto tree = daemon.get_json("/processes?tree=" + parent + since);
    std::uint64_t sum = 0, workers = 0;
    for (const auto& process : tree["processes"]) {
      sum += process["samples"].get<std::uint64_t>();
      workers += process["comm"] == "victim_known_ch" ? 1U : 0U;
      CHECK(process["pid"] != program.pid());
    }
    INFO(tree["processes"].dump());
    CHECK(workers == 2);
    CHECK(total(daemon.folded("/profile?format=folded&tree=" + parent + since)) == sum);
    // 2 × 1.5 s of CPU time at 99 Hz.
    CHECK(static_cast<double>(sum) > 0.8 * 2 * 1.5 * 99);
  }
}

TEST_CASE("the next seconds are available as folded stacks, and at the address that go tool pprof uses") {
  RunningDaemon daemon;
  ChildProcess program({victim("known_chain")});
  REQUIRE(has_samples(daemon, program.pid(), 50));
  const std::int64_t asked = now_ms();
  const FoldedStacks next = daemon.folded("/profile?seconds=3&format=folded&" + pid_query(program.pid()));
  CHECK(now_ms() - asked >= 3000);
  CHECK(with(next, ";main;outer;middle;work_two;") > 0);
  CHECK(total(next) <= 3 * 99 + 2);

  const std::string address = "http://127.0.0.1:" + std::to_string(daemon.port()) + "/debug/pprof/profile?seconds=3&" +
                              pid_query(program.pid());
  if (!has_command("go")) {
    WARN("SKIP: go tool pprof is not there");
    return;
  }
  // pprof keeps the profile that it fetches.
  const auto lines = lines_of("dir=$(mktemp -d) && PPROF_TMPDIR=$dir go tool pprof -top '" + address +
                              "' 2>&1; status=$?; rm -r \"$dir\"; exit $status");
  REQUIRE(lines.has_value());
  CHECK(any_line_holds(*lines, "Type: cpu"));
  CHECK(any_line_holds(*lines, "work_two"));
}

TEST_CASE("a daemon that has just started says which time it lacks, and averages over the time that it ran") {
  const std::int64_t before_start = now_ms();
  RunningDaemon daemon;
  ChildProcess program({victim("known_chain")});
  REQUIRE(has_samples(daemon, program.pid(), 100));

  // The first query of new users: the whole machine.
  const std::string table = daemon.get("/profile?format=top-text&max_nodes=20").body;
  CHECK(std::count(table.begin(), table.end(), '\n') <= 22);
  CHECK(table.find("warning") == std::string::npos);

  // The window of a quarter of an hour has only the time since the start.
  const auto usage = daemon.get_json("/processes?from=now-15m&" + pid_query(program.pid()));
  const std::int64_t began = usage["window"]["used"]["from_ms"].get<std::int64_t>();
  CHECK(began >= before_start);
  CHECK(daemon.metrics().at("flamed_store_oldest_timestamp_seconds") ==
        Approx(static_cast<double>(began) / 1000.0).margin(0.002));
  const auto timeline = daemon.get_json("/timeline?from=now-15m&step=3600&" + pid_query(program.pid()));
  CHECK(timeline["window"]["used"]["from_ms"] == began);
  // A little in the future counts as now.
  const std::string ahead = std::to_string(now_ms() + 5 * 60'000);
  const auto until_now = daemon.get_json("/profile?from=" + std::to_string(began) + "&to=" + ahead);
  CHECK(until_now["window"]["asked"]["to_ms"].get<std::int64_t>() <= now_ms());
  CHECK(until_now["warnings"].empty());

  const std::string lies = ": The window is before flamed began to sample, at ";
  const std::string base = "base_from=" + std::to_string(began - 60'000) + "&base_to=" + std::to_string(began);
  CHECK(daemon.get("/diff?format=top-text&" + base).body.find("warning: before" + lies) == 0);
  CHECK(daemon.get("/diff?format=folded&" + base).body.find("# before" + lies) == 0);
}

TEST_CASE("every format distinguishes a selection that never matched from one that did not match in the window") {
  RunningDaemon daemon;
  ChildProcess program({victim("known_chain")});
  REQUIRE(has_samples(daemon, program.pid(), 50));
  const std::string empty = "&from=1000000000&to=1000000060";  // long before
  const auto ever = [&](const std::string& filter) {
    return daemon.get_json("/profile?format=top&" + filter + empty)["matched_ever"];
  };
  CHECK(ever(pid_query(program.pid())) == true);
  CHECK(ever(pid_query(program.pid()) + "&focus=work_two") == true);
  CHECK(ever(pid_query(program.pid()) + "&focus=work_three") == false);
  CHECK(ever("comm=no-such-thread") == false);

  const std::string said = "matches comm: another window would be as empty.";
  for (const std::string format :
       {"flamegraph", "columns", "columns-binary", "folded", "speedscope", "perf-script", "top", "top-text"}) {
    INFO(format);
    const HttpAnswer answer = daemon.get("/profile?comm=no-such-thread&format=" + format);
    CHECK(answer.status == 200);
    CHECK(answer.body.find(said) != std::string::npos);
  }
  for (const std::string path : {"/processes", "/threads", "/timeline", "/heatmap"}) {
    INFO(path);
    CHECK(daemon.get_json(path + "?comm=no-such-thread")["matched_ever"] == false);
  }
  const std::string file =
      "http://127.0.0.1:" + std::to_string(daemon.port()) + "/profile?comm=no-such-thread&format=pprof";
  const auto message = lines_of("curl -s '" + file + "' | gunzip | grep -a 'matches comm'");
  REQUIRE(message.has_value());
  CHECK(any_line_holds(*message, said));
}

}  // namespace
}  // namespace flamed::test
