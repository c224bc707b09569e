// SPDX-License-Identifier: Apache-2.0
//
// Waiting time in the daemon's answers: programs that wait in a known way (victims/waits.c), against what they say of
// themselves.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <future>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "test/catch.h"
#include "test/kernel/folded_stacks.h"
#include "test/support/child_process.h"
#include "test/support/running_daemon.h"
#include "test/unit/symbolizer_processes/temporary_directory.h"

namespace flamed::test {
namespace {

using std::chrono::seconds;

constexpr const char* kSeconds = "20";

struct Said {
  std::int64_t tid = 0;
  double waited_s = 0, queued_s = 0, slept_s = 0;
};

/// Runs the program to its end.
std::vector<Said> hear(ChildProcess& program) {
  std::vector<Said> said;
  for (;;) {
    const auto line = program.read_line(seconds(60) * patience());
    REQUIRE(line);
    if (*line == "end") return said;
    Said thread;
    std::istringstream(*line) >> thread.tid >> thread.waited_s >> thread.queued_s >> thread.slept_s;
    for (double* ns : {&thread.waited_s, &thread.queued_s, &thread.slept_s}) *ns /= 1e9;
    said.push_back(thread);
  }
}

/// A daemon that visits threads, once it has seen all of them.
struct VisitingDaemon {
  VisitingDaemon() {
    const bool visits = RunningDaemon::eventually(seconds(30) * patience(), [&] {
      const nlohmann::json health = daemon.get_json("/healthz");
      for (const auto& component : health["components"]) {
        if (component["name"] == "waits")
          return component["detail"].get<std::string>().find("round") != std::string::npos;
      }
      return false;
    });
    REQUIRE(visits);
  }
  /// Runs the program to its end, and until the next round is over.
  [[nodiscard]] std::vector<Said> hear(ChildProcess& program) {
    double last_s = longest_round_s = round_s();
    auto said = std::async(std::launch::async, [&] { return flamed::test::hear(program); });
    bool has_ended = false;
    REQUIRE(RunningDaemon::eventually(seconds(120) * patience(), [&] {
      const bool is_over = has_ended;
      has_ended = said.wait_for(seconds(0)) == std::future_status::ready;
      const double before_s = std::exchange(last_s, round_s());
      longest_round_s = std::max(longest_round_s, last_s);
      return is_over && last_s != before_s;
    }));
    return said.get();
  }
  /// From the end of a round to the end of the next.
  [[nodiscard]] double round_s() const { return daemon.metrics()["flamed_thread_visit_round_seconds"]; }
  /// What a thread waits before its first visit and after its last one is not known.
  [[nodiscard]] bool is_near(double seconds_found, double expected) const {
    return seconds_found <= 1.05 * expected + 0.1 && seconds_found >= 0.95 * expected - 2 * longest_round_s;
  }
  [[nodiscard]] std::string text_of(const std::map<std::string, double>& waits) const {
    std::string text = "rounds of up to " + std::to_string(longest_round_s) + " s\n";
    for (const auto& [stack, of_stack] : waits) text += std::to_string(of_stack) + " s " + stack + "\n";
    return text;
  }
  /// Seconds by stack of one thread.
  [[nodiscard]] std::map<std::string, double> waits(const Said& thread, const std::string& more = "&idle=show") const {
    std::map<std::string, double> waits;
    const std::string query = "/profile?measure=wait&format=folded&group=none&tid=" + std::to_string(thread.tid) + more;
    for (const auto& [stack, units] : daemon.folded(query)) waits[stack] = static_cast<double>(units) / 10'000;
    return waits;
  }
  // As the service runs: with history. Its names must not take the place of the reasons.
  TemporaryDirectory folder;
  RunningDaemon daemon{{"--history", folder.path("history")}};
  double longest_round_s = 0;  ///< while the last program ran
};

double of(const std::map<std::string, double>& waits, const std::string& part) {
  double sum = 0;
  for (const auto& [stack, of_stack] : waits) {
    if ((stack + ";").find(part) != std::string::npos) sum += of_stack;
  }
  return sum;
}

TEST_CASE("threads that want a mutex are shown in its futex, with the functions that want it") {
  VisitingDaemon visiting;
  ChildProcess program({victim("waits"), "mutex", kSeconds});
  const std::vector<Said> said = visiting.hear(program);
  REQUIRE(said.size() == 3);
  for (const Said& thread : said) {
    const auto waits = visiting.waits(thread);
    INFO(visiting.text_of(waits) << "waited " << thread.waited_s << " s, slept " << thread.slept_s << " s");
    CHECK(visiting.is_near(of(waits, ";[lock];") + of(waits, ";[sleep];"), thread.waited_s));
    CHECK(of(waits, ";[lock];") > 0);
    CHECK(of(waits, "want;") > 0);
  }
}

TEST_CASE("the thread that holds a mutex is told, in the graph and with the threads that wait for it") {
  VisitingDaemon visiting;
  ChildProcess program({victim("waits"), "mutex", kSeconds});
  const std::vector<Said> said = visiting.hear(program);
  REQUIRE(said.size() == 3);
  const auto answer = visiting.daemon.get_json("/threads?measure=wait&pid=" + std::to_string(program.pid()));
  double in_lock = 0;
  double locked = 0;  // with its part in user space
  double by_holder = 0;
  double told = 0;
  for (const Said& thread : said) {
    const auto waits = visiting.waits(thread);
    INFO(visiting.text_of(waits));
    for (const auto& [stack, of_stack] : waits) {
      if (!stack.ends_with(";[lock]")) continue;
      in_lock += of_stack;
      if (stack.find("want;") != std::string::npos) locked += of_stack;
    }
    by_holder += of(waits, ";[held by holder (");
    for (const auto& row : answer["threads"]) {
      if (row["tid"] != thread.tid) continue;
      INFO(row.dump());
      for (const auto& holder : row["holders"]) {
        if (holder["comm"] == "holder") told += holder["seconds"].get<double>();
      }
    }
  }
  // Stacks that were read. It holds the mutex for 8 of 10 ms, and they are read a moment after the visit.
  INFO("lock " << locked << " s, held by holder " << by_holder << " s, told " << told << " s");
  REQUIRE(locked > 0);
  CHECK(by_holder > 0.5 * locked);
  // The holder may be known where the stack could not be walked.
  CHECK(by_holder <= in_lock + 0.001);
  CHECK(told == Approx(by_holder).margin(0.01));
}

TEST_CASE("idle workers of a pool wait for a signal, and the busy one for neither that nor a lock") {
  VisitingDaemon visiting;
  ChildProcess program({victim("waits"), "workers", kSeconds});
  const std::vector<Said> said = visiting.hear(program);
  REQUIRE(said.size() == 4);
  int idle = 0;
  for (const Said& thread : said) {
    const auto waits = visiting.waits(thread);
    INFO(visiting.text_of(waits) << "waited " << thread.waited_s << " s");
    CHECK(of(waits, ";[lock];") < 0.1);
    if (thread.waited_s < 2) {
      CHECK(of(waits, ";[condition];") == 0);
    } else {
      ++idle;
      CHECK(visiting.is_near(of(waits, ";[condition];"), thread.waited_s));
      CHECK(of(waits, "serve;") > 0);
    }
  }
  CHECK(idle == 3);
}

TEST_CASE("threads that want more than their CPU are shown in its run queue") {
  VisitingDaemon visiting;
  ChildProcess program({victim("waits"), "starved", kSeconds});
  const std::vector<Said> said = visiting.hear(program);
  REQUIRE(said.size() == 4);
  for (const Said& thread : said) {
    const auto waits = visiting.waits(thread);
    INFO(visiting.text_of(waits) << "queued " << thread.queued_s << " s");
    CHECK(visiting.is_near(of(waits, "[run_queue];"), thread.queued_s));
  }
}

TEST_CASE("a pool that waits for work is left out unless it is asked for") {
  VisitingDaemon visiting;
  ChildProcess program({victim("waits"), "pool", kSeconds});
  const std::vector<Said> said = visiting.hear(program);
  REQUIRE(said.size() == 3);
  for (const Said& thread : said) {
    const auto waits = visiting.waits(thread);
    INFO(visiting.text_of(waits) << "waited " << thread.waited_s << " s");
    CHECK(visiting.is_near(of(waits, "[poll];"), thread.waited_s));
    CHECK(of(visiting.waits(thread, ""), "[poll];") == 0);
  }
}

TEST_CASE("a program that waits for its disk, in fsync and in page faults") {
  VisitingDaemon visiting;
  for (const auto& [kind, reason] :
       std::map<std::string, std::string>{{"fsync", "[disk];"}, {"faults", "[page_fault];"}}) {
    ChildProcess program({victim("waits"), kind, kSeconds});
    const std::vector<Said> said = visiting.hear(program);
    REQUIRE(said.size() == 1);
    const auto waits = visiting.waits(said[0]);
    INFO(kind << '\n' << visiting.text_of(waits) << "waited " << said[0].waited_s << " s");
    if (said[0].waited_s < 2) {
      WARN(kind << " did not wait: the file system is in memory");
      continue;
    }
    // On a busy machine most visits find it in a run queue, and its waiting time is left to the others.
    CHECK(of(waits, reason) > 0);
    CHECK(of(waits, reason) <= 1.05 * said[0].waited_s + 0.1);
  }
}

TEST_CASE("every format and route has waiting time") {
  VisitingDaemon visiting;
  ChildProcess program({victim("waits"), "mutex", kSeconds});
  static_cast<void>(visiting.hear(program));
  const std::string selection = "measure=wait&pid=" + std::to_string(program.pid());
  const auto flamegraph = visiting.daemon.get_json("/profile?" + selection);
  CHECK(flamegraph["measure"] == "wait");
  CHECK(flamegraph["cpu_seconds"].get<double>() > 8);
  const auto wall = visiting.daemon.get_json("/profile?measure=wall&pid=" + std::to_string(program.pid()));
  CHECK(wall["cpu_seconds"].get<double>() >= flamegraph["cpu_seconds"].get<double>());
  CHECK(visiting.daemon.get_json("/threads?" + selection)["threads"].size() >= 4);
  CHECK(visiting.daemon.get_json("/processes?" + selection)["processes"].size() == 1);
  CHECK(visiting.daemon.get_json("/timeline?" + selection)["cpu_seconds"].get<double>() > 8);
  CHECK(visiting.daemon.get("/profile?format=pprof&" + selection).status == 200);
  CHECK(visiting.daemon.get("/profile?format=speedscope&" + selection).status == 200);
  CHECK(visiting.daemon.get_json("/diff?" + selection)["after"]["cpu_seconds"].get<double>() > 8);
  CHECK(visiting.daemon.get("/profile?format=summary&" + selection).status == 400);
}

}  // namespace
}  // namespace flamed::test
