// SPDX-License-Identifier: Apache-2.0
#include "base/handle.h"

#include "test/catch.h"

namespace flamed {
namespace {

int destroyed = 0;
void destroy(int) { ++destroyed; }
using Counted = Handle<int, destroy, -1>;

TEST_CASE("a handle destroys what it owns exactly once") {
  destroyed = 0;
  {
    Counted first(1);
    Counted second(std::move(first));
    CHECK_FALSE(first);  // NOLINT(bugprone-use-after-move): what a moved-from handle holds is the point
    CHECK(second.get() == 1);
  }
  CHECK(destroyed == 1);
}

TEST_CASE("assigning to a handle destroys what it held") {
  destroyed = 0;
  Counted handle(1);
  handle = Counted(2);
  CHECK(destroyed == 1);
  CHECK(handle.release() == 2);
  CHECK(destroyed == 1);
}

}  // namespace
}  // namespace flamed
