// SPDX-License-Identifier: Apache-2.0
#include "api/server/fair_turns.h"

#include "test/catch.h"

namespace flamed::api {
namespace {

Peer local(uid_t user) { return {Peer::Transport::kLoopback, user}; }

TEST_CASE("users take turns, and one without an earlier request is next") {
  FairTurns turns(8);
  turns.begin(local(1000));
  turns.begin(local(1001));
  turns.begin(local(1000));
  CHECK(*turns.rank(local(1002)) < *turns.rank(local(1001)));
  for (int i = 0; i < 3; ++i) turns.end(local(1000));
  CHECK(*turns.rank(local(1002)) < *turns.rank(local(1001)));
  CHECK(*turns.rank(local(1001)) < *turns.rank(local(1000)));
  turns.begin(local(1001));
  CHECK(*turns.rank(local(1000)) < *turns.rank(local(1001)));
}

TEST_CASE("one thread is reserved for root") {
  FairTurns turns(3);
  turns.begin(local(1000));
  turns.begin(local(1001));
  CHECK_FALSE(turns.rank(local(1002)).has_value());
  CHECK_FALSE(turns.rank({Peer::Transport::kRemote, std::nullopt}).has_value());
  CHECK(turns.rank(local(0)).has_value());
  turns.begin(local(0));
  CHECK(turns.rank(local(0)).has_value());
  turns.end(local(1000));
  CHECK(turns.rank(local(1002)).has_value());
}

TEST_CASE("a single thread serves all users") {
  FairTurns turns(1);
  CHECK(turns.rank(local(1000)).has_value());
}

}  // namespace
}  // namespace flamed::api
