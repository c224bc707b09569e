// SPDX-License-Identifier: Apache-2.0
//
// A daemon with too little CPU time, too few tasks, very many threads to sample, or a second daemon beside it. It goes
// on, and counts and reports its losses.
#include <chrono>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "test/catch.h"
#include "test/kernel/accounts.h"
#include "test/kernel/attacks/attack.h"
#include "test/kernel/control_group.h"
#include "test/kernel/folded_stacks.h"
#include "test/support/child_process.h"
#include "test/support/running_daemon.h"

namespace flamed::test {
namespace {

using std::chrono::seconds;

bool is_long() { return attack_tries(1) != 1; }

double lost_in_gaps(const RunningDaemon& daemon) {
  double lost = 0;
  for (const auto& gap : gaps_of(daemon, "samples_lost")) lost += gap["lost_samples"].get<double>();
  return lost;
}

TEST_CASE("with a hundredth of a CPU every sample is stored, or lost and reported as a gap") {
  const ControlGroup group("cpu");
  if (!group.exists()) {
    WARN("SKIP control-groups: no control group for CPU time can be made here");
    return;
  }
  const Wrapped wrapped(group.entering());
  RunningDaemon daemon({"--frequency", "999"});
  ChildProcess deep({victim("chains"), "recursion", "119"});
  REQUIRE(RunningDaemon::eventually(seconds(20), [&] { return total(daemon.folded(profile_of(deep.pid()))) > 500; }));
  group.limit_cpu(0.01);
  std::this_thread::sleep_for(seconds(is_long() ? 60 : 8));
  group.no_limit_of_cpu();
  REQUIRE(RunningDaemon::eventually(seconds(30), [&] { return daemon.get("/healthz").status == 200; }));
  std::this_thread::sleep_for(seconds(3));
  const double lost = daemon.metrics()["flamed_samples_lost_total"];
  WARN(lost << " samples lost");
  CHECK(group.times_throttled() > 0);
  CHECK(lost_in_gaps(daemon) == lost);
  CHECK(total(daemon.folded(profile_of(deep.pid()) + "&from=now-2s")) > 0);
  check_every_sample_is_counted(daemon);
}

TEST_CASE("when no task can be started, sampling and answers go on, and names come later") {
  const ControlGroup group("pids");
  if (!group.exists()) {
    WARN("SKIP control-groups: no control group for tasks can be made here");
    return;
  }
  const Wrapped wrapped(group.entering());
  RunningDaemon daemon;
  group.limit_tasks(group.tasks());
  ChildProcess program({victim("known_chain")});
  REQUIRE(RunningDaemon::eventually(seconds(20) * patience(),
                                    [&] { return total(daemon.folded(profile_of(program.pid()))) >= 100; }));
  CHECK(daemon.metrics()["flamed_samples_lost_total"] == 0);
  CHECK(daemon.get("/healthz").status == 200);
  group.no_limit_of_tasks();
  CHECK(RunningDaemon::eventually(seconds(90) * patience(), [&] {
    return with(daemon.folded(profile_of(program.pid()) + "&from=now-5s"), ";main;outer;middle;work_") > 0;
  }));
  check_every_sample_is_counted(daemon);
}

/// Limits the machine's number of tasks while it lives.
class MostTasks {
 public:
  explicit MostTasks(std::uint64_t wanted) {
    std::ifstream(kFile) >> before_;
    if (wanted > before_) std::ofstream(kFile) << wanted;
  }
  ~MostTasks() { std::ofstream(kFile) << before_; }
  MostTasks(const MostTasks&) = delete;
  MostTasks& operator=(const MostTasks&) = delete;

 private:
  static constexpr const char* kFile = "/proc/sys/kernel/pid_max";
  std::uint64_t before_ = 0;
};

TEST_CASE("very many threads cost no samples and not much memory") {
  const int threads = is_long() ? 100'000 : 5'000;
  const MostTasks tasks(200'000);
  RunningDaemon daemon;
  ChildProcess other({victim("known_chain")});
  REQUIRE(has_samples(daemon, other.pid(), 50));
  const double before = daemon.metrics()["flamed_resident_bytes"];
  // The kernel allows 32,000 in one process, because of its mappings (vm.max_map_count).
  std::vector<std::unique_ptr<ChildProcess>> programs;
  for (int i = 0; i < 4; ++i) {
    programs.push_back(std::make_unique<ChildProcess>(
        std::vector<std::string>{victim("churn_threads"), "5", std::to_string(threads / 4)}));
  }
  for (const auto& program : programs) {
    REQUIRE(program->wait(seconds(900)) == 0);
    CHECK(RunningDaemon::eventually(seconds(30) * patience(),
                                    [&] { return total(daemon.folded(profile_of(program->pid()))) > 0; }));
  }
  const double after = daemon.metrics()["flamed_resident_bytes"];
  WARN(threads << " threads; memory " << before / (1 << 20) << " MiB before, " << after / (1 << 20) << " MiB after");
  CHECK(after - before < 1000.0 * threads + (64U << 20));
  const FoldedStacks stacks = settled_profile(daemon, other.pid());
  CHECK(with(stacks, ";main;outer;middle;work_") >= total(stacks) * 98 / 100);
  CHECK(daemon.metrics()["flamed_samples_lost_total"] == 0);
  check_every_sample_is_counted(daemon);
}

TEST_CASE("two simultaneous daemons are both right") {
  RunningDaemon first;
  RunningDaemon second;
  ChildProcess program({victim("known_chain")});
  for (RunningDaemon* daemon : {&first, &second}) {
    REQUIRE(has_samples(*daemon, program.pid(), 200));
    const FoldedStacks stacks = settled_profile(*daemon, program.pid());
    CHECK(with(stacks, ";main;outer;middle;work_") >= total(stacks) * 98 / 100);
    // As much CPU time as the kernel counts.
    const nlohmann::json answer = daemon->get_json("/profile?format=top&pid=" + std::to_string(program.pid()));
    CHECK(answer["coverage"]["share"].get<double>() > 0.9);
    CHECK(answer["coverage"]["share"].get<double>() < 1.1);
  }
  for (RunningDaemon* daemon : {&first, &second}) {
    CHECK(daemon->metrics()["flamed_samples_lost_total"] == 0);
    check_every_sample_is_counted(*daemon);
  }
}

}  // namespace
}  // namespace flamed::test
