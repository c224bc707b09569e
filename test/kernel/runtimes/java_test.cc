// SPDX-License-Identifier: Apache-2.0
//
// Java programs show their methods, interpreted, compiled, or compiled into one another, without any option.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "test/catch.h"
#include "test/kernel/folded_stacks.h"
#include "test/kernel/own_stacks.h"
#include "test/support/child_process.h"
#include "test/support/running_daemon.h"
#include "test/unit/runtimes/live_hotspot.h"

namespace flamed::test {
namespace {

using std::chrono::seconds;

/// Of a folded stack with lines only the Java frames, and main()'s and those of the runtime left out. Frames without a
/// name stay: they are missing from what is expected.
std::string java_part(const std::string& folded) {
  std::string part;
  std::istringstream frames(folded);
  for (std::string frame; std::getline(frames, frame, ';');) {
    const bool is_java = frame.find(".java:") != std::string::npos || frame == "[java]" || frame == "[interpreted]";
    if (!is_java || frame.rfind("JavaGolden.main ", 0) == 0) continue;
    part += (part.empty() ? "" : ";") + frame;
  }
  return part;
}

/// Since then, by how often they were met, those of the program's own thread with Java frames.
struct JavaParts {
  std::map<std::string, std::uint64_t> counts;
  std::string stacks;  ///< for a message
  std::uint64_t total = 0;

  [[nodiscard]] std::uint64_t of(const std::string& part) const {
    const auto found = counts.find(part);
    return found == counts.end() ? 0 : found->second;
  }
};
JavaParts parts_since(const RunningDaemon& daemon, const ChildProcess& program, const std::string& since) {
  JavaParts parts;
  for (const auto& [stack, count] :
       daemon.folded(profile_of(program.pid()).append("&lines=1&comm=java").append(since))) {
    const std::string part = java_part(stack);
    if (part.empty()) continue;
    parts.counts[part] += count;
    parts.total += count;
    parts.stacks += std::to_string(count) + " " + stack + "\n";
  }
  return parts;
}

/// Do 99 % of the samples have the stack `expected` once the compilers are done? Looks at three windows, since
/// compilers need longer on a crowded machine.
bool becomes_equal(const RunningDaemon& daemon, const ChildProcess& program, const std::string& expected,
                   seconds for_compilers) {
  for (int tries = 0; tries < 3; ++tries) {
    std::this_thread::sleep_for(for_compilers);
    const std::string since = since_now();
    REQUIRE(has_samples(daemon, program.pid(), 300, since));
    const JavaParts parts = parts_since(daemon, program, since);
    const bool is_equal = static_cast<double>(parts.of(expected)) >= 0.99 * static_cast<double>(parts.total);
    if (parts.total > 200 && is_equal) return true;
    UNSCOPED_INFO(parts.total << " samples, expected " << expected << "\n" << parts.stacks);
    WARN(parts.total - parts.of(expected) << " of " << parts.total << " samples have another stack");
  }
  return false;
}

TEST_CASE("interpreted methods of a Java program have their names and lines", "[golden][java]") {
#if !defined(__x86_64__)
  WARN("SKIP: HotSpot is read on x86-64 only");
  return;
#endif
  const Result<std::string> classes = runtimes::compile_java(std::string(PYTHON_VICTIMS) + "/JavaGolden.java");
  if (!classes) {
    WARN("SKIP: no JDK here (Debian: default-jdk-headless): " << classes.error().message());
    return;
  }
  RunningDaemon daemon;
  for (const std::string& java : runtimes::jvms()) {
    for (const std::string mode : {"plain", "recursion", "lambda", "stream", "interface", "sorted"}) {
      INFO(java << " " << mode);
      ChildProcess program({java, "-Xint", "-cp", *classes, "JavaGolden", mode, "1000000"});
      const std::string expected = java_part(shown_stack(program));
      const bool is_equal = becomes_equal(daemon, program, expected, seconds(5) * patience());
      CHECK(is_equal);
    }
    INFO(java << " lines");
    ChildProcess program({java, "-Xint", "-cp", *classes, "JavaGolden", "lines", "1000000"});
    const std::string shown = java_part(shown_stack(program));
    const std::string caller = shown.substr(0, shown.rfind(':') + 1);
    const int first = std::stoi(shown.substr(caller.size())) + 3;
    std::this_thread::sleep_for(seconds(1));
    const std::string since = since_now();
    REQUIRE(has_samples(daemon, program.pid(), 300, since));
    const JavaParts parts = parts_since(daemon, program, since);
    CAPTURE(shown, parts.stacks);
    // The loop and its two lines: how long each takes differs by JVM and from run to run, from a seventh to a half.
    std::uint64_t in_loop = 0;
    for (int line = first - 1; line <= first + 1; ++line) {
      const std::uint64_t count = parts.of(caller + std::to_string(line));
      INFO("line " << line);
      CHECK(count > parts.total / 10);
      in_loop += count;
    }
    CHECK(static_cast<double>(in_loop) >= 0.99 * static_cast<double>(parts.total));
  }
}

TEST_CASE("a Java program's stacks are those that it shows of itself, and need no option", "[golden][java]") {
#if !defined(__x86_64__)
  WARN("SKIP: HotSpot is read on x86-64 only");
  return;
#endif
  const Result<std::string> classes = runtimes::compile_java(std::string(PYTHON_VICTIMS) + "/JavaGolden.java");
  if (!classes) {
    WARN("SKIP: no JDK here (Debian: default-jdk-headless): " << classes.error().message());
    return;
  }
  RunningDaemon daemon;
  for (const std::string& java : runtimes::jvms()) {
    for (const std::string mode : {"plain", "recursion", "lambda", "stream", "interface", "sorted"}) {
      INFO(java << " " << mode);
      ChildProcess program({java, "-cp", *classes, "JavaGolden", mode});
      const std::string expected = java_part(shown_stack(program));
      const std::string profile = profile_of(program.pid()) + "&lines=1";
      const auto is_shown = [&] {
        const FoldedStacks stacks = daemon.folded(profile);
        return std::any_of(stacks.begin(), stacks.end(),
                           [&](const auto& stack) { return java_part(stack.first) == expected; });
      };
      CHECK(RunningDaemon::eventually(seconds(60) * patience(), is_shown));
      const bool is_equal = becomes_equal(daemon, program, expected, seconds(5));
      CHECK(is_equal);
    }
  }
}

}  // namespace
}  // namespace flamed::test
