// SPDX-License-Identifier: Apache-2.0
//
// The sentences of format=summary about loads whose truth is known: they must say what is true.
#include <csignal>
#include <filesystem>
#include <memory>
#include <regex>
#include <string>
#include <thread>

#include "test/catch.h"
#include "test/kernel/folded_stacks.h"
#include "test/support/child_process.h"
#include "test/support/running_daemon.h"

namespace flamed::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::int64_t now_ms() {
  return std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string between(std::int64_t from, std::int64_t to) {
  return "&from=" + std::to_string(from) + "&to=" + std::to_string(to);
}

/// A folder with a copy of a victim without its symbols.
class Stripped {
 public:
  Stripped() {
    path_ = std::filesystem::temp_directory_path() / ("flamed-summary-" + std::to_string(::getpid()));
    std::filesystem::create_directory(path_);
    std::filesystem::copy_file(victim("known_chain"), program());
    ChildProcess strip({"strip", program()});
    REQUIRE(strip.wait(seconds(60)) == 0);
  }
  ~Stripped() { std::filesystem::remove_all(path_); }
  Stripped(const Stripped&) = delete;
  Stripped& operator=(const Stripped&) = delete;
  [[nodiscard]] std::string program() const { return path_ / "nameless"; }

 private:
  std::filesystem::path path_;
};

bool says(const std::string& text, const std::string& pattern) { return std::regex_search(text, std::regex(pattern)); }

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

TEST_CASE("a summary says what is true of known loads") {
  const Stripped stripped;
  RunningDaemon daemon({"--frequency", "997"});
  ChildProcess one({victim("names_c")});
  ChildProcess equal({victim("equal")});
  ChildProcess slower({victim("slower"), "200"});
  ChildProcess nameless({stripped.program()});
  ChildProcess reader({victim("system_calls")});
  ChildProcess family({"sh", "-c",
                       victim("known_chain") + " 20000 & first=$!; " + victim("known_chain") +
                           " 20000 & trap \"kill $first $!\" TERM; wait"});
  ChildProcess sleeper({"sleep", "600"});
  ChildProcess waiter({"sh", "-c", "while sleep 0.05; do :; done"});
  ChildProcess ended({victim("known_chain"), "300"});

  const auto pid = [](ChildProcess& process) { return "pid=" + std::to_string(process.pid()); };
  // From after the program's start, whose stacks are cut.
  for (ChildProcess* process : {&one, &equal, &slower, &nameless, &reader}) {
    REQUIRE(has_samples(daemon, process->pid(), 30));
  }
  REQUIRE(ended.wait(seconds(60)) == 0);
  std::this_thread::sleep_for(milliseconds(100));
  const std::int64_t from = now_ms();
  // Enough to tell a change from chance, on a busy machine, too.
  const auto await_samples = [&](std::int64_t since) {
    // A window must not be empty.
    std::this_thread::sleep_for(milliseconds(100));
    for (ChildProcess* process : {&one, &equal, &slower, &nameless, &reader}) {
      const std::string profile = profile_of(process->pid()) + "&from=" + std::to_string(since);
      // Of 600 samples, the change of a function from 20 to 13 % may be within chance.
      const std::uint64_t wanted = process == &slower ? 1500 : 600;
      REQUIRE(RunningDaemon::eventually(seconds(120), [&] { return total(daemon.folded(profile)) >= wanted; }));
    }
  };
  await_samples(from);
  const std::int64_t middle = now_ms();
  slower.signal(SIGUSR1);
  await_samples(middle);
  const std::int64_t to = now_ms();
  std::this_thread::sleep_for(milliseconds(1500));

  const auto ask = [&](const std::string& query) {
    const HttpAnswer answer = daemon.get("/profile?format=summary&" + query);
    CHECK(answer.status == 200);
    CHECK(answer.content_type == "text/plain; charset=utf-8");
    CHECK(std::count(answer.body.begin(), answer.body.end(), '\n') <= 14);
    return answer.body;
  };
  const auto compare = [&](const std::string& query) {
    return daemon
        .get("/diff?format=summary&" + query + between(middle, to) + "&base_from=" + std::to_string(from) +
             "&base_to=" + std::to_string(middle))
        .body;
  };
  const std::string window = between(from, to);

  {
    const std::string text = ask(pid(one) + window);
    INFO("one busy function:\n" << text);
    CHECK(says(first_line(text),
               R"(victim_names_c \(pid \d+\) .*used .*; the hottest function is leaf \((100|9\d(\.\d)?) %\)\.)"));
    CHECK(says(text, "Time with what they call: .*outer"));
    CHECK_FALSE(says(text, "without names"));
  }
  {
    const std::string text = ask(pid(equal) + window);
    INFO("two equal functions:\n" << text);
    // In one of twenty runs chance makes them differ by more than two standard deviations.
    const bool is_shared = says(
        first_line(text), R"(two functions share it: (first|second) \([45]\d %\) and (first|second) \([45]\d %\)\.)");
    CHECK((is_shared || says(first_line(text), R"(the hottest function is (first|second) \(5[0-4] %\)\.)")));
  }
  {
    const std::string text = compare(pid(slower));
    INFO("a regression:\n" << text);
    CHECK(says(first_line(text),
               R"(^slower takes more of the CPU time than before: 7\d % instead of (4|5)\d % .*beyond chance)"));
    CHECK(says(text, "\nMore than before: slower "));
    CHECK(says(text, "\nLess than before: .*steady"));
    CHECK(says(text, "\nLess than before: .*even"));
  }
  {
    const std::string text = compare(pid(equal));
    INFO("no change:\n" << text);
    CHECK(says(first_line(text), "^Nothing changed beyond chance"));
  }
  {
    const std::string text = ask(pid(sleeper) + window);
    INFO("an idle program:\n" << text);
    CHECK(says(
        first_line(text),
        R"(^Process \d+ used no CPU in the window: it waited|^sleep \(pid \d+\) used no CPU in the window: it waited)"));
  }
  {
    const std::string text = ask(pid(waiter) + window);
    INFO("a waiting program:\n" << text);
    CHECK(says(
        first_line(text),
        R"(^sh \(pid \d+\) mostly waited, for a CPU or something else: it used 0\.0\d of the machine's \d+ CPUs?)"));
  }
  {
    const std::string text = ask(pid(nameless) + window);
    INFO("a nameless program:\n" << text);
    CHECK(says(first_line(text), R"(the hottest function is \[nameless\+0x[0-9a-f]+\] \()"));
    CHECK(says(text, "Install debug symbols of nameless"));
  }
  {
    const std::string text = ask(pid(ended));
    INFO("an ended program:\n" << text);
    CHECK(says(first_line(text), R"(^victim_known_ch \(pid \d+\) has ended, at 20.*; before that it used .*work_two)"));
    const std::string later = ask(pid(ended) + between(middle, to));
    INFO("in a window after its end:\n" << later);
    CHECK(says(first_line(later), R"(^victim_known_ch \(pid \d+\) has ended: at .*, before the window\.)"));
  }
  {
    const std::string text = ask(pid(reader) + window);
    INFO("a program in the kernel:\n" << text);
    CHECK(says(first_line(text), R"(mostly in the kernel \((100|9\d(\.\d)?) %\))"));
    CHECK(says(text, R"(\n(100|9\d(\.\d)?) % of the time is in the kernel: )"));
  }
  {
    const std::string text = ask("tree=" + std::to_string(family.pid()) + window);
    INFO("a program of several processes:\n" << text);
    CHECK(says(text, R"(\nBy program: victim_known_chain (100|9\d(\.\d)?) % \(2 processes\))"));
    CHECK(says(first_line(text), R"(the hottest function is work_two \([67]\d %\)\.)"));
  }
  {
    const std::string text = ask("from=1000000000&to=1000000060");
    INFO("a window before the start:\n" << text);
    CHECK(first_line(text) == "Nothing is known of this window: flamed keeps no sample of it.");
    CHECK(says(text, "\nNote: The window is before flamed began to sample"));
  }
  {
    const std::string text = ask("comm=no-such-thread" + window);
    INFO("nothing selected:\n" << text);
    CHECK(first_line(text) == "Nothing in the selection used CPU in the window.");
    CHECK(says(text, "another window would be as empty"));
  }
  {
    const std::string text = ask(window.substr(1));
    INFO("the machine:\n" << text);
    CHECK(says(first_line(text), R"(^The machine used \d+\.\d\d of its \d+ CPUs? \(\d+ %\), .* in )"));
    CHECK(says(text, R"(\nBy program: .* others )"));
  }
  family.signal(SIGTERM);
  CHECK(family.wait(seconds(20)));
}

}  // namespace
}  // namespace flamed::test
