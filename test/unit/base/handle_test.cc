// SPDX-License-Identifier: Apache-2.0
#include "base/handle.h"

#include "test/catch.h"

namespace flamed {
namespace {

int destroyed = 0;
void destroy(int) { ++destroyed; }
using Counted = Handle<int, destroy, -1>;

TEST_CASE("a handle destroys its object exactly once") {
  destroyed = 0;
  {
    Counted first(1);
    Counted second(std::move(first));
    CHECK_FALSE(first);  // NOLINT(bugprone-use-after-move): the state of a moved-from handle is under test
    CHECK(second.get() == 1);
  }
  CHECK(destroyed == 1);
}

TEST_CASE("an assignment to a handle destroys the object before") {
  destroyed = 0;
  Counted handle(1);
  handle = Counted(2);
  CHECK(destroyed == 1);
  CHECK(handle.release() == 2);
  CHECK(destroyed == 1);
}

}  // namespace
}  // namespace flamed
