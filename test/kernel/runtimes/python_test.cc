// SPDX-License-Identifier: Apache-2.0
//
// Python programs show their own functions, whatever stands between them, and also when they are gone.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "test/catch.h"
#include "test/kernel/folded_stacks.h"
#include "test/kernel/own_stacks.h"
#include "test/support/child_process.h"
#include "test/support/running_daemon.h"
#include "test/unit/runtimes/live_python.h"

namespace flamed::test {
namespace {

using std::chrono::seconds;

bool is_supported() {
#if defined(__x86_64__)
  return true;
#else
  WARN("SKIP: Python is read on x86-64 only");
  return false;
#endif
}

/// Of a folded stack with lines only the Python frames.
std::string python_part(const std::string& folded) {
  std::string part;
  std::istringstream frames(folded);
  for (std::string frame; std::getline(frames, frame, ';');) {
    const std::size_t colon = frame.rfind(':');
    const bool has_line = colon != std::string::npos && colon > 3;
    const std::string before = has_line ? frame.substr(0, colon) : "";
    const bool is_python = before.ends_with(".py") || before.ends_with(">") || frame == "[python]";
    if (is_python) part += (part.empty() ? "" : ";") + frame;
  }
  return part;
}

TEST_CASE("a Python program's stacks are those that it shows of itself", "[golden][python]") {
  if (!is_supported()) return;
  const RunningDaemon& daemon = frequent_daemon();
  for (const std::string& python : runtimes::pythons()) {
    for (const std::string mode :
         {"loop", "recursion", "call", "sorted", "map", "generator", "async", "callback", "without_lock", "threads"}) {
      INFO(python << " " << mode);
      ChildProcess program({python, std::string(PYTHON_VICTIMS) + "/python_golden.py", mode});
      std::set<std::string> expected;
      for (int threads = mode == "threads" ? 3 : 1; threads > 0; --threads) expected.insert(shown_stack(program));
      const std::string profile = profile_of(program.pid()) + "&lines=1";
      const auto is_shown = [&] {
        const FoldedStacks stacks = daemon.folded(profile);
        return std::any_of(stacks.begin(), stacks.end(),
                           [&](const auto& stack) { return expected.count(python_part(stack.first)) != 0; });
      };
      CHECK(RunningDaemon::eventually(seconds(30) * patience(), is_shown));
      // Where other virtual machines take the CPUs away, names may come too late for a window of so few samples.
      std::string others;
      bool are_equal = false;
      for (int tries = 0; tries < 3 && !are_equal; ++tries) {
        const std::string since = since_now();
        REQUIRE(has_samples(daemon, program.pid(), 100, since));
        const FoldedStacks stacks = daemon.folded(profile + since);
        others.clear();
        std::uint64_t equal = 0;
        for (const auto& [stack, count] : stacks) {
          if (expected.count(python_part(stack)) != 0)
            equal += count;
          else
            others += std::to_string(count) + " " + stack + "\n";
        }
        are_equal = static_cast<double>(equal) >= 0.99 * static_cast<double>(total(stacks));
        if (!are_equal) WARN(python << " " << mode << ": of " << total(stacks) << " samples others are\n" << others);
      }
      CAPTURE(others, *expected.begin());
      CHECK(are_equal);
    }
  }
}

/// What python_replaced.py says of a function.
struct MadeFunction {
  std::string name;
  std::string address;  ///< of its code object
  std::int64_t began_us = 0, ended_us = 0;
};

std::vector<MadeFunction> made_functions(ChildProcess& program) {
  std::vector<MadeFunction> functions;
  while (const std::optional<std::string> line = program.read_line(seconds(60) * patience())) {
    std::istringstream words(*line);
    MadeFunction function;
    words >> function.name >> function.address >> function.began_us >> function.ended_us;
    functions.push_back(function);
  }
  return functions;
}

/// Of samples that were taken while one function ran, how many show it, another one, or none.
struct Shown {
  std::uint64_t right = 0, wrong = 0, none = 0;
};

Shown shown_functions(const nlohmann::json& answer, const std::vector<MadeFunction>& functions, std::int64_t from_us) {
  constexpr std::int64_t kClockErrorUs = 500;
  const nlohmann::json& columns = answer["columns"];
  const auto name_of = [&](std::size_t node) {
    const std::size_t frame = columns["nodes"]["frame"][node].get<std::size_t>();
    return columns["strings"][columns["frames"]["name"][frame].get<std::size_t>()].get<std::string>();
  };
  Shown shown;
  const nlohmann::json& times = columns["samples"]["time_us"];
  for (std::size_t i = 0; i < times.size(); ++i) {
    const std::int64_t time = from_us + times[i].get<std::int64_t>();
    const auto ran = std::find_if(functions.begin(), functions.end(), [&](const MadeFunction& function) {
      return time > function.began_us + kClockErrorUs && time < function.ended_us - kClockErrorUs;
    });
    if (ran == functions.end()) continue;
    std::string name;
    for (auto node = columns["samples"]["node"][i].get<std::size_t>(); node != 0 && !name.starts_with("f_");) {
      name = name_of(node);
      node = columns["nodes"]["caller"][node].get<std::size_t>();
    }
    ++(name == ran->name ? shown.right : name.starts_with("f_") ? shown.wrong : shown.none);
  }
  return shown;
}

TEST_CASE("functions whose code lies where that of others did have their own names", "[python]") {
  if (!is_supported()) return;
  const RunningDaemon& daemon = frequent_daemon();
  for (const std::string& python : runtimes::pythons()) {
    INFO(python);
    const std::int64_t from_us = std::stoll(since_now().substr(std::string("&from=").size())) * 1000;
    ChildProcess program({python, std::string(PYTHON_VICTIMS) + "/python_replaced.py", "60", "100"});
    const std::vector<MadeFunction> functions = made_functions(program);
    REQUIRE(functions.size() == 60);
    std::set<std::string> addresses;
    for (const MadeFunction& function : functions) addresses.insert(function.address);
    CHECK(addresses.size() <= functions.size() / 4);

    // Names of the last ones are waited for, see kLongestWaitNs.
    std::this_thread::sleep_for(seconds(3) * patience());
    const Shown shown = shown_functions(daemon.get_json("/profile?format=samples&pid=" + std::to_string(program.pid()) +
                                                        "&from=" + std::to_string(from_us / 1000)),
                                        functions, from_us);
    CAPTURE(addresses.size(), shown.right, shown.wrong, shown.none);
    CHECK(shown.right + shown.wrong + shown.none > 1000);
    CHECK(shown.wrong == 0);
    CHECK(static_cast<double>(shown.right) >= 0.9 * static_cast<double>(shown.right + shown.none));
  }
}

TEST_CASE("the interpreter's frames are hidden unless they are asked for, in all formats") {
  if (!is_supported()) return;
  const RunningDaemon& daemon = frequent_daemon();
  ChildProcess program({runtimes::pythons().front(), std::string(PYTHON_VICTIMS) + "/python_golden.py", "sorted"});
  static_cast<void>(shown_stack(program));
  REQUIRE(RunningDaemon::eventually(seconds(30) * patience(), [&] {
    return with(settled_profile(daemon, program.pid()), ";Called.__call__;busy;") > 0;
  }));
  const std::string since = since_now();
  REQUIRE(has_samples(daemon, program.pid(), 100, since));
  const std::string pid = "pid=" + std::to_string(program.pid()) + since;
  for (const std::string path : {"/profile?format=folded&", "/profile?format=speedscope&", "/profile?"}) {
    CAPTURE(path);
    CHECK(daemon.get(path + pid).body.find("_PyEval_EvalFrameDefault") == std::string::npos);
    CHECK(daemon.get(path + pid + "&interpreter=show").body.find("_PyEval_EvalFrameDefault") != std::string::npos);
  }
  const nlohmann::json tree = daemon.get_json("/profile?" + pid);
  CHECK(tree.dump().find("\"python\"") != std::string::npos);
}

TEST_CASE("most samples of programs that run for a fifth of a second have names, though the programs are gone") {
  if (!is_supported()) return;
  RunningDaemon daemon;
  const std::string python = runtimes::pythons().front();
  const std::string program =
      "import time\n"
      "def spin_for_a_moment():\n"
      "  end = time.monotonic() + 0.2\n"
      "  while time.monotonic() < end: pass\n"
      "spin_for_a_moment()\n";
  {
    ChildProcess first({python, "-c", program + program + program + program + program});
    REQUIRE(first.wait(seconds(60) * patience()) == 0);
  }
  std::this_thread::sleep_for(seconds(1));
  const std::string since = since_now();
  for (int i = 0; i < 100; ++i) {
    ChildProcess run({python, "-c", program});
    REQUIRE(run.wait(seconds(60) * patience()) == 0);
  }
  std::this_thread::sleep_for(seconds(3));
  const std::string comm = last_component(std::filesystem::canonical(python).string()).substr(0, 15);
  std::uint64_t run_by_python = 0;
  std::uint64_t named = 0;
  const FoldedStacks stacks =
      daemon.folded("/profile?format=folded&interpreter=show&exe=" + comm + "&group=none" + since);
  for (const auto& [stack, count] : stacks) {
    const bool has_interpreter = stack.find("_PyEval_EvalFrameDefault") != std::string::npos;
    const bool has_names = stack.find("<module>") != std::string::npos || stack.find("_bootstrap") != std::string::npos;
    if (!has_interpreter && !has_names) continue;
    run_by_python += count;
    if (has_names && stack.find("[python]") == std::string::npos) named += count;
  }
  CAPTURE(named, run_by_python, total(stacks));
  CHECK(run_by_python > 300);
  CHECK(static_cast<double>(named) >= 0.95 * static_cast<double>(run_by_python));
}

}  // namespace
}  // namespace flamed::test
