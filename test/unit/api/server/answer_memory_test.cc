// SPDX-License-Identifier: Apache-2.0
#include "api/server/answer_memory.h"

#include <string>
#include <utility>

#include "test/catch.h"

namespace flamed::api {
namespace {

constexpr UserKey kAlice = 1000;
constexpr UserKey kBob = 1001;
constexpr UserKey kCarol = 1002;
constexpr UserKey kDave = 1003;

TEST_CASE("a user whose unread answers fill half of the room has to wait, and others need not") {
  AnswerMemory memory(100, [] {});
  const SharedBytes small = memory.count(std::string(49, 'x'), kAlice);
  CHECK(memory.has_room(kAlice));
  const SharedBytes more = memory.count("x", kAlice);
  CHECK_FALSE(memory.has_room(kAlice));
  CHECK(memory.has_room(kBob));
}

TEST_CASE(
    "once the room is used up, a user with answers waits, one without may begin one of up to that size, and root never "
    "waits") {
  AnswerMemory memory(100, [] {});
  const SharedBytes alices = memory.count(std::string(60, 'x'), kAlice);
  const SharedBytes bobs = memory.count(std::string(40, 'x'), kBob);
  CHECK_FALSE(memory.has_room(kBob));
  CHECK(memory.has_room(kCarol));
  const SharedBytes carols = memory.count(std::string(100, 'x'), kCarol);
  CHECK_FALSE(memory.has_room(kDave));
  CHECK(memory.has_room(kRootKey));
  const SharedBytes roots = memory.count(std::string(50, 'x'), kRootKey);
  CHECK_FALSE(memory.has_room(kRootKey));
}

TEST_CASE("a shared answer counts once, until its last client has it, and then waiting requests are notified") {
  int told = 0;
  AnswerMemory memory(100, [&] { ++told; });
  SharedBytes answer = memory.count(std::string(50, 'x'), kAlice);
  SharedBytes copy = answer;
  const SharedBytes bobs = memory.count(std::string(49, 'x'), kBob);
  CHECK(memory.has_room(kCarol));
  answer = {};
  CHECK_FALSE(memory.has_room(kAlice));
  CHECK(told == 0);
  copy = {};
  CHECK(memory.has_room(kAlice));
  CHECK(told == 1);
}

TEST_CASE("nothing is notified where no request had to wait") {
  int told = 0;
  AnswerMemory memory(100, [&] { ++told; });
  { const SharedBytes answer = memory.count("an answer", kAlice); }
  CHECK(told == 0);
}

TEST_CASE("a counted answer may outlive the account") {
  SharedBytes answer;
  {
    AnswerMemory memory(100, [] {});
    answer = memory.count("an answer", kAlice);
  }
  CHECK(answer.view() == "an answer");
}

}  // namespace
}  // namespace flamed::api
