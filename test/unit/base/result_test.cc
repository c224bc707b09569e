// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include <memory>

#include "test/catch.h"

namespace flamed {
namespace {

TEST_CASE("an error gains context on the way up and keeps its errno") {
  Error error = Error::from_errno("perf_event_open on CPU 3", EACCES).with_context("cannot start sampler");
  CHECK(error.message() == "cannot start sampler: perf_event_open on CPU 3: Permission denied");
  CHECK(error.code() == EACCES);
}

TEST_CASE("a result's value can be moved out once") {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(7));
  REQUIRE(result.ok());
  std::unique_ptr<int> taken = std::move(result).value();
  CHECK(*taken == 7);
}

TEST_CASE("a status is success until it gets an error") {
  Status status;
  CHECK(status.ok());
  status = Error("no");
  CHECK_FALSE(status.ok());
  CHECK(status.error().message() == "no");
}

}  // namespace
}  // namespace flamed
