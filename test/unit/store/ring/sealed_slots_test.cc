// SPDX-License-Identifier: Apache-2.0
#include "store/ring/sealed_slots.h"

#include <memory>
#include <vector>

#include "test/catch.h"

namespace flamed::store {
namespace {

/// Slot `sequence` with that many stacks of one thread, each seen once and logged.
SealedSlot slot_of(std::uint32_t sequence) {
  std::vector<HistogramEntry> rows;
  std::vector<LoggedSample> samples;
  for (std::uint32_t i = 0; i < sequence; ++i) {
    rows.push_back({7, StackRef{StackId{i + 1}}.key(), 1});
    samples.push_back({{i}, i, 0});
  }
  Slot slot;
  slot.sequence = sequence;
  slot.histogram = Histogram(rows);
  return {std::make_shared<const Slot>(std::move(slot)), std::make_shared<const SampleLog>(std::move(samples))};
}

struct Filled {
  Filled() {
    for (std::uint32_t sequence = 1; sequence <= 3; ++sequence) slots.push(slot_of(sequence));
  }
  Budget budget{1U << 20};
  Budget log_budget{1U << 20};
  SealedSlots slots{budget, log_budget};
};

}  // namespace

TEST_CASE("sealed slots take what they are, and give all of it back when they go") {
  Filled t;
  CHECK(t.slots.entry_count() == 1 + 2 + 3);
  CHECK(t.slots.logged_samples() == 1 + 2 + 3);
  CHECK(t.budget.used_bytes() == t.slots.bytes());
  t.slots.drop_oldest();
  CHECK(t.slots.oldest().sequence == 2);
  CHECK(t.slots.entry_count() == 2 + 3);
  while (!t.slots.empty()) t.slots.drop_oldest();
  CHECK(t.slots.bytes() == 0);
  CHECK(t.slots.logged_samples() == 0);
  CHECK(t.budget.used_bytes() == 0);
  CHECK(t.log_budget.used_bytes() == 0);
}

TEST_CASE("logs go oldest first, also after slots went whose logs had gone before") {
  Filled t;
  CHECK(t.slots.drop_oldest_log());
  CHECK(t.slots[0].log == nullptr);
  CHECK(t.slots.logged_samples() == 2 + 3);
  t.slots.drop_oldest();
  CHECK(t.slots.drop_oldest_log());
  CHECK(t.slots[0].log == nullptr);
  CHECK(t.slots[1].log != nullptr);
  CHECK(t.slots.drop_oldest_log());
  CHECK_FALSE(t.slots.drop_oldest_log());
  CHECK(t.log_budget.used_bytes() == 0);
  CHECK(t.slots.entry_count() == 2 + 3);
}

TEST_CASE("what takes a slot's place finds the slot's bytes free") {
  Filled t;
  const std::size_t before = t.budget.used_bytes();
  const std::size_t bytes = t.slots[1].slot->bytes();
  t.slots.replace(1, [&](const SealedSlot& old) {
    CHECK(old.slot->sequence == 2);
    CHECK(t.budget.used_bytes() == before - bytes);
    return slot_of(1);
  });
  CHECK(t.slots.entry_count() == 1 + 1 + 3);
  CHECK(t.slots.logged_samples() == 1 + 1 + 3);
  CHECK(t.budget.used_bytes() == before - bytes + slot_of(1).slot->bytes());
}

TEST_CASE("a view serves until something changes, and stays as it was") {
  Filled t;
  const auto view = t.slots.view();
  CHECK(t.slots.view() == view);
  t.slots.drop_oldest_log();
  const auto without_log = t.slots.view();
  CHECK(without_log != view);
  t.slots.drop_oldest();
  CHECK(t.slots.view()->size() == 2);
  t.slots.push(slot_of(4));
  CHECK(t.slots.view()->back().slot->sequence == 4);
  REQUIRE(view->size() == 3);
  CHECK(view->front().log != nullptr);
  CHECK(without_log->front().log == nullptr);
}

}  // namespace flamed::store
