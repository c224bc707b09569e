// SPDX-License-Identifier: Apache-2.0
#include "store/containers/shared_value.h"

#include <memory>
#include <string>
#include <utility>

#include "test/catch.h"

namespace flamed::store {

TEST_CASE("a shared value lives until its last holder releases it") {
  const auto life = std::make_shared<int>(1);
  SharedValue<std::shared_ptr<int>> first{life};
  SharedValue<std::shared_ptr<int>> second = first;
  CHECK(first.get() == second.get());
  CHECK_FALSE(first.is_only_holder());
  first = nullptr;
  CHECK(second.is_only_holder());
  CHECK(life.use_count() == 2);
  const SharedValue<std::shared_ptr<int>> third = std::move(second);
  CHECK(third.is_only_holder());
  CHECK(life.use_count() == 2);
}

TEST_CASE("an assignment to a shared value releases the one before") {
  const auto life = std::make_shared<int>(1);
  SharedValue<std::shared_ptr<int>> value{life};
  value = SharedValue<std::shared_ptr<int>>{std::make_shared<int>(2)};
  CHECK(life.use_count() == 1);
  CHECK(**value == 2);
}

TEST_CASE("an empty shared value is false") {
  const SharedValue<std::string> none;
  CHECK(none == nullptr);
  CHECK(none.get() == nullptr);
  CHECK_FALSE(static_cast<bool>(none));
  CHECK_FALSE(none.is_only_holder());
}

}  // namespace flamed::store
