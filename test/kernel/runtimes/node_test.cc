// SPDX-License-Identifier: Apache-2.0
//
// Node programs show their own functions, however they are compiled, and whatever stands between them.
#include <algorithm>
#include <chrono>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "test/catch.h"
#include "test/kernel/folded_stacks.h"
#include "test/kernel/own_stacks.h"
#include "test/support/child_process.h"
#include "test/support/programs.h"
#include "test/support/running_daemon.h"

namespace flamed::test {
namespace {

using std::chrono::seconds;

const std::string kVictim = std::string(NODE_VICTIMS) + "/node_golden.js";

/// The machine's own Node, or those that FLAMED_NODES names instead, with colons between them. None where V8 is not
/// read.
std::vector<std::string> nodes() {
#if !defined(__x86_64__)
  WARN("SKIP: V8 is read on x86-64 only");
  return {};
#endif
  std::vector<std::string> programs = programs_of("FLAMED_NODES", NODE);
  if (programs.empty()) WARN("SKIP: there is no Node: install nodejs, or set FLAMED_NODES");
  return programs;
}

/// Files of native functions with lines.
const std::string kNative[] = {".c", ".cc", ".cpp", ".h", ".S"};

/// Of a stack without lines, or with them, only the frames that have a JavaScript file.
std::string script_part(const std::string& folded, bool with_lines) {
  std::string part;
  std::istringstream frames(folded);
  for (std::string frame; std::getline(frames, frame, ';');) {
    const std::size_t space = frame.find(' ');
    const std::size_t colon = frame.rfind(':');
    const bool has_line = space != std::string::npos && colon != std::string::npos && space < colon &&
                          frame.find_first_not_of("0123456789", colon + 1) == std::string::npos;
    if (frame != "[javascript]" && !has_line) continue;
    const bool is_native = std::any_of(std::begin(kNative), std::end(kNative), [&](const std::string& extension) {
      return frame.find(extension + ":") != std::string::npos;
    });
    if (is_native) continue;
    part += (part.empty() ? "" : ";") + (with_lines ? frame : frame.substr(0, colon));
  }
  return part;
}

void check_stacks(RunningDaemon& daemon, const std::vector<std::string>& command, bool with_lines) {
  ChildProcess program(command);
  const std::string expected = script_part(shown_stack(program), with_lines);
  const std::string profile = profile_of(program.pid()) + "&lines=1";
  const auto is_shown = [&] {
    const FoldedStacks stacks = daemon.folded(profile);
    return std::any_of(stacks.begin(), stacks.end(),
                       [&](const auto& stack) { return script_part(stack.first, with_lines) == expected; });
  };
  CHECK(RunningDaemon::eventually(seconds(30) * patience(), is_shown));
  const std::string since = since_now();
  REQUIRE(has_samples(daemon, program.pid(), 100, since));
  const FoldedStacks stacks = daemon.folded(profile + since);
  std::string others;
  std::uint64_t equal = 0;
  std::uint64_t of_program = 0;
  for (const auto& [stack, count] : stacks) {
    const std::string part = script_part(stack, with_lines);
    if (part.empty()) continue;  // another thread: the compiler's, or the collector's
    of_program += count;
    if (part == expected)
      equal += count;
    else
      others += std::to_string(count) + " " + stack + "\n";
  }
  CAPTURE(expected, others, of_program, total(stacks));
  CHECK(of_program >= 80);
  CHECK(static_cast<double>(equal) >= 0.99 * static_cast<double>(of_program));
}

TEST_CASE("a Node program's stacks are those that it shows of itself", "[golden][node]") {
  RunningDaemon daemon;
  for (const std::string& node : nodes()) {
    for (const std::string mode : {"loop", "recursion", "methods", "getter", "sort", "map", "reviver", "replace",
                                   "apply", "bound", "generator", "async", "timer", "closures", "compiled"}) {
      INFO(node << " " << mode);
      check_stacks(daemon, {node, kVictim, mode}, false);
    }
  }
}

TEST_CASE("a function that V8 itself calls has its name before its frame stands", "[golden][node]") {
  RunningDaemon daemon;
  for (const std::string& node : nodes()) {
    INFO(node);
    ChildProcess program({node, kVictim, "entered"});
    REQUIRE(program.read_line(seconds(30) * patience()) == "");
    const std::string since = since_now();
    REQUIRE(has_samples(daemon, program.pid(), 300, since));
    const FoldedStacks stacks = daemon.folded(profile_of(program.pid()) + "&side=user" + since);
    const std::uint64_t of_sort = with(stacks, ";entered;");
    const std::uint64_t of_function = with(stacks, ";compare;");
    std::string others;
    std::uint64_t unnamed = 0;
    for (const auto& [stack, count] : stacks) {
      const std::string innermost = stack.substr(stack.rfind(';') + 1);
      const bool is_unnamed = innermost.rfind("[unknown] (anon+", 0) == 0 || innermost == "[javascript]";
      if (stack.find(";entered;") == std::string::npos || !is_unnamed) continue;
      unnamed += count;
      others += std::to_string(count) + " " + stack + "\n";
    }
    CAPTURE(others, of_function, of_sort, total(stacks));
    CHECK(of_function >= of_sort / 20);
    CHECK(static_cast<double>(unnamed) <= 0.01 * static_cast<double>(of_sort));
  }
}

TEST_CASE("interpreted JavaScript has the lines that run", "[golden][node]") {
  RunningDaemon daemon;
  for (const std::string& node : nodes()) {
    for (const std::string mode : {"loop", "methods", "sort", "generator", "timer"}) {
      INFO(node << " " << mode);
      check_stacks(daemon, {node, kVictim, mode, "interpreted"}, true);
    }
  }
}

TEST_CASE("stacks of Node programs that have just begun are whole while their code grows") {
  RunningDaemon daemon;
  for (const std::string& node : nodes()) {
    INFO(node);
    const std::string command = node + " " + NODE_VICTIMS + "/node_start.js";
    ChildProcess shell({"sh", "-c", "for i in $(seq 20); do " + command + "; done; read end"});
    const std::string query = "/profile?format=folded&group=none&comm=node&tree=" + std::to_string(shell.pid());
    FoldedStacks stacks;
    CHECK(RunningDaemon::eventually(
        seconds(60) * patience(),
        [&] {
          stacks = daemon.folded(query);
          return total(stacks) >= 150;
        },
        seconds(1)));
    std::string cut;
    for (const auto& [stack, count] : stacks) {
      if (stack.find("[truncated") != std::string::npos) cut += std::to_string(count) + " " + stack + "\n";
    }
    INFO(cut);
    CHECK(with(stacks, "[truncated") <= total(stacks) / 50);
    shell.kill();
  }
}

}  // namespace
}  // namespace flamed::test
