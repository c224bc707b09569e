// SPDX-License-Identifier: Apache-2.0
#include "base/bounded_queue.h"

#include <atomic>
#include <memory>
#include <thread>

#include "test/catch.h"

namespace flamed {
namespace {

TEST_CASE("a full queue refuses a value, counts it, and leaves it with the caller") {
  BoundedQueue<std::unique_ptr<int>> queue(1);
  CHECK(queue.try_push(std::make_unique<int>(1)));
  auto second = std::make_unique<int>(2);
  CHECK_FALSE(queue.try_push(std::move(second)));
  CHECK(second != nullptr);  // NOLINT(bugprone-use-after-move): a refused value must still be there
  CHECK(queue.refused() == 1);
}

TEST_CASE("values come out in the order they went in") {
  BoundedQueue<int> queue(3);
  for (int i : {1, 2, 3}) CHECK(queue.try_push(int{i}));
  CHECK(queue.try_pop() == 1);
  CHECK(queue.try_pop() == 2);
  CHECK(queue.try_pop() == 3);
  CHECK_FALSE(queue.try_pop().has_value());
}

TEST_CASE("a value pushed to the front comes out first, and is bounded as well") {
  BoundedQueue<int> queue(3);
  CHECK(queue.try_push(1));
  CHECK(queue.try_push(2));
  CHECK(queue.try_push_front(3));
  CHECK_FALSE(queue.try_push_front(4));
  CHECK(queue.refused() == 1);
  CHECK(queue.try_pop() == 3);
  CHECK(queue.try_pop() == 1);
  CHECK(queue.try_pop() == 2);
}

TEST_CASE("a value taken out of turn leaves the others in order and frees its place") {
  BoundedQueue<std::unique_ptr<int>> queue(4);
  for (int i = 0; i < 4; ++i) REQUIRE(queue.try_push(std::make_unique<int>(i)));
  const auto taken = queue.take_if([](const auto& value) { return *value % 2 == 1; });
  REQUIRE(taken.size() == 2);
  CHECK(*taken[0] == 1);
  CHECK(*taken[1] == 3);
  CHECK(queue.size() == 2);
  CHECK(**queue.try_pop() == 0);
  CHECK(**queue.try_pop() == 2);
  CHECK(queue.take_if([](const auto&) { return true; }).empty());
}

TEST_CASE("a waiting consumer is released by a stop request") {
  BoundedQueue<int> queue(1);
  std::optional<int> got = 1;
  std::jthread consumer([&](const std::stop_token& stop) { got = queue.pop(stop); });
  consumer.request_stop();
  consumer.join();
  CHECK_FALSE(got.has_value());
}

TEST_CASE("a consumer takes the lowest allowed value, and the oldest of equal ones") {
  BoundedQueue<int> queue(8);
  std::vector<int> taken;
  const auto pop = [&] {
    return queue.pop_lowest(
        {}, [](int value) { return value % 2 == 0 ? std::optional<std::uint64_t>(value / 10) : std::nullopt; },
        [&](int value) { taken.push_back(value); });
  };
  for (const int value : {1, 22, 14, 3, 12, 28, 2}) REQUIRE(queue.try_push(int{value}));
  for (const int value : {2, 14, 12, 22, 28}) CHECK(pop() == value);
  CHECK(taken == std::vector<int>{2, 14, 12, 22, 28});
  CHECK(queue.size() == 2);
}

TEST_CASE("a consumer waits for an allowed value, or is released by a stop request") {
  BoundedQueue<int> queue(1);
  std::atomic<bool> may = false;
  std::optional<int> got;
  const auto pop = [&](const std::stop_token& stop) {
    return queue.pop_lowest(
        stop, [&](int /*value*/) { return may ? std::optional<std::uint64_t>(0) : std::nullopt; }, [](int) {});
  };
  REQUIRE(queue.try_push(7));
  std::jthread consumer([&](const std::stop_token& stop) { got = pop(stop); });
  may = true;
  queue.look_again();
  consumer.join();
  CHECK(got == 7);

  may = false;
  REQUIRE(queue.try_push(8));
  consumer = std::jthread([&](const std::stop_token& stop) { got = pop(stop); });
  consumer.request_stop();
  consumer.join();
  CHECK_FALSE(got.has_value());
}

TEST_CASE("everything pushed by one thread reaches another") {
  BoundedQueue<int> queue(4);
  long sum = 0;
  std::jthread consumer([&](const std::stop_token& stop) {
    for (int taken = 0; taken < 1000; ++taken) sum += queue.pop(stop).value_or(0);
  });
  for (int i = 1; i <= 1000; ++i) {
    while (!queue.try_push(int{i})) std::this_thread::yield();
  }
  consumer.join();
  CHECK(sum == 500500);
}

}  // namespace
}  // namespace flamed
