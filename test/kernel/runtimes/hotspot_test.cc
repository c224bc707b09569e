// SPDX-License-Identifier: Apache-2.0
//
// Stacks of Java programs that were started without any flag.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "test/catch.h"
#include "test/kernel/folded_stacks.h"
#include "test/support/child_process.h"
#include "test/support/running_daemon.h"
#include "test/unit/runtimes/live_hotspot.h"

namespace flamed::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Empty: there is none, or it can't be read here.
std::vector<std::string> javas() {
#if !defined(__x86_64__)
  WARN("SKIP: the JVM is read on x86-64 only");
  return {};
#endif
  std::vector<std::string> found = runtimes::jvms();
  std::erase_if(found, [](const std::string& java) {
    return std::system(("command -v '" + java + "' >/dev/null").c_str()) != 0;
  });
  if (found.empty()) WARN("SKIP java: there is no JVM");
  return found;
}

/// User space of the process's samples from now on.
std::string profile_from_now(pid_t pid) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  std::this_thread::sleep_for(milliseconds(1));  // a window must not be empty
  return "/profile?format=folded&group=none&side=user&pid=" + std::to_string(pid) +
         "&from=" + std::to_string(std::chrono::duration_cast<milliseconds>(now).count());
}

FoldedStacks stacks_of(const RunningDaemon& daemon, const std::string& profile, std::uint64_t wanted) {
  FoldedStacks stacks;
  const bool are_there = RunningDaemon::eventually(
      seconds(90) * patience(),
      [&] {
        stacks = daemon.folded(profile);
        return total(stacks) >= wanted;
      },
      seconds(1));
  REQUIRE(are_there);
  return stacks;
}

bool is_cut(const std::string& stack) { return stack.front() == '['; }

std::string cut_ones(const FoldedStacks& stacks) {
  std::string text;
  for (const auto& [stack, count] : stacks) {
    if (is_cut(stack)) text += std::to_string(count) + " " + stack + "\n";
  }
  return text;
}

/// The most common number of frames that C++ has called of Java, and how many of the samples with Java have it.
struct Depth {
  std::size_t frames = 0;
  std::uint64_t samples = 0;
  std::uint64_t of = 0;
};
Depth java_depth(const FoldedStacks& stacks) {
  constexpr const char* kCaller = ";JavaCalls::call_helper;";
  std::map<std::size_t, std::uint64_t> depths;
  Depth depth;
  for (const auto& [stack, count] : stacks) {
    if (stack.find(";JavaMain;") == std::string::npos) continue;
    depth.of += count;
    const std::size_t caller = stack.rfind(kCaller);
    if (caller == std::string::npos) continue;
    depths[static_cast<std::size_t>(
        std::count(stack.begin() + static_cast<std::ptrdiff_t>(caller), stack.end(), ';'))] += count;
  }
  for (const auto& [frames, count] : depths) {
    if (count > depth.samples) depth = {frames, count, depth.of};
  }
  return depth;
}

TEST_CASE("stacks of a Java program that was started without any flag are whole") {
  RunningDaemon daemon;
  for (const std::string& java : javas()) {
    for (const std::string collector : {"-XX:+UseG1GC", "-XX:+UseSerialGC", "-XX:+UseParallelGC"}) {
      INFO(java << " " << collector);
      ChildProcess program({java, collector, victim("Stacks.java"), "mixed"});
      const std::string early = profile_from_now(program.pid());
      static_cast<void>(stacks_of(daemon, early, 300));
      const FoldedStacks stacks = stacks_of(daemon, profile_from_now(program.pid()), 400);
      INFO(cut_ones(stacks));
      CHECK(static_cast<double>(count_if(stacks, is_cut)) <= 0.01 * static_cast<double>(total(stacks)));
      // A compiler thread's are there as well.
      const FoldedStacks all = daemon.folded(early);
      INFO(cut_ones(all));
      CHECK(static_cast<double>(count_if(all, is_cut)) <= 0.05 * static_cast<double>(total(all)));
    }
  }
}

TEST_CASE("a Java program's stacks have as many frames as it has called methods") {
  constexpr std::size_t kFurther = 40;
  RunningDaemon daemon;
  for (const std::string& java : javas()) {
    for (const std::vector<std::string>& mode : std::vector<std::vector<std::string>>{
             {"-Xint"}, {"-XX:TieredStopAtLevel=1", "-XX:-Inline"}, {"-XX:-TieredCompilation", "-XX:-Inline"}}) {
      INFO(java << " " << mode[0]);
      std::size_t shallow = 0;
      for (const std::size_t depth : {std::size_t{10}, 10 + kFurther}) {
        std::vector<std::string> command{java};
        command.insert(command.end(), mode.begin(), mode.end());
        command.insert(command.end(), {victim("Stacks.java"), "depth", std::to_string(depth)});
        ChildProcess program(command);
        // It compiles itself first, and then its methods are compiled.
        static_cast<void>(stacks_of(daemon, profile_from_now(program.pid()) + "&focus=JavaMain", 500));
        const FoldedStacks stacks = stacks_of(daemon, profile_from_now(program.pid()) + "&focus=JavaMain", 200);
        const Depth found = java_depth(stacks);
        INFO(found.frames << " frames in " << found.samples << " of " << found.of);
        CHECK(static_cast<double>(found.samples) >= 0.95 * static_cast<double>(found.of));
        if (shallow == 0)
          shallow = found.frames;
        else
          CHECK(found.frames == shallow + kFurther);
      }
    }
  }
}

TEST_CASE("what is read of a JVM is said, and it is read no more if that is switched off") {
  const std::vector<std::string> all = javas();
  if (all.empty()) return;
  for (const std::string mode : {"on", "off"}) {
    CAPTURE(mode);
    RunningDaemon daemon({"--runtimes", mode == "on" ? "java" : "python"});
    ChildProcess program({all.front(), victim("Stacks.java"), "mixed"});
    static_cast<void>(stacks_of(daemon, profile_from_now(program.pid()), 300));
    const std::string health = daemon.get("/healthz").body;
    CHECK((health.find("stacks by the code heap") != std::string::npos) == (mode == "on"));
    const auto metrics = daemon.metrics();
    CHECK(metrics.count("flamed_jvm_readings_total") == (mode == "on" ? 1 : 0));
    if (mode == "on") CHECK(metrics.at("flamed_jvm_readings_total") >= 2);
  }
}

}  // namespace
}  // namespace flamed::test
