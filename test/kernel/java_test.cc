// SPDX-License-Identifier: Apache-2.0
//
// Java programs show their methods, compiled into one another or not, without any option.
#include <algorithm>
#include <chrono>
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
    const bool is_java = frame.find(".java:") != std::string::npos || frame == "[java]";
    if (!is_java || frame.rfind("JavaGolden.main ", 0) == 0) continue;
    part += (part.empty() ? "" : ";") + frame;
  }
  return part;
}

TEST_CASE("a Java program's stacks are those that it shows of itself, and need no option") {
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
      // By now all that runs is compiled for good.
      std::this_thread::sleep_for(seconds(5));
      const std::string since = since_now();
      REQUIRE(has_samples(daemon, program.pid(), 200, since));
      const FoldedStacks stacks = daemon.folded(std::string(profile).append("&comm=java").append(since));
      std::string others;
      std::uint64_t equal = 0;
      std::uint64_t in_java = 0;
      for (const auto& [stack, count] : stacks) {
        const std::string part = java_part(stack);
        if (part.empty()) continue;
        in_java += count;
        if (part == expected)
          equal += count;
        else
          others += std::to_string(count) + " " + stack + "\n";
      }
      CAPTURE(expected, others, total(stacks));
      CHECK(in_java > 100);
      CHECK(static_cast<double>(equal) >= 0.99 * static_cast<double>(in_java));
    }
  }
}

}  // namespace
}  // namespace flamed::test
