// SPDX-License-Identifier: Apache-2.0
//
// Visits of threads that wait in a known way (victims/waits.c): what each is found in, and how long it waited, against
// the threads' own clocks.
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "daemon/sampler/event_batch.h"
#include "daemon/sampler/record.h"
#include "daemon/waits/lock_holder.h"
#include "daemon/waits/wait_program.h"
#include "daemon/waits/wait_times.h"
#include "store/model/wait_reason.h"
#include "symbolizer/names/kernel_symbols.h"
#include "test/catch.h"
#include "test/kernel/folded_stacks.h"
#include "test/support/binomial_tolerance.h"
#include "test/support/child_process.h"
#include "test/support/running_daemon.h"

namespace flamed::test {
namespace {

using daemon::EventBatch;
using daemon::RecordKind;
using daemon::VisitRecord;
using daemon::WaitProgram;
using daemon::WaitTimes;
using std::chrono::milliseconds;

constexpr const char* kSeconds = "6";

/// What was found of one thread.
struct Found {
  std::map<std::string, std::int64_t> ns;  ///< waited, by reason
  int visits = 0;
  MonotonicTime first_visit{}, last_visit{};
  std::string last;
  std::set<std::int64_t> system_calls;
  std::set<std::uint64_t> futexes;
  [[nodiscard]] std::string text() const {
    std::ostringstream text;
    text << visits << " visits:";
    for (const auto& [reason, of_reason] : ns) text << ' ' << reason << ' ' << of_reason;
    return text.str();
  }
  [[nodiscard]] std::int64_t of(const std::string& reason) const {
    const auto found = ns.find(reason);
    return found == ns.end() ? 0 : found->second;
  }
};

/// What a thread said of itself, see victims/waits.c.
struct Said {
  std::uint32_t tid = 0;
  std::int64_t waited_ns = 0, queued_ns = 0, slept_ns = 0;
};

class Visits {
 public:
  /// Reads the kernel's symbols, which would take time from the visits.
  explicit Visits(WaitProgram program) : program_(std::move(program)) { REQUIRE(symbols_.load()); }

  /// Visits all threads at random times until the victim says that it has come to its end.
  std::vector<Said> follow(ChildProcess& victim) {
    std::vector<Said> said;
    std::minstd_rand random(5);
    began_ = clock_.monotonic();
    for (;;) {
      const auto line = victim.read_line(milliseconds(std::uniform_int_distribution<int>(10, 30)(random)));
      if (line == "end") {
        ended_ = clock_.monotonic();
        return said;
      }
      if (line) {
        Said thread;
        std::istringstream(*line) >> thread.tid >> thread.waited_ns >> thread.queued_ns >> thread.slept_ns;
        said.push_back(thread);
        continue;
      }
      visit_all(static_cast<std::uint32_t>(victim.pid()));
    }
  }

  [[nodiscard]] const Found& of(std::uint32_t tid) { return found_[tid]; }

  /// Within 5 %, and what passes before a thread's first visit and after its last one.
  [[nodiscard]] bool is_near(const Found& found, std::int64_t value, std::int64_t expected) const {
    const std::int64_t unseen_ns = (found.first_visit.ns - began_.ns) + (ended_.ns - found.last_visit.ns);
    UNSCOPED_INFO("unseen for " << unseen_ns << " ns");
    return std::abs(static_cast<double>(value - expected)) <=
           0.05 * static_cast<double>(expected) + static_cast<double>(std::max<std::int64_t>(20 * kNsPerMs, unseen_ns));
  }

 private:
  void visit_all(std::uint32_t tgid) {
    for (;;) {
      const auto turn = program_.turn({.longest_ns = 50 * kNsPerMs, .old_stacks = 0});
      REQUIRE(turn);
      drain(tgid);
      if (*turn == WaitProgram::Turn::kEnded) return;
    }
  }

  void drain(std::uint32_t tgid) {
    EventBatch batch;
    program_.records().look();
    program_.records().drain([&](std::span<const std::byte> record) { batch.append(daemon::read_head(record)); });
    for (const EventBatch::Event& event : batch.events()) {
      REQUIRE(event.kind == RecordKind::kVisit);
      const auto visit = daemon::parse_visit(batch.body(event));
      REQUIRE(visit);
      if (visit->sample.header->tgid == tgid) note(event.time, *visit);
    }
  }

  void note(MonotonicTime time, const VisitRecord& visit) {
    const std::uint32_t tid = visit.sample.header->tid;
    const flamed_wait& wait = *visit.wait;
    const bool is_new = seen_.emplace(tid, wait.switches, wait.state == FLAMED_WAITS_FOR_CPU).second;
    INFO("thread " << tid << ", wait " << wait.switches << ", state " << int{wait.state} << ", stack "
                   << int{wait.stack} << ", last seen " << (time.ns - static_cast<std::int64_t>(wait.last_seen_ns))
                   << " ns ago");
    CHECK(is_new);
    Found& found = found_[tid];
    const std::string reason = reason_of(visit);
    if (const auto times = times_.visited(tid, time, wait)) {
      found.ns[found.last] += times->before_ns;
      found.ns[reason] += times->now_ns;
      found.ns["run_queue"] += times->queued_ns;
    }
    found.last = reason;
    if (found.visits++ == 0) found.first_visit = time;
    found.last_visit = time;
    if (wait.state == FLAMED_SLEEPS) found.system_calls.insert(wait.system_call);
    if (wait.state == FLAMED_SLEEPS && wait.system_call == SYS_futex) found.futexes.insert(wait.arguments[0]);
  }

  std::string reason_of(const VisitRecord& visit) {
    if (visit.wait->state == FLAMED_WAITS_FOR_CPU) return "run_queue";
    if (visit.wait->state != FLAMED_SLEEPS) return "state " + std::to_string(visit.wait->state);
    std::vector<std::string_view> names;
    for (const std::uint64_t address : visit.sample.kernel) names.emplace_back(name_of(address));
    const store::WaitReason reason = store::wait_reason_of(names);
    if (reason == store::WaitReason::kLock && !daemon::is_lock(*visit.wait)) return "condition";
    return std::string(store::name_of(reason));
  }

  const std::string& name_of(std::uint64_t address) {
    const auto [found, is_new] = names_.try_emplace(address);
    if (is_new) {
      if (const auto name = symbols_.find(address)) found->second = name->name;
    }
    return found->second;
  }

  WaitProgram program_;
  WaitTimes times_;
  SystemClock clock_;
  symbolizer::KernelSymbols symbols_{clock_};
  std::unordered_map<std::uint64_t, std::string> names_;
  std::map<std::uint32_t, Found> found_;
  MonotonicTime began_{}, ended_{};  ///< of following the victim
  std::set<std::tuple<std::uint32_t, std::uint64_t, bool>> seen_;
};

Visits make_visits() {
  Result<WaitProgram> program = WaitProgram::load();
  INFO((program ? "" : program.error().message()));
  REQUIRE(program);
  return Visits(std::move(program).value());
}

/// The processes whose threads leave records in one round, by the number of turns that it takes.
std::pair<std::set<std::uint32_t>, int> visit_once(const WaitProgram::Limits& limits) {
  Result<WaitProgram> program = WaitProgram::load();
  REQUIRE(program);
  std::set<std::uint32_t> processes;
  int turns = 0;
  for (bool has_ended = false; !has_ended; ++turns) {
    const auto turn = program->turn(limits);
    REQUIRE(turn);
    has_ended = *turn == WaitProgram::Turn::kEnded;
    std::uint32_t stacks = 0;
    program->records().look();
    program->records().drain([&](std::span<const std::byte> record) {
      const std::optional<VisitRecord> visit = daemon::parse_visit(daemon::read_head(record).body);
      REQUIRE(visit);
      processes.insert(visit->sample.header->tgid);
      if (visit->wait->stack == FLAMED_STACK_WANTED) ++stacks;
    });
    CHECK(stacks <= limits.new_stacks);
  }
  return {processes, turns};
}

TEST_CASE("threads of the process that visits, and of its children, are left out if it wants so") {
  ChildProcess child({"sleep", "600"});
  const auto own = static_cast<std::uint32_t>(child.pid());
  REQUIRE(RunningDaemon::eventually(std::chrono::seconds(10) * patience(), [&] {
    return visit_once({.longest_ns = kNsPerSecond}).first.contains(own);  // it sleeps by then
  }));
  const std::set<std::uint32_t> others = visit_once({.longest_ns = kNsPerSecond, .without_own = true}).first;
  CHECK_FALSE(others.empty());
  CHECK_FALSE(others.contains(own));
  CHECK_FALSE(others.contains(static_cast<std::uint32_t>(::getpid())));
}

TEST_CASE("a turn ends with as many threads as are to have their stacks read at once, or with its time") {
  std::vector<std::unique_ptr<ChildProcess>> children;
  for (int i = 0; i < 5; ++i)
    children.push_back(std::make_unique<ChildProcess>(std::vector<std::string>{"sleep", "600"}));
  CHECK(RunningDaemon::eventually(std::chrono::seconds(10) * patience(), [&] {
    const auto [processes, turns] = visit_once({.longest_ns = 0});
    CHECK(turns > 5);
    return std::all_of(children.begin(), children.end(), [&found = processes](const auto& child) {
      return found.contains(static_cast<std::uint32_t>(child->pid()));
    });
  }));
  CHECK(visit_once({.longest_ns = kNsPerSecond, .new_stacks = 2}).second >= 3);
}

/// A visit stands for more or less time, depending on when the next one comes: by how much more than the number of
/// visits alone would let expect the sum may differ.
constexpr double kUnequalTimes = 1.5;

TEST_CASE("sleeps of two kinds are found in proportion to their time, and all of it is told") {
  Visits visits = make_visits();
  ChildProcess program({victim("waits"), "sleeps", kSeconds});
  const std::vector<Said> said = visits.follow(program);
  REQUIRE(said.size() == 1);
  const Found& found = visits.of(said[0].tid);
  REQUIRE(found.visits > 20);
  INFO(found.text());
  INFO("by the kernel " << said[0].waited_ns << " and " << said[0].queued_ns << " in run queues");
  const std::int64_t found_ns = found.of("sleep") + found.of("poll");
  CHECK(visits.is_near(found, found_ns, said[0].waited_ns));
  CHECK(visits.is_near(found, found.of("run_queue"), said[0].queued_ns));
  const double share = static_cast<double>(said[0].slept_ns) / static_cast<double>(said[0].waited_ns);
  CHECK(std::abs(static_cast<double>(found.of("sleep")) / static_cast<double>(found_ns) - share) <=
        kUnequalTimes * binomial_tolerance(found.visits, share) / found.visits);
  CHECK(found.of("other") == 0);
}

TEST_CASE("threads that wait for a mutex are found in its futex") {
  Visits visits = make_visits();
  ChildProcess program({victim("waits"), "mutex", kSeconds});
  const std::vector<Said> said = visits.follow(program);
  REQUIRE(said.size() == 3);
  std::set<std::uint64_t> futexes;
  for (const Said& thread : said) {
    const Found& found = visits.of(thread.tid);
    REQUIRE(found.visits > 20);
    INFO(found.text());
    INFO("by the kernel " << thread.waited_ns << ", slept " << thread.slept_ns);
    const std::int64_t found_ns = found.of("lock") + found.of("sleep");
    CHECK(visits.is_near(found, found_ns, thread.waited_ns));
    const double share = 1 - static_cast<double>(thread.slept_ns) / static_cast<double>(thread.waited_ns);
    CHECK(std::abs(static_cast<double>(found.of("lock")) / static_cast<double>(found_ns) - share) <=
          kUnequalTimes * binomial_tolerance(found.visits, share) / found.visits);
    futexes.insert(found.futexes.begin(), found.futexes.end());
  }
  CHECK(futexes.size() == 1);
}

TEST_CASE("idle workers of a pool are found waiting for a signal, not for a lock, and the busy one for neither") {
  Visits visits = make_visits();
  ChildProcess program({victim("waits"), "workers", kSeconds});
  const std::vector<Said> said = visits.follow(program);
  REQUIRE(said.size() == 4);
  int idle = 0;
  for (const Said& thread : said) {
    const Found& found = visits.of(thread.tid);
    INFO(found.text());
    INFO("by the kernel " << thread.waited_ns);
    // The busy one waits for a CPU only.
    if (thread.waited_ns < kNsPerSecond) {
      CHECK(found.of("condition") == 0);
    } else {
      ++idle;
      CHECK(visits.is_near(found, found.of("condition"), thread.waited_ns));
    }
    CHECK(visits.is_near(found, found.of("lock"), 0));
  }
  CHECK(idle == 3);
}

TEST_CASE("two ends of a pipe are found waiting for each other") {
  Visits visits = make_visits();
  ChildProcess program({victim("waits"), "pipe", kSeconds});
  const std::vector<Said> said = visits.follow(program);
  REQUIRE(said.size() == 2);
  for (const Said& thread : said) {
    const Found& found = visits.of(thread.tid);
    REQUIRE(found.visits > 20);
    INFO(found.text());
    INFO("by the kernel " << thread.waited_ns);
    CHECK(visits.is_near(found, found.of("pipe"), thread.waited_ns));
    CHECK(found.system_calls == std::set<std::int64_t>{SYS_read});
  }
}

TEST_CASE("threads that want more than their CPU are found in its run queue") {
  Visits visits = make_visits();
  ChildProcess program({victim("waits"), "starved", kSeconds});
  const std::vector<Said> said = visits.follow(program);
  REQUIRE(said.size() == 4);
  for (const Said& thread : said) {
    const Found& found = visits.of(thread.tid);
    REQUIRE(found.visits > 5);
    INFO(found.text());
    INFO("by the kernel " << thread.queued_ns);
    CHECK(visits.is_near(found, found.of("run_queue"), thread.queued_ns));
  }
}

}  // namespace
}  // namespace flamed::test
