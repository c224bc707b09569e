// SPDX-License-Identifier: Apache-2.0
//
// A user with very many threads (victims/crowd.c): what becomes of the visits of others.
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "daemon/sampler/event_batch.h"
#include "daemon/sampler/record.h"
#include "daemon/waits/wait_program.h"
#include "daemon/waits/wait_visitor.h"
#include "test/catch.h"
#include "test/kernel/folded_stacks.h"
#include "test/support/child_process.h"
#include "test/support/running_daemon.h"

namespace flamed::test {
namespace {

using daemon::EventBatch;
using daemon::WaitProgram;
using daemon::WaitVisitor;
using std::chrono::seconds;

constexpr std::uint32_t kNeighbour = 23457;

/// FLAMED_CROWD: another number, e.g. 100000, if the kernel allows so many.
int crowd_size() {
  const char* const size = std::getenv("FLAMED_CROWD");
  return size == nullptr ? 6000 : std::atoi(size);
}

/// A program of this user, by a shell in between: threads of the visiting process's own children are left out.
class Program {
 public:
  Program(std::uint32_t user, const std::vector<std::string>& command)
      : shell_(by_shell(user, command)), pid_(std::stoi(line())) {}
  ~Program() {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] std::string line() { return shell_.read_line(seconds(120) * patience()).value_or("0"); }

 private:
  static std::vector<std::string> by_shell(std::uint32_t user, const std::vector<std::string>& command) {
    const std::string id = std::to_string(user);
    std::vector<std::string> all{"sh", "-c", "\"$@\" & echo $!; wait", "sh", "setpriv"};
    all.insert(all.end(), {"--reuid=" + id, "--regid=" + id, "--clear-groups", "--"});
    all.insert(all.end(), command.begin(), command.end());
    return all;
  }
  ChildProcess shell_;
  pid_t pid_;
};

/// Three thousand wake-ups a second, each thread as often as the others.
class Crowd {
 public:
  Crowd() {
    const std::string period_ms = std::to_string(crowd_size() / 3);
    // The kernel allows 32,000 in one process, because of its mappings (vm.max_map_count).
    for (int left = crowd_size(); left > 0; left -= kOfOneProcess) {
      const std::string count = std::to_string(std::min(left, kOfOneProcess));
      processes_.push_back(std::make_unique<Program>(kUser, std::vector{victim("crowd"), count, period_ms}));
    }
    for (const auto& process : processes_) REQUIRE(process->line() == "ready");
  }
  [[nodiscard]] std::uint64_t threads() const { return static_cast<std::uint64_t>(crowd_size()) + processes_.size(); }
  [[nodiscard]] const Program& first() const { return *processes_.front(); }

  static constexpr std::uint32_t kUser = 23456;

 private:
  static constexpr int kOfOneProcess = 30'000;
  std::vector<std::unique_ptr<Program>> processes_;
};

/// Visits as the daemon makes them, but without stacks.
class Visiting {
 public:
  /// How often threads left records within this time, by their process.
  std::map<pid_t, int> count(seconds time) {
    EventBatch before;
    visitor_.take(before);
    std::this_thread::sleep_for(time);
    EventBatch batch;
    visitor_.take(batch);
    std::map<pid_t, int> visits;
    for (const EventBatch::Event& event : batch.events()) {
      const auto visit = daemon::parse_visit(batch.body(event));
      REQUIRE(visit);
      ++visits[static_cast<pid_t>(visit->sample.header->tgid)];
    }
    return visits;
  }
  void started(pid_t tid) { visitor_.started(tid); }
  [[nodiscard]] WaitVisitor::State state() const { return visitor_.state(); }

 private:
  SystemClock clock_;
  WaitVisitor visitor_{clock_, nullptr, [] {}, {}};
  std::jthread thread_{[this](const std::stop_token& stop) { visitor_.run(stop); }};
};

TEST_CASE("a user with very many threads does not keep others' from being visited") {
  Program of_root(0, {victim("waits"), "sleeps", "600"});
  Program neighbour(kNeighbour, {victim("waits"), "sleeps", "600"});
  Visiting visiting;
  REQUIRE(RunningDaemon::eventually(seconds(30) * patience(), [&] { return visiting.state().round_ns != 0; }));
  const auto alone = visiting.count(seconds(20));
  auto many = std::make_unique<Crowd>();
  // Linux before 6.2 can't visit threads by a list; then the rounds over all threads take longer, but not much.
  const bool has_list =
      RunningDaemon::eventually(seconds(120) * patience(), [&] { return visiting.state().list_round_ns != 0; });
  const WaitVisitor::State state = visiting.state();
  REQUIRE(state.problem.empty());
  CHECK(state.large_owners == 1);
  CHECK(state.counts.passed_over > 0);
  if (!has_list) {
    WARN("SKIP this kernel visits no threads by a list");
    return;
  }
  const auto beside = visiting.count(seconds(20));
  const auto visits_of = [](const std::map<pid_t, int>& visits, const Program& child) {
    const auto found = visits.find(child.pid());
    return found == visits.end() ? 0 : found->second;
  };
  const WaitVisitor::State after = visiting.state();
  INFO("a round over all takes " << after.round_ns << " ns, over the list " << after.list_round_ns);
  for (const Program* child : {&of_root, &neighbour}) {
    const int before = visits_of(alone, *child);
    const int now = visits_of(beside, *child);
    WARN(before << " visits in 20 s, and " << now << " beside " << many->threads() << " threads of another user");
    REQUIRE(before > 5);
    CHECK(now >= before / 2);
  }
  // Their own turn comes with a round over all threads, which is rare beside the list.
  CHECK(RunningDaemon::eventually(seconds(120) * patience(),
                                  [&] { return visits_of(visiting.count(seconds(5)), many->first()) > 0; }));
  many.reset();
  CHECK(RunningDaemon::eventually(seconds(120) * patience(), [&] { return visiting.state().large_owners == 0; }));
}

TEST_CASE("a thread that has just begun is visited by the list as soon as its notice has come") {
  Visiting visiting;
  const Crowd many;
  if (!RunningDaemon::eventually(seconds(120) * patience(), [&] { return visiting.state().list_round_ns != 0; })) {
    WARN("SKIP this kernel visits no threads by a list");
    return;
  }
  Program late(0, {victim("waits"), "sleeps", "600"});
  visiting.started(late.pid());
  CHECK(visiting.count(seconds(5) * patience())[late.pid()] >= 1);
}

TEST_CASE("without a list an owner's threads leave as many records as its share allows, and each has its turn") {
  const Crowd many;
  Result<WaitProgram> program = WaitProgram::load({.with_list = false});
  REQUIRE(program);
  CHECK_FALSE(program->can_visit_list());
  constexpr int kRounds = 4;
  constexpr std::size_t kEach = 100;
  std::set<std::uint32_t> visited;
  std::set<std::uint32_t> large;
  std::size_t records = 0;
  for (int round = 0; round < kRounds;) {
    const auto turn = program->turn({.longest_ns = kNsPerSecond,
                                     .old_stacks = 0,
                                     .allowance_ns = kEach * (FLAMED_STACK_NS + FLAMED_RECORD_NS),
                                     .counts_owners = true});
    REQUIRE(turn);
    program->records().look();
    program->records().drain([&](std::span<const std::byte> record) {
      const auto visit = daemon::parse_visit(daemon::read_head(record).body);
      REQUIRE(visit);
      if (visit->sample.header->owner != Crowd::kUser) return;
      ++records;
      visited.insert(visit->sample.header->tid);
    });
    large.insert(program->new_large().begin(), program->new_large().end());
    if (*turn == WaitProgram::Turn::kEnded) ++round;
  }
  CHECK(records == visited.size());
  CHECK(records == kRounds * kEach);
  CHECK(large.contains(Crowd::kUser));
  CHECK(program->share(Crowd::kUser).threads == many.threads());
}

}  // namespace
}  // namespace flamed::test
