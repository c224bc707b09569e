// SPDX-License-Identifier: Apache-2.0
//
// The loop of flamed-push with a daemon, a receiver and a clock of the test's.
#include "push/pusher.h"

#include <algorithm>
#include <deque>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "api/question/push_report.h"
#include "api/text/time_expression.h"
#include "push/report.h"
#include "test/catch.h"
#include "test/support/manual_clock.h"

namespace flamed::push {
namespace {

constexpr std::int64_t kStartMs = 1'769'868'000'000;  // a whole minute
constexpr std::uint64_t kPerSecond = 100;             // samples

/// A daemon that samples all the time, and keeps single samples for so long.
struct World {
  World() {
    receiver.name = "engine";
    receiver.sends_wait = false;
    receiver.origin = "http://h";
  }

  LocalAnswer ask(const std::string& target) {
    asked.push_back(target);
    if (daemon_is_down) return {0, "", "", "", "Connection refused"};
    std::smatch found;
    REQUIRE(std::regex_search(target, found, std::regex("from=([0-9]+)&to=([0-9]+)")));
    std::int64_t from = std::stoll(found[1]), to = std::stoll(found[2]);
    if (from < now_ms() - singles_ms) {
      from -= from % kMinuteMs;
      to = (to + kMinuteMs - 1) / kMinuteMs * kMinuteMs;
    }
    const std::uint64_t samples = static_cast<std::uint64_t>(to - from) / 1000 * kPerSecond;
    LocalAnswer answer{200, "", "", "", ""};
    if (target.starts_with("/timeline")) {
      answer.body = R"({"samples": )" + std::to_string(samples) + "}";
      return answer;
    }
    answer.window = api::format_time({from * kNsPerMs}) + "/" + api::format_time({to * kNsPerMs});
    answer.quality = "samples=" + std::to_string(samples) + ", truncated=0, lost=0";
    answer.body = std::to_string(from) + "-" + std::to_string(to) + ":" + std::to_string(samples);
    return answer;
  }

  Answer send(const std::string& body) {
    sent.push_back({now_ms(), body});
    Answer answer = answers.empty() ? Answer{200, "application/proto", "", "", ""} : answers.front();
    if (!answers.empty()) answers.pop_front();
    if (answer.status / 100 == 2) received[body] += 1;
    return answer;
  }

  /// Samples of all that was taken.
  [[nodiscard]] std::uint64_t taken() const {
    std::uint64_t sum = 0;
    for (const auto& [body, times] : received) sum += times * std::stoull(body.substr(body.find(':') + 1));
    return sum;
  }

  /// Runs for so long, in a program of its own.
  Figures run_for(std::int64_t ms) {
    const std::int64_t end_ms = now_ms() + ms;
    Pusher pusher(receiver, {clock,
                             [&](std::int64_t ns) {
                               clock.advance_ns(std::max<std::int64_t>(ns, 1));
                               return now_ms() < end_ms;
                             },
                             [&](const std::string& target) { return ask(target); },
                             [&](const Headers&, const std::string& body) { return send(body); },
                             [&](const std::string& name) {
                               const auto mark = marks.find(name);
                               return mark == marks.end() ? std::optional<Mark>() : std::optional(mark->second);
                             },
                             [&](const std::string& name, const Mark& mark) { marks[name] = mark; }, [] { return 0.5; },
                             [&](const std::string& line) { log += line + "\n"; }});
    pusher.run();
    return pusher.figures().front();
  }

  [[nodiscard]] std::int64_t now_ms() const { return clock.wall().ns / kNsPerMs; }
  [[nodiscard]] std::uint64_t due() const {
    return static_cast<std::uint64_t>(marks.at("engine.cpu").until_ms - kStartMs) / 1000 * kPerSecond;
  }

  ManualClock clock{{kNsPerMinute}, {(kStartMs + 5'000) * kNsPerMs}};  // so that it begins with kStartMs
  Receiver receiver;
  std::int64_t singles_ms = 3'600'000;
  bool daemon_is_down = false;
  std::deque<Answer> answers;  ///< the next ones; then it accepts
  std::vector<std::string> asked;
  struct Sent {
    std::int64_t time_ms;
    std::string body;
  };
  std::vector<Sent> sent;
  std::map<std::string, std::uint64_t> received;
  std::map<std::string, Mark> marks;
  std::string log;
};

std::uint64_t dropped(const Figures& figures, Drop reason) { return figures.dropped[static_cast<std::size_t>(reason)]; }

TEST_CASE("everything is sent once, every interval") {
  World world;
  const Figures figures = world.run_for(300'000);
  CHECK(world.sent.size() == 19);
  CHECK(world.taken() == world.due());
  CHECK(figures.samples == world.taken());
  CHECK(figures.outcome == "accepted");
  CHECK(world.log == "engine: accepted\n");
  CHECK(std::all_of(world.received.begin(), world.received.end(), [](const auto& each) { return each.second == 1; }));
}

TEST_CASE("a receiver that was down for ten minutes gets all of them, the same bytes again, at a bounded rate") {
  World world;
  for (int i = 0; i < 100; ++i) world.answers.push_back({0, "", "", "", "Connection refused"});
  static_cast<void>(world.run_for(600'000));
  REQUIRE(world.received.empty());
  // All tries were of the first stretch, with growing pauses.
  CHECK(std::all_of(world.sent.begin(), world.sent.end(),
                    [&](const auto& each) { return each.body == world.sent[0].body; }));
  CHECK(world.sent[1].time_ms - world.sent[0].time_ms == 1000);
  CHECK(world.sent[2].time_ms - world.sent[1].time_ms == 2000);
  CHECK(world.sent.back().time_ms - world.sent[world.sent.size() - 2].time_ms == 60'000);

  world.answers.clear();
  const std::size_t before = world.sent.size();
  const Figures figures = world.run_for(300'000);
  CHECK(world.taken() == world.due());
  CHECK(world.now_ms() - world.marks.at("engine.cpu").until_ms < 21'000);
  for (std::size_t i = before + 1; i < world.sent.size(); ++i) {
    CHECK(world.sent[i].time_ms - world.sent[i - 1].time_ms >= 3'750);
  }
  CHECK(figures.dropped == std::array<std::uint64_t, kDrops>{});
}

TEST_CASE("with minutes alone left, all is received or counted as dropped, to the sample") {
  World world;
  static_cast<void>(world.run_for(45'000));
  REQUIRE(world.due() == 3000);
  world.singles_ms = 120'000;
  for (int i = 0; i < 100; ++i) world.answers.push_back({503, "", "", "", ""});
  Figures figures = world.run_for(600'000);
  const std::uint64_t dropped_before = dropped(figures, Drop::kCutMinute);
  world.answers.clear();
  figures = world.run_for(600'000);
  const std::uint64_t cut = dropped_before + dropped(figures, Drop::kCutMinute);
  CHECK(cut == 3000);
  CHECK(world.taken() + cut == world.due());
}

TEST_CASE("an answer that asks to wait is waited for") {
  World world;
  world.answers.push_back({429, "", "100", "", ""});
  const Figures figures = world.run_for(200'000);
  CHECK(world.sent[1].time_ms - world.sent[0].time_ms == 100'000);
  CHECK(world.sent[1].body == world.sent[0].body);
  CHECK(figures.resent == 1);
  CHECK(figures.outcome == "accepted");
  CHECK(world.taken() == world.due());
}

TEST_CASE("what is refused or not understood is dropped, counted, and not sent again") {
  World world;
  world.answers = {{500, "text/plain", "", "boom", ""},
                   {400, "", "", "", ""},
                   {302, "", "", "", ""},
                   {200, "text/html", "", "<html>", ""}};
  const Figures figures = world.run_for(120'000);
  CHECK(dropped(figures, Drop::kRefused) == 3 * 15 * kPerSecond);
  CHECK(dropped(figures, Drop::kMisunderstood) == 15 * kPerSecond);
  CHECK(figures.samples + 4 * 15 * kPerSecond == world.due());
  std::map<std::string, int> times;
  for (const auto& each : world.sent) ++times[each.body];
  CHECK(std::all_of(times.begin(), times.end(), [](const auto& each) { return each.second == 1; }));
  CHECK(world.log ==
        "engine: refused 500: boom\nengine: refused 400\nengine: refused 302\n"
        "engine: misunderstood: content type 'text/html', <html>\nengine: accepted\n");
}

TEST_CASE("what is too old before the receiver answers again is dropped and counted") {
  World world;
  world.receiver.max_age_ns = 5 * kNsPerMinute;
  for (int i = 0; i < 1000; ++i) world.answers.push_back({503, "", "", "", ""});
  Figures figures = world.run_for(1'200'000);
  CHECK(world.taken() == 0);
  CHECK(figures.outcome == "unavailable");
  CHECK(dropped(figures, Drop::kTooOld) == world.due());
  CHECK(world.due() >= 800 * kPerSecond);
}

TEST_CASE("while the daemon is down nothing is lost") {
  World world;
  static_cast<void>(world.run_for(60'000));
  world.daemon_is_down = true;
  static_cast<void>(world.run_for(120'000));
  world.daemon_is_down = false;
  const Figures figures = world.run_for(180'000);
  CHECK(world.taken() == world.due());
  CHECK(figures.dropped == std::array<std::uint64_t, kDrops>{});
  CHECK(world.log.find("engine: no answer of flamed: Connection refused\n") != std::string::npos);
}

TEST_CASE("waiting time is sent by the minute, beside CPU time") {
  World world;
  world.receiver.sends_wait = true;
  static_cast<void>(world.run_for(200'000));
  const auto waits = std::count_if(world.asked.begin(), world.asked.end(), [](const std::string& target) {
    return target.find("measure=wait") != std::string::npos;
  });
  CHECK(waits == 2);
  CHECK(world.marks.at("engine.wait").until_ms == kStartMs + 2 * kMinuteMs);
}

TEST_CASE("selection and labels are asked of the daemon, and credentials get in no log") {
  World world;
  world.receiver.selection = "&unit=a.service&label=env%3Dprod";
  world.receiver.max_age_ns = 5 * kNsPerMinute;
  world.receiver.user = "user";
  world.receiver.password.text = "s3cret";
  world.receiver.headers = {{"X-Key", {"k3y", ""}}};
  world.marks["engine.cpu"] = {kStartMs - 3'600'000, 0};
  world.answers = {{500, "", "", "you sent dXNlcjpzM2NyZXQ=", ""},
                   {400, "", "", "you sent k3y", ""},
                   {403, "", "", "you sent s3cret", ""},
                   {401, "", "", "a\nline \x1b[31m", ""}};
  static_cast<void>(world.run_for(30'000));
  CHECK(world.asked[0].starts_with("/timeline?step=1d&measure=cpu&"));
  CHECK(world.asked[0].ends_with("&unit=a.service"));
  CHECK(world.asked[1].starts_with("/profile?format=pyroscope&measure=cpu&naming=quick&"));
  CHECK(world.asked[1].ends_with("&unit=a.service&label=env%3Dprod"));
  CHECK(
      world.log.starts_with("engine: refused 500: (not shown: it has credentials)\n"
                            "engine: refused 400: (not shown: it has credentials)\n"
                            "engine: refused 403: (not shown: it has credentials)\n"
                            "engine: refused 401: a line  [31m\n"));
}

TEST_CASE("the daemon takes the report") {
  Figures figures;
  figures.measure = "cpu";
  figures.outcome = "partly";
  figures.status = 200;
  figures.until_ms = kStartMs;
  figures.samples = 7;
  figures.dropped = {1, 2, 3, 4};
  const auto parsed = api::parse_push_report(report(15'000, 123, std::vector<ReceiverFigures>{{"engine", {figures}}}));
  REQUIRE(std::holds_alternative<api::PushReport>(parsed));
  const auto& told = std::get<api::PushReport>(parsed);
  CHECK(told.cpu_ns == 123);
  REQUIRE(told.streams.size() == 1);
  CHECK(told.streams[0].outcome == api::PushOutcome::kPartly);
  CHECK(told.streams[0].samples == 7);
  CHECK(told.streams[0].dropped == std::array<std::uint64_t, 4>{1, 2, 3, 4});
}

}  // namespace
}  // namespace flamed::push
