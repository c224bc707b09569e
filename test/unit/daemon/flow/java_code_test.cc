// SPDX-License-Identifier: Apache-2.0
#include "daemon/flow/java_code.h"

#include <cstdint>
#include <vector>

#include "symbolizer/names/runtime_functions.h"
#include "test/catch.h"

namespace flamed::daemon {
namespace {

using Knowledge = JavaCode::Knowledge;
using symbolizer::HotSpotNamedPlace;

constexpr std::uint64_t kCode = 0x7f0000001000;
constexpr std::uint64_t kPlace = kCode + 0x40;

constexpr MonotonicTime at(std::int64_t second) { return {second * kNsPerSecond}; }

symbolizer::HotSpotQuestion question_for(const JavaCode& code, std::uint64_t address, MonotonicTime time) {
  JavaCode::Question question(code);
  question.add(address, time);
  return question.take();
}

/// A reading that began at `began` and found this number of compilation at kCode.
void answer(JavaCode& code, const symbolizer::HotSpotQuestion& question, MonotonicTime began,
            std::uint32_t compile_id) {
  symbolizer::HotSpotNames names;
  names.functions = {{"Main.inlined", "Main.java"}, {"Main.run", "Main.java"}};
  names.frames = {{0, compile_id}, {1, 5}};
  for (std::size_t i = 0; i < question.places.size(); ++i)
    names.places.push_back({{kCode, 256, compile_id}, HotSpotNamedPlace::Kind::kMethod, 0, 2, 0});
  for (const runtimes::HotSpotKnownBlob& known : question.known)
    names.is_there.push_back(known.compile_id == compile_id ? 1 : 0);
  code.learn(question, names, began, [](const symbolizer::HotSpotFunction& function, std::uint32_t line) {
    return symbolizer::RuntimeFunctions::frame_of(function.name == "Main.run" ? 1 : 2, line);
  });
}

TEST_CASE("code that was never read is asked for, and then known with what it has inlined, innermost first") {
  JavaCode code;
  const symbolizer::HotSpotQuestion question = question_for(code, kPlace, at(1));
  CHECK(question.places == std::vector<std::uint64_t>{kPlace});
  CHECK(question.known.empty());
  answer(code, question, at(2), 7);
  REQUIRE(code.knowledge_of(kPlace, at(1)) == Knowledge::kKnown);
  const JavaCode::Place& place = code.at(kPlace);
  REQUIRE(place.frames.size() == 2);
  CHECK(place.frames[0] == symbolizer::RuntimeFunctions::frame_of(2, 7));
  CHECK(place.frames[1] == symbolizer::RuntimeFunctions::frame_of(1, 5));
}

TEST_CASE("a sample after the last reading waits for another one, which asks only whether the code is there") {
  JavaCode code;
  answer(code, question_for(code, kPlace, at(1)), at(2), 7);
  CHECK(code.knowledge_of(kPlace, at(3)) == Knowledge::kNone);
  CHECK(code.knowledge_of(kPlace, at(3), true) == Knowledge::kKnown);
  const symbolizer::HotSpotQuestion question = question_for(code, kPlace, at(3));
  CHECK(question.places.empty());
  REQUIRE(question.known.size() == 1);
  CHECK(question.known[0].compile_id == 7);
  answer(code, question, at(4), 7);
  CHECK(code.knowledge_of(kPlace, at(3)) == Knowledge::kKnown);
  CHECK(question_for(code, kPlace, at(3)).known.empty());
}

TEST_CASE("a sample between two readings that found different code has no name") {
  JavaCode code;
  answer(code, question_for(code, kPlace, at(1)), at(2), 7);
  answer(code, question_for(code, kPlace, at(3)), at(4), 8);
  // Which code is there now is not known.
  CHECK(code.knowledge_of(kPlace, at(3)) == Knowledge::kNone);
  answer(code, question_for(code, kPlace, at(3)), at(5), 8);
  CHECK(code.knowledge_of(kPlace, at(3)) == Knowledge::kReplaced);
  CHECK(code.knowledge_of(kPlace, at(3), true) == Knowledge::kReplaced);
  REQUIRE(code.knowledge_of(kPlace, at(5)) == Knowledge::kKnown);
  CHECK(code.at(kPlace).compile_id == 8);
}

TEST_CASE("new code at a known address is noticed by a question for another place of it") {
  JavaCode code;
  answer(code, question_for(code, kPlace, at(1)), at(2), 7);
  answer(code, question_for(code, kPlace + 8, at(3)), at(4), 8);
  CHECK(code.knowledge_of(kPlace + 8, at(3)) == Knowledge::kReplaced);
  CHECK(code.knowledge_of(kPlace + 8, at(4)) == Knowledge::kKnown);
  CHECK(code.knowledge_of(kPlace, at(4)) == Knowledge::kNone);
  CHECK(question_for(code, kPlace, at(5)).places == std::vector<std::uint64_t>{kPlace});
}

symbolizer::HotSpotQuestion question_for(const JavaCode& code, const runtimes::HotSpotInterpreted& method,
                                         MonotonicTime time) {
  JavaCode::Question question(code);
  question.add(method, time);
  question.add(method, time);
  return question.take();
}

/// A reading that began at `began`, and found this function, or nothing.
void answer_interpreted(JavaCode& code, const symbolizer::HotSpotQuestion& question, MonotonicTime began,
                        std::uint32_t function) {
  symbolizer::HotSpotNames names;
  names.functions = {{"Main.run", "Main.java"}};
  names.interpreted.assign(question.interpreted.size(), {function, 12});
  code.learn(question, names, began, [](const symbolizer::HotSpotFunction&, std::uint32_t line) {
    return symbolizer::RuntimeFunctions::frame_of(1, line);
  });
}

TEST_CASE("an interpreted method with a check word is asked for once, and known from then on") {
  const runtimes::HotSpotInterpreted method{0x7f0000002000, 0x55, 3};
  JavaCode code;
  const symbolizer::HotSpotQuestion question = question_for(code, method, at(1));
  CHECK(question.interpreted == std::vector<runtimes::HotSpotInterpreted>{method});
  answer_interpreted(code, question, at(2), 0);
  CHECK(code.knowledge_of(method, at(1)) == Knowledge::kKnown);
  CHECK(code.knowledge_of(method, at(9)) == Knowledge::kKnown);
  CHECK(code.at(method) == symbolizer::RuntimeFunctions::frame_of(1, 12));
  CHECK(question_for(code, method, at(9)).interpreted.empty());
  CHECK(code.knowledge_of(runtimes::HotSpotInterpreted{0x7f0000002000, 0x56, 3}, at(1)) == Knowledge::kNone);
  CHECK(code.places() == 1);
  std::vector<Frame> frames;
  code.append_frames(frames);
  CHECK(frames.size() == 1);
  code.clear();
  CHECK(code.knowledge_of(method, at(1)) == Knowledge::kNone);
}

TEST_CASE("an interpreted method without a check word counts for samples before the reading that found it") {
  const runtimes::HotSpotInterpreted method{0x7f0000002000, 0, 0x7f0000003000};
  JavaCode code;
  answer_interpreted(code, question_for(code, method, at(1)), at(2), 0);
  CHECK(code.knowledge_of(method, at(2)) == Knowledge::kKnown);
  CHECK(code.knowledge_of(method, at(3)) == Knowledge::kNone);
  CHECK(code.knowledge_of(method, at(3), true) == Knowledge::kKnown);
  const symbolizer::HotSpotQuestion again = question_for(code, method, at(3));
  REQUIRE(again.interpreted.size() == 1);
  answer_interpreted(code, again, at(4), symbolizer::HotSpotFrame::kUnreadable);
  CHECK(code.knowledge_of(method, at(3)) == Knowledge::kKnown);
  CHECK_FALSE(code.at(method));
}

TEST_CASE("an interpreted method that could not be read is asked for again a second later, a few times") {
  const runtimes::HotSpotInterpreted method{0x7f0000002000, 0x55, 3};
  JavaCode code;
  answer_interpreted(code, question_for(code, method, at(1)), at(2), symbolizer::HotSpotFrame::kUnreadable);
  CHECK(code.knowledge_of(method, at(1)) == Knowledge::kKnown);
  CHECK(code.knowledge_of(method, at(2)) == Knowledge::kKnown);
  CHECK(code.knowledge_of(method, at(3)) == Knowledge::kNone);
  CHECK(code.knowledge_of(method, at(3), true) == Knowledge::kKnown);
  JavaCode later = code;
  answer_interpreted(later, question_for(later, method, at(3)), at(4), 0);
  CHECK(later.at(method) == symbolizer::RuntimeFunctions::frame_of(1, 12));
  CHECK(question_for(later, method, at(9)).interpreted.empty());
  int asked = 1;
  for (int now = 3; now < 100; now += 2) {
    const symbolizer::HotSpotQuestion question = question_for(code, method, at(now));
    if (question.interpreted.empty()) continue;
    ++asked;
    answer_interpreted(code, question, at(now + 1), symbolizer::HotSpotFrame::kUnreadable);
  }
  CHECK(asked == 8);
}

TEST_CASE("an address that is no code of the JVM is known as such") {
  JavaCode code;
  const symbolizer::HotSpotQuestion question = question_for(code, kPlace, at(1));
  symbolizer::HotSpotNames names;
  names.places.resize(1);
  code.learn(question, names, at(2), [](const auto&, std::uint32_t) { return Frame{}; });
  REQUIRE(code.knowledge_of(kPlace, at(9)) == Knowledge::kKnown);
  CHECK(code.at(kPlace).kind == JavaCode::Kind::kOther);
}

}  // namespace
}  // namespace flamed::daemon
