// SPDX-License-Identifier: Apache-2.0
//
// Programs, libraries and threads that come and go very fast: names must be right, and ended ones must leave nothing
// behind. FLAMED_CHURN_SECONDS makes it longer than the usual 5 s.
#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "test/catch.h"
#include "test/kernel/folded_stacks.h"
#include "test/support/child_process.h"
#include "test/support/running_daemon.h"

namespace flamed::test {
namespace {

using std::chrono::seconds;

int churn_seconds() {
  const char* configured = std::getenv("FLAMED_CHURN_SECONDS");
  return configured == nullptr ? 5 : std::atoi(configured);
}

std::vector<std::string> frames_of(const std::string& stack) {
  std::vector<std::string> frames;
  std::istringstream words(stack);
  for (std::string frame; std::getline(words, frame, ';');) frames.push_back(frame);
  return frames;
}

/// The name of the file with this NAME_outer, NAME_middle or NAME_work (churn_chain.h); empty for other functions.
std::string chain_of(const std::string& frame, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (frame == name + "_outer" || frame == name + "_middle" || frame == name + "_work") return name;
  }
  return {};
}

/// A stack may have NAME_outer; NAME_middle; NAME_work of the same file, adjacent and in this order, followed by kernel
/// frames. A cut stack lacks the outer ones.
bool is_right(const std::string& stack, const std::vector<std::string>& names) {
  const std::vector<std::string> frames = frames_of(stack);
  const auto is_of_chain = [&](const std::string& frame) { return !chain_of(frame, names).empty(); };
  auto frame = std::find_if(frames.begin(), frames.end(), is_of_chain);
  if (frame == frames.end()) return true;
  const std::string name = chain_of(*frame, names);
  const std::array<std::string, 3> chain = {name + "_outer", name + "_middle", name + "_work"};
  auto expected = std::find(chain.begin(), chain.end(), *frame);
  while (frame != frames.end() && expected != chain.end() && *frame == *expected) {
    ++frame;
    ++expected;
  }
  return std::none_of(frame, frames.end(), is_of_chain);
}

std::uint64_t truncated(const FoldedStacks& stacks) {
  return count_if(stacks, [](const std::string& stack) { return stack.find("[truncated") != std::string::npos; });
}

struct Tables {
  double processes, mappings;
  /// Resident memory without the unwind rows, which depend on all programs that run on the machine, such as compilers.
  double own_bytes;
};

Tables tables_of(const RunningDaemon& daemon) {
  auto metrics = daemon.metrics();
  return {metrics["flamed_unwind_processes"], metrics["flamed_unwind_mappings"],
          metrics["flamed_resident_bytes"] - metrics["flamed_unwind_slab_bytes"]};
}

std::ptrdiff_t running_processes() {
  return std::count_if(std::filesystem::directory_iterator("/proc"), {},
                       [](const auto& entry) { return std::isdigit(entry.path().filename().string()[0]) != 0; });
}

/// No ended process is in the tables any more.
void check_no_dead(const RunningDaemon& daemon) {
  Tables tables{};
  CHECK(RunningDaemon::eventually(seconds(10), [&] {
    tables = tables_of(daemon);
    return tables.processes <= static_cast<double>(running_processes());
  }));
  INFO(tables.processes << " processes in the tables, " << running_processes() << " are running");
}

TEST_CASE("thousands of execs a second are never confused, and leave nothing behind") {
  const std::vector<std::string> names = {"alpha", "beta", "gamma", "delta"};
  RunningDaemon daemon;
  const auto churn = [&](int duration) {
    // Two workers; ten execs in each process, with some 35 us of work each, less than the exec itself takes.
    std::vector<std::string> command{victim("churn_driver"), std::to_string(duration), "2", "10", "20000"};
    for (const std::string& name : names) command.push_back(victim("churn_" + name));
    ChildProcess driver(command);
    const auto line = driver.read_line(seconds(4 * duration + 30));
    REQUIRE(line.has_value());
    REQUIRE(driver.wait(seconds(10)) == 0);
    return std::stod(*line) / duration;
  };
  churn(2);
  const Tables before = tables_of(daemon);
  const double rate = churn(churn_seconds());
  check_no_dead(daemon);
  const Tables after = tables_of(daemon);

  const FoldedStacks stacks = daemon.folded("/profile?format=folded");
  std::uint64_t in_chains = 0;
  for (const auto& [stack, count] : stacks) {
    const std::vector<std::string> frames = frames_of(stack);
    const auto is_of_chain = [&](const std::string& frame) { return !chain_of(frame, names).empty(); };
    if (std::any_of(frames.begin(), frames.end(), is_of_chain)) in_chains += count;
    if (!is_right(stack, names)) UNSCOPED_INFO(count << "  " << stack);
  }
  WARN(rate << " execs/s, " << in_chains << " samples in the programs, " << truncated(stacks) << " of " << total(stacks)
            << " truncated; without unwind rows " << before.own_bytes / 1048576 << " MiB resident before, "
            << after.own_bytes / 1048576 << " MiB after");
  CHECK(count_if(stacks, [&](const std::string& stack) { return is_right(stack, names); }) == total(stacks));
  CHECK(in_chains > 0);
  // Allows for thousands of stored processes, but nothing for each exec: 3 MiB in 30 s of 5,900 execs a second.
  CHECK(after.own_bytes - before.own_bytes < 16 * 1048576.0);
  const RunningDaemon::End end = daemon.end();
  INFO("lost" << end.losses);
  CHECK(end.lost == 0);
  CHECK(end.taken == end.whole + end.truncated);
}

TEST_CASE("libraries that are loaded in each other's place are never confused") {
  RunningDaemon daemon;
  const std::string folder = std::filesystem::path(victim("x")).parent_path().string();
  ChildProcess loader({victim("churn_loader"), std::to_string(churn_seconds() + 2), folder + "/libchurn_one.so",
                       folder + "/libchurn_two.so"});
  const auto line = loader.read_line(seconds(churn_seconds() + 30));
  REQUIRE(line.has_value());
  double loaded = 0;
  double in_place = 0;
  double worked = 0;
  std::istringstream(*line) >> loaded >> in_place >> worked;
  CHECK(in_place > 0.9 * loaded);
  // Each has one record. It maps so often that many of these are skipped, and then nobody can know what is mapped.
  const double told = 1 - daemon.metrics()["flamed_side_band_skipped_total"] / loaded;

  FoldedStacks stacks;
  std::uint64_t before = 0;
  static_cast<void>(RunningDaemon::eventually(seconds(5), [&] {
    stacks = daemon.folded(profile_of(loader.pid()));
    return total(stacks) == std::exchange(before, total(stacks)) && before > 0;
  }));
  const std::vector<std::string> libraries{"one", "two"};
  const auto is_wrong = [&](const std::string& folded) {
    const std::string stack = ";" + folded + ";";
    const auto has = [&](const char* part) { return stack.find(part) != std::string::npos; };
    const bool one = has(";one_");
    const bool two = has(";two_");
    if ((one && (two || has(";call_two;"))) || (two && has(";call_one;"))) return true;
    if (!is_right(folded, libraries)) return true;
    // A stack that is not cut has the start and the caller.
    if (has("[truncated") || (!one && !two)) return false;
    return !has(";main;call_one;one_outer;") && !has(";main;call_two;two_outer;");
  };
  for (const auto& [stack, count] : stacks) {
    if (is_wrong(stack)) UNSCOPED_INFO(count << "  " << stack);
  }
  const auto named = static_cast<double>(with(stacks, ";one_work;") + with(stacks, ";two_work;"));
  WARN(loaded << " libraries loaded, of " << 100 * told << " % this was told, in them " << 100 * worked
              << " % of the time, " << named << " of " << total(stacks) << " samples named there, " << truncated(stacks)
              << " truncated");
  CHECK(count_if(stacks, is_wrong) == 0);
  CHECK(told > 0.1);
  // Records are skipped for seconds at a time, in which the program may have more or less CPU time than in others.
  CHECK(named > 0.5 * told * worked * static_cast<double>(total(stacks)));
  const RunningDaemon::End end = daemon.end();
  INFO("lost" << end.losses);
  CHECK(end.lost == 0);
}

TEST_CASE("two thousand threads have their own names, and leave nothing behind") {
  RunningDaemon daemon;
  {
    // Its unwind rows are built before two thousand threads leave little CPU time for that.
    ChildProcess first({victim("churn_threads"), "60", "2"});
    REQUIRE(has_samples(daemon, first.pid(), 99));
  }
  pid_t pid = 0;
  {
    ChildProcess program({victim("churn_threads"), std::to_string(churn_seconds()), "2000"});
    pid = program.pid();
    REQUIRE(program.wait(seconds(churn_seconds() + 120)) == 0);
  }
  REQUIRE(has_samples(daemon, pid, 99));
  const FoldedStacks stacks = daemon.folded(profile_of(pid));
  const auto is_exact = [](const std::string& stack) {
    const bool even = stack.find(";even_thread;even_work;") != std::string::npos;
    const bool odd = stack.find(";odd_thread;odd_work;") != std::string::npos;
    return even != odd;
  };
  for (const auto& [stack, count] : stacks) UNSCOPED_INFO(count << "  " << stack);
  // The rest are the threads' starts and ends, and the first moments, before the rows are built.
  CHECK(with(stacks, ";even_thread;even_work;") > total(stacks) / 4);
  CHECK(with(stacks, ";odd_thread;odd_work;") > total(stacks) / 4);
  const auto mixed = count_if(stacks, [&](const std::string& stack) {
    return stack.find("even_") != std::string::npos && stack.find("odd_") != std::string::npos;
  });
  CHECK(mixed == 0);
  CHECK(count_if(stacks, [&](const std::string& stack) { return is_exact(stack + ";"); }) > total(stacks) * 8 / 10);
  check_no_dead(daemon);
  const RunningDaemon::End end = daemon.end();
  INFO("lost" << end.losses);
  CHECK(end.lost == 0);
}

TEST_CASE("a process whose first thread has ended goes on, until its last thread ends") {
  RunningDaemon daemon;
  pid_t pid = 0;
  const auto of_process = [&] {
    const nlohmann::json answer = daemon.get_json("/processes");
    const auto& processes = answer["processes"];
    const auto found =
        std::find_if(processes.begin(), processes.end(), [&](const auto& process) { return process["pid"] == pid; });
    return found == processes.end() ? nlohmann::json() : *found;
  };
  const auto has_ended = [&] {
    const nlohmann::json process = of_process();
    return process.contains("ended") && !process["ended"].is_null();
  };
  {
    ChildProcess program({victim("leaderless")});
    pid = program.pid();
    REQUIRE(has_samples(daemon, pid, 50));
    CHECK_FALSE(has_ended());
    CHECK(with(daemon.folded(profile_of(pid)), ";thread_main;leaderless_work;") > 0);
    program.kill();
  }
  CHECK(RunningDaemon::eventually(seconds(20), has_ended));
}

}  // namespace
}  // namespace flamed::test
