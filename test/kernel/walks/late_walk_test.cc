// SPDX-License-Identifier: Apache-2.0
//
// Programs that have just begun: their stacks come as slices and are walked late.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>

#include "test/catch.h"
#include "test/kernel/folded_stacks.h"
#include "test/support/child_process.h"
#include "test/support/running_daemon.h"
#include "test/unit/symbolizer_processes/temporary_directory.h"

namespace flamed::test {
namespace {

using std::chrono::seconds;

constexpr const char* kChain = ";main;outer;middle;";

/// How long a victim runs, in milliseconds of CPU time: longer than it takes to start it, also on emulated machines.
std::string a_moment() { return std::to_string(30 * patience()); }

/// Runs the command, which ends after a moment, again and again. Returns the stacks of all runs.
FoldedStacks run_again_and_again(const RunningDaemon& daemon, const std::string& name, const std::string& command) {
  ChildProcess shell({"sh", "-c", "for i in $(seq 1000); do " + command + "; done; read end"});
  const std::string query =
      "/profile?format=folded&group=none&exe=victim_" + name + "&tree=" + std::to_string(shell.pid());
  FoldedStacks stacks;
  const bool is_done = RunningDaemon::eventually(
      seconds(60) * patience(),
      [&] {
        stacks = daemon.folded(query);
        return total(stacks) >= 150;
      },
      seconds(1));
  REQUIRE(is_done);
  shell.kill();
  return stacks;
}

FoldedStacks run_short_programs(const RunningDaemon& daemon, const std::string& name = "known_chain",
                                const std::string& argument = "") {
  return run_again_and_again(daemon, name, victim(name) + " " + a_moment() + " " + argument);
}

double metric(const RunningDaemon& daemon, const std::string& name) {
  const auto metrics = daemon.metrics();
  const auto found = metrics.find(name);
  return found == metrics.end() ? 0 : found->second;
}

TEST_CASE("stacks of programs that have just begun are whole") {
  RunningDaemon daemon;
  const FoldedStacks stacks = run_short_programs(daemon);
  for (const auto& [stack, count] : stacks) {
    if (stack.find("[truncated") != std::string::npos) WARN(stack << " " << count);
  }
  CHECK(with(stacks, "[truncated") <= total(stacks) / 20);
  CHECK(with(stacks, kChain) >= total(stacks) * 8 / 10);
  CHECK(metric(daemon, "flamed_samples_walked_late_total") >= 60);
  CHECK(metric(daemon, "flamed_stack_slices_total") >= metric(daemon, "flamed_samples_walked_late_total"));
  const RunningDaemon::End end = daemon.end();
  CHECK(end.taken == end.whole + end.truncated + end.lost);
}

TEST_CASE("first stacks of a Go program are whole on both of its stacks", "[go]") {
  const std::string name = GENERATE(as<std::string>{}, "go_stacks", "go_stacks_cgo");
  if (!std::filesystem::exists(victim(name))) {
    WARN("SKIP go: there is no Go compiler");
    return;
  }
  RunningDaemon daemon;
  const FoldedStacks stacks = run_again_and_again(daemon, name, "timeout 0.1 " + victim(name) + " > /dev/null");
  std::string cut;
  for (const auto& [stack, count] : stacks) {
    if (stack.find("[truncated") != std::string::npos) cut += stack + " " + std::to_string(count) + "\n";
  }
  INFO(name << "\n" << cut);
  CHECK(with(stacks, "[truncated") <= total(stacks) / 50);
  CHECK(with(stacks, ";runtime.Stack;runtime.systemstack;") >= 5);
  CHECK(metric(daemon, "flamed_samples_walked_late_total") >= 20);
}

TEST_CASE("without slices the first stacks of programs are cut") {
  RunningDaemon daemon({"--stack-slices", "off"});
  const FoldedStacks stacks = run_again_and_again(daemon, "known_chain", victim("known_chain") + " 30");
  CHECK(with(stacks, "[truncated") >= total(stacks) / 4);
  CHECK(daemon.metrics().count("flamed_stack_slices_total") == 0);
}

TEST_CASE("callers of code that was compiled at run time are guessed, and such stacks are never whole") {
  if (!std::filesystem::exists(victim("jit_registers"))) {
    WARN("SKIP x86-64: the victim generates its code");
    return;
  }
  RunningDaemon daemon;
  const FoldedStacks stacks = run_short_programs(daemon, "jit_registers");
  const auto is_guess = [](const std::string& stack) {
    return stack.starts_with("[guessed: ") && stack.find(";main;outer;middle;[unknown] (anon") != std::string::npos;
  };
  std::string others;
  for (const auto& [stack, count] : stacks) {
    if (!is_guess(stack)) others += stack + " " + std::to_string(count) + "\n";
  }
  INFO(others);
  CHECK(count_if(stacks, is_guess) >= total(stacks) / 2);
  CHECK(with(stacks, "[guessed: ") == count_if(stacks, is_guess));
  // Whole ones were interrupted outside of that code.
  CHECK(count_if(stacks, [](const std::string& stack) {
          return stack.front() != '[' && stack.find("(anon") != std::string::npos;
        }) == 0);
  CHECK(metric(daemon, "flamed_samples_guessed_total") >= static_cast<double>(with(stacks, "[guessed: ")));

  // What was called before has left a stack of its own there.
  const FoldedStacks doubtful = run_short_programs(daemon, "jit_registers", "earlier");
  CHECK(with(doubtful, ";earlier;caller_of_any;[unknown]") == 0);
}

// -- What will never be known -----------------------------------------------------------------------------------------

/// How often the daemon's reader has gone to sleep.
long sleeps_of_reader(pid_t daemon) {
  for (const auto& thread : std::filesystem::directory_iterator("/proc/" + std::to_string(daemon) + "/task")) {
    std::string name;
    std::getline(std::ifstream(thread.path() / "comm") >> std::ws, name);
    if (name != "reader") continue;
    std::ifstream status(thread.path() / "status");
    for (std::string word; status >> word;) {
      long count = 0;
      if (word == "voluntary_ctxt_switches:" && status >> count) return count;
    }
  }
  FAIL("there is no thread named reader");
  return 0;
}

TEST_CASE("walks that end in no mapping, again and again at the same code, neither wake the daemon nor bring slices") {
  if (!std::filesystem::exists(victim("forged_rows"))) {
    WARN("SKIP x86-64: the victim uses its registers");
    return;
  }
  RunningDaemon daemon;
  const ChildProcess lost({victim("forged_rows"), "nowhere"});
  const std::string query = "/profile?format=folded&group=none&from=now-5s&pid=" + std::to_string(lost.pid());
  // Other programs on the machine wake it, too. With each of its 99 samples a second, this one would all the time.
  double slices = 0;
  long sleeps = 0;
  FoldedStacks stacks;
  const bool is_quiet = RunningDaemon::eventually(
      seconds(90) * patience(),
      [&] {
        slices = metric(daemon, "flamed_stack_slices_total");
        sleeps = sleeps_of_reader(daemon.process().pid());
        std::this_thread::sleep_for(seconds(4));
        slices = metric(daemon, "flamed_stack_slices_total") - slices;
        sleeps = sleeps_of_reader(daemon.process().pid()) - sleeps;
        stacks = daemon.folded(query);
        return with(stacks, "[truncated: address outside of all known code]") >= 100 && slices < 50 && sleeps < 15;
      },
      seconds(1));
  CAPTURE(slices, sleeps, with(stacks, "[truncated: address outside of all known code]"), total(stacks));
  CHECK(is_quiet);
}

TEST_CASE("brief processes of a program that is known do not wake the daemon, and have whole stacks") {
  if (patience() > 1) {
    WARN("SKIP emulated: a process takes so long to start that it isn't brief");
    return;
  }
  RunningDaemon daemon;
  const ChildProcess shell({"sh", "-c", "while :; do " + victim("known_chain") + " 30; done"});
  const std::string query = "/profile?format=folded&group=none&exe=victim_known_chain&from=now-4s";
  long sleeps = 0;
  FoldedStacks stacks;
  // Each of 33 processes a second would be a notice.
  const bool is_quiet = RunningDaemon::eventually(
      seconds(60) * patience(),
      [&] {
        sleeps = sleeps_of_reader(daemon.process().pid());
        std::this_thread::sleep_for(seconds(4));
        sleeps = sleeps_of_reader(daemon.process().pid()) - sleeps;
        stacks = daemon.folded(query);
        return sleeps < 15 && total(stacks) >= 100 && with(stacks, kChain) >= total(stacks) * 8 / 10;
      },
      seconds(1));
  CAPTURE(sleeps, total(stacks), with(stacks, kChain));
  CHECK(is_quiet);
  CHECK(metric(daemon, "flamed_samples_walked_late_total") >= 100);
}

// -- Rows that were kept ----------------------------------------------------------------------------------------------

/// A daemon whose rows are kept in `cache`, once it has `samples` of the process.
struct CachingDaemon {
  CachingDaemon(const TemporaryDirectory& cache, std::int32_t pid, std::uint64_t samples)
      : daemon({}, {"env", "CACHE_DIRECTORY=" + cache.path().string()}) {
    const std::string query = "/profile?format=folded&group=none&pid=" + std::to_string(pid);
    REQUIRE(RunningDaemon::eventually(
        seconds(60) * patience(),
        [&] {
          stacks = daemon.folded(query);
          return total(stacks) >= samples;
        },
        seconds(1)));
    builds = metric(daemon, "flamed_unwind_builds_total");
    reuses = metric(daemon, "flamed_unwind_reuses_total");
  }
  RunningDaemon daemon;
  FoldedStacks stacks;
  double builds = 0, reuses = 0;
};

TEST_CASE("after a restart rows are read from the cache and not built, and damaged ones are built again") {
  const TemporaryDirectory cache;
  const ChildProcess busy({victim("known_chain")});
  {
    const CachingDaemon first(cache, busy.pid(), 300);
    CHECK(first.builds >= 2);
    CHECK(first.reuses == 0);
    CHECK(metric(first.daemon, "flamed_row_cache_files") >= 2);
    CHECK(metric(first.daemon, "flamed_row_cache_bytes") > 10'000);
  }
  {
    const CachingDaemon second(cache, busy.pid(), 200);
    CHECK(second.reuses >= 2);
    // Other programs may have begun meanwhile.
    CHECK(second.builds <= second.reuses / 2);
    CHECK(with(second.stacks, kChain) >= total(second.stacks) * 99 / 100);
  }
  for (const auto& entry : std::filesystem::directory_iterator(cache.path("rows"))) {
    const std::uintmax_t size = entry.file_size();
    if (size % 2 == 0)
      std::filesystem::resize_file(entry.path(), size / 2);
    else
      std::ofstream(entry.path(), std::ios::trunc) << "somebody else's";
  }
  const CachingDaemon third(cache, busy.pid(), 200);
  CHECK(third.reuses == 0);
  CHECK(third.builds >= 2);
  CHECK(with(third.stacks, kChain) >= total(third.stacks) * 9 / 10);
}

}  // namespace
}  // namespace flamed::test
