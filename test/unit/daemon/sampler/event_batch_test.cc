// SPDX-License-Identifier: Apache-2.0
#include "daemon/sampler/event_batch.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "test/catch.h"

namespace flamed::daemon {
namespace {

void append(EventBatch& batch, std::int64_t time_ns, std::string_view text, RecordKind kind = RecordKind::kComm) {
  batch.append({kind, false, {time_ns}, std::as_bytes(std::span(text.data(), text.size()))});
}

std::string text_of(const EventBatch& batch, const EventBatch::Event& event) {
  const auto body = batch.body(event);
  return {reinterpret_cast<const char*>(body.data()), body.size()};
}

std::vector<std::string> texts(const EventBatch& batch) {
  std::vector<std::string> all;
  for (const EventBatch::Event& event : batch.events()) all.push_back(text_of(batch, event));
  return all;
}

TEST_CASE("events come out in the order of their time") {
  EventBatch batch;
  EventBatch later;
  append(batch, 30, "c");
  append(batch, 10, "a");
  append(batch, 20, "b");
  batch.sort_and_split({100}, later);
  CHECK(texts(batch) == std::vector<std::string>{"a", "b", "c"});
  CHECK(later.empty());
}

TEST_CASE("processes with skipped records are in order, too, and those muted after the cutoff are in the next batch") {
  EventBatch batch;
  EventBatch later;
  batch.muted = {{3, 0, {101}, 1, true}, {2, 0, {100}, 1, true}, {1, 0, {40}, 1, true}};
  batch.sort_and_split({100}, later);
  REQUIRE(batch.muted.size() == 2);
  CHECK(batch.muted[0].pid == 1);
  CHECK(batch.muted[1].pid == 2);
  REQUIRE(later.muted.size() == 1);
  CHECK(later.muted[0].pid == 3);
  CHECK_FALSE(later.is_uneventful());
}

TEST_CASE("events of the same time keep the order in which they came") {
  EventBatch batch;
  EventBatch later;
  std::vector<std::string> expected;
  for (int i = 0; i < 100; ++i) {
    expected.push_back(std::to_string(i));
    append(batch, 10, expected.back());
  }
  batch.sort_and_split({100}, later);
  CHECK(texts(batch) == expected);
}

TEST_CASE("an event later than the cutoff is carried over, one at the cutoff is not") {
  EventBatch batch;
  EventBatch later;
  append(batch, 12, "after");
  append(batch, 10, "at", RecordKind::kSample);
  append(batch, 11, "just after", RecordKind::kFork);
  append(batch, 9, "before");
  batch.sort_and_split({10}, later);
  CHECK(texts(batch) == std::vector<std::string>{"before", "at"});
  CHECK(texts(later) == std::vector<std::string>{"just after", "after"});
  CHECK(batch.events()[1].kind == RecordKind::kSample);
  CHECK(later.events()[0].kind == RecordKind::kFork);
  CHECK(later.events()[0].time == MonotonicTime{11});

  append(later, 8, "late");
  EventBatch next;
  later.sort_and_split({100}, next);
  CHECK(texts(later) == std::vector<std::string>{"late", "just after", "after"});
}

TEST_CASE("an exec that is carried over is still an exec") {
  EventBatch batch;
  EventBatch later;
  batch.append({RecordKind::kComm, true, {20}, {}});
  batch.sort_and_split({10}, later);
  REQUIRE(later.events().size() == 1);
  CHECK(later.events()[0].comm_is_exec);
}

TEST_CASE("bodies of any length are aligned to 8 bytes and copied unchanged") {
  EventBatch batch;
  std::vector<std::string> expected;
  for (std::size_t size = 0; size < 40; ++size) {
    expected.emplace_back(size, static_cast<char>('a' + size % 26));
    append(batch, static_cast<std::int64_t>(size), expected.back());
  }
  CHECK(texts(batch) == expected);
  for (const EventBatch::Event& event : batch.events()) {
    CHECK(reinterpret_cast<std::uintptr_t>(batch.body(event).data()) % 8 == 0);
  }
}

TEST_CASE("a cleared batch is empty, has no counts, and reuses its memory") {
  EventBatch batch;
  for (int i = 0; i < 1000; ++i) append(batch, i, "some text of a body");
  batch.counts.taken = 5;
  batch.drained_at = {7};
  batch.malformed = 1;
  batch.has_side_band = false;
  batch.side_band_lost_from = MonotonicTime{3};
  const auto* events = batch.events().data();
  const auto* memory = batch.body(batch.events().front()).data();
  batch.clear();
  CHECK(batch.empty());
  CHECK(batch.counts.taken == 0);
  CHECK(batch.drained_at == MonotonicTime{0});
  CHECK(batch.malformed == 0);
  CHECK(batch.has_side_band);
  CHECK_FALSE(batch.side_band_lost_from);

  for (int i = 0; i < 1000; ++i) append(batch, i, "some text of a body");
  CHECK(batch.events().data() == events);
  CHECK(batch.body(batch.events().front()).data() == memory);
}

}  // namespace
}  // namespace flamed::daemon
