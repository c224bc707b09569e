// SPDX-License-Identifier: Apache-2.0
#include "api/answer/shared_answers.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "test/catch.h"
#include "test/support/manual_clock.h"

namespace flamed::api {
namespace {

constexpr std::size_t kLimitBytes = 1U << 20;
constexpr std::int64_t kMs = 1'000'000;
constexpr UserKey kAlice = 1001;

SharedAnswers::Question question_of_alice() {
  return {kAlice, {Viewer::Sees::kOwn, 1001}, "/profile?from=now-1m", "application/json", true, false};
}

SharedAnswers::Answer answer_of(std::string body, int status = 200) {
  return std::make_shared<const SharedAnswer>(SharedAnswer{{status, "text/plain", ""}, SharedBytes(std::move(body))});
}

class Fixture {
 public:
  SharedAnswers::Verdict ask(const SharedAnswers::Question& question = question_of_alice()) {
    SharedAnswers::Asker asker{{++clients_}};
    return answers.ask(question, asker, revision);
  }
  /// For a question without an answer.
  std::shared_ptr<SharedAnswers::Flight> begin(const SharedAnswers::Question& question = question_of_alice()) {
    SharedAnswers::Verdict verdict = ask(question);
    REQUIRE(verdict.flight != nullptr);
    REQUIRE(verdict.answer == nullptr);
    return verdict.flight;
  }
  void keep(const std::string& body, const SharedAnswers::Question& question = question_of_alice()) {
    REQUIRE(answers.land(begin(question), answer_of(body)).empty());
  }
  /// "": the caller is to answer the question; "...": another is answering it.
  std::string told(const SharedAnswers::Question& question = question_of_alice()) {
    const SharedAnswers::Verdict verdict = ask(question);
    if (verdict.answer != nullptr) return std::string(verdict.answer->body.view());
    return verdict.flight != nullptr ? "" : "...";
  }

  ManualClock clock{{3600 * kNsPerSecond}, {0}};
  SharedAnswers answers{clock, kLimitBytes};
  std::uint64_t revision = 1;

 private:
  std::uint64_t clients_ = 0;
};

TEST_CASE("a question that is asked while its answer is being made is not answered twice") {
  Fixture fixture;
  const auto flight = fixture.begin();
  CHECK(fixture.told() == "...");
  fixture.clock.advance_ns(kNsPerSecond);
  ++fixture.revision;
  CHECK(fixture.told() == "...");
  const auto answer = answer_of("an answer");
  const std::vector<SharedAnswers::Asker> others = fixture.answers.land(flight, answer);
  REQUIRE(others.size() == 2);
  CHECK(others[0].clients == std::vector<std::uint64_t>{2});
  CHECK(others[1].clients == std::vector<std::uint64_t>{3});
}

TEST_CASE("a request more than a second after an answer was begun starts another, and each is delivered once") {
  Fixture fixture;
  const auto slow = fixture.begin();
  CHECK(fixture.told() == "...");
  fixture.clock.advance_ns(kNsPerSecond + 1);
  const auto next = fixture.begin();
  CHECK(fixture.told() == "...");
  const bool slow_lands_first = GENERATE(true, false);
  for (const bool is_slow : {slow_lands_first, !slow_lands_first}) {
    CHECK(fixture.answers.land(is_slow ? slow : next, answer_of(is_slow ? "slow" : "next")).size() == 1);
  }
  CHECK(fixture.told() == "next");
}

TEST_CASE("how long an answer is shared, and with whom") {
  struct Case {
    std::string when;
    std::int64_t age_ns;
    bool is_stored;                             ///< something was, since the answer was begun
    std::optional<std::int64_t> renewed_at_ns;  ///< when another request started a newer one
    std::string told;
  };
  const Case wanted = GENERATE(values<Case>({
      {"at once", 0, false, {}, "kept"},
      {"after a second", kNsPerSecond, false, {}, "kept"},
      {"later", kNsPerSecond + 1, false, {}, ""},
      {"at once, but something was stored", 0, true, {}, ""},
      {"soon after something was stored, beside another", 10 * kMs, true, 10 * kMs, "kept"},
      {"while another waits for long", 5 * kNsPerSecond, true, kNsPerSecond, "kept"},
      {"while another waits for too long", 5 * kNsPerSecond + 1, true, kNsPerSecond, ""},
      {"beside another who came later", kNsPerSecond + 2, true, kNsPerSecond + 1, "..."},
  }));
  INFO(wanted.when);
  Fixture fixture;
  fixture.keep("kept");
  if (wanted.is_stored) ++fixture.revision;
  fixture.clock.advance_ns(wanted.renewed_at_ns.value_or(0));
  if (wanted.renewed_at_ns) static_cast<void>(fixture.begin());
  fixture.clock.advance_ns(wanted.age_ns - wanted.renewed_at_ns.value_or(0));
  CHECK(fixture.told() == wanted.told);
}

TEST_CASE("no request waits for the next answer to a question that many ask all the time") {
  Fixture fixture;
  const auto first = fixture.begin();
  CHECK(fixture.told() == "...");
  CHECK(fixture.answers.land(first, answer_of("first")).size() == 1);
  ++fixture.revision;

  SECTION("the request that starts the next answer is given the one before") {
    const SharedAnswers::Verdict verdict = fixture.ask();
    REQUIRE(verdict.answer != nullptr);
    CHECK(verdict.answer->body.view() == "first");
    REQUIRE(verdict.flight != nullptr);
    CHECK_FALSE(verdict.others_wait);
    CHECK(fixture.answers.land(verdict.flight, answer_of("second")).empty());
    CHECK(fixture.told() == "second");
    // No other request came while it was being made.
    ++fixture.revision;
    CHECK(fixture.told().empty());
  }
  SECTION("but not one that is more than a second old") {
    fixture.clock.advance_ns(kNsPerSecond + 1);
    CHECK(fixture.told().empty());
  }
}

TEST_CASE("the maker of an answer learns whether others wait for it") {
  Fixture fixture;
  const SharedAnswers::Verdict first = fixture.ask();
  CHECK(first.others_wait);
  static_cast<void>(fixture.answers.land(first.flight, answer_of("kept")));
  ++fixture.revision;
  fixture.clock.advance_ns(kNsPerSecond);
  const SharedAnswers::Verdict second = fixture.ask();
  CHECK_FALSE(second.others_wait);
  CHECK(fixture.told() == "kept");
  static_cast<void>(fixture.answers.land(second.flight, answer_of("kept")));
  fixture.clock.advance_ns(kNsPerSecond + 1);
  CHECK(fixture.ask().others_wait);
  CHECK(fixture.told() == "...");
}

TEST_CASE("an answer dates from when it was begun, and has nothing that was stored since") {
  Fixture fixture;
  const auto flight = fixture.begin();
  fixture.clock.advance_ns(600 * kMs);
  SECTION("its age") {
    static_cast<void>(fixture.answers.land(flight, answer_of("kept")));
    fixture.clock.advance_ns(400 * kMs);
    CHECK(fixture.told() == "kept");
    fixture.clock.advance_ns(1);
    CHECK(fixture.told().empty());
  }
  SECTION("its revision") {
    ++fixture.revision;
    static_cast<void>(fixture.answers.land(flight, answer_of("kept")));
    CHECK(fixture.told().empty());
  }
}

TEST_CASE("no answer is shared with another user, viewer, question, format or kind of connection") {
  using Change = std::function<void(SharedAnswers::Question&)>;
  const auto change = GENERATE(values<std::pair<std::string, Change>>({
      {"user", [](auto& other) { other.user = 1002; }},
      {"uid of the viewer", [](auto& other) { other.viewer.uid = 1002; }},
      {"rights of the viewer", [](auto& other) { other.viewer.sees = Viewer::Sees::kEverything; }},
      {"question", [](auto& other) { other.target += "&pid=1"; }},
      {"media type", [](auto& other) { other.accept = "text/plain"; }},
      {"compression", [](auto& other) { other.compressed = false; }},
      {"host", [](auto& other) { other.remote = true; }},
  }));
  INFO(change.first);
  Fixture fixture;
  SharedAnswers::Question other = question_of_alice();
  change.second(other);
  fixture.keep("Alice's");
  CHECK(fixture.told(other).empty());  // now being made
  CHECK(fixture.told(other) == "...");
  CHECK(fixture.told() == "Alice's");
}

TEST_CASE("a refusal goes to all who wait for it, and is not kept") {
  Fixture fixture;
  if (GENERATE(true, false)) fixture.keep("an older answer");
  fixture.clock.advance_ns(3 * kNsPerSecond);
  const auto flight = fixture.begin();
  CHECK(fixture.told() == "...");
  const bool is_made = GENERATE(true, false);
  CHECK(fixture.answers.land(flight, is_made ? answer_of("no", 404) : nullptr).size() == 1);
  CHECK(fixture.answers.bytes() == 0);
  CHECK(fixture.told().empty());
}

TEST_CASE("the kept answers are bounded, the newest stay, and one larger than the bound is shared but not kept") {
  Fixture fixture;
  const std::string body(kLimitBytes / 8, 'x');
  const auto number = [](int i) {
    SharedAnswers::Question question = question_of_alice();
    question.target = std::to_string(i);
    return question;
  };
  for (int i = 0; i < 20; ++i) {
    fixture.keep(body, number(i));
    fixture.clock.advance_ns(1);
    CHECK(fixture.answers.bytes() <= kLimitBytes);
  }
  CHECK(fixture.answers.bytes() >= kLimitBytes / 8 * 7);
  CHECK(fixture.told(number(0)).empty());
  CHECK(fixture.told(number(19)) == body);

  const auto flight = fixture.begin(number(20));
  CHECK(fixture.told(number(20)) == "...");
  CHECK(fixture.answers.land(flight, answer_of(std::string(kLimitBytes, 'x'))).size() == 1);
  CHECK(fixture.told(number(20)).empty());
  CHECK(fixture.told(number(19)) == body);
}

TEST_CASE("an outdated answer is freed by the next request, and by clear()") {
  Fixture fixture;
  auto answer = answer_of("an answer");
  const std::weak_ptr<const SharedAnswer> seen = answer;
  static_cast<void>(fixture.answers.land(fixture.begin(), std::exchange(answer, nullptr)));
  CHECK_FALSE(seen.expired());
  if (GENERATE(true, false)) {
    fixture.answers.clear();
  } else {
    fixture.clock.advance_ns(5 * kNsPerSecond + 1);
    SharedAnswers::Question other = question_of_alice();
    other.target = "/processes";
    static_cast<void>(fixture.begin(other));
  }
  CHECK(seen.expired());
  CHECK(fixture.answers.bytes() == 0);
}

TEST_CASE("waiting requests are answered even if all kept answers were cleared meanwhile") {
  Fixture fixture;
  const auto flight = fixture.begin();
  CHECK(fixture.told() == "...");
  fixture.answers.clear();
  CHECK(fixture.told() == "...");
  CHECK(fixture.answers.land(flight, answer_of("an answer")).size() == 2);
}

}  // namespace
}  // namespace flamed::api
