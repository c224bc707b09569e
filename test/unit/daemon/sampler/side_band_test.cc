// SPDX-License-Identifier: Apache-2.0
#include "daemon/sampler/side_band.h"

#include <linux/perf_event.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bpf/events.h"
#include "daemon/sampler/event_batch.h"
#include "daemon/sampler/record.h"
#include "daemon/sampler/record_ring.h"
#include "test/catch.h"
#include "test/support/captured_log.h"
#include "test/support/manual_clock.h"
#include "test/unit/daemon/sampler/record_bytes.h"

namespace flamed::daemon {
namespace {

using test::comm_record;
using test::lost_record;
using test::mapping_record;
using test::task_record;

constexpr std::int32_t kPid = 100;
constexpr std::uint32_t kUser = 1000;
constexpr int kCpu = 3;

/// A perf buffer in plain memory, without the kernel that writes it.
class PlainBuffer {
 public:
  static constexpr std::size_t kWords = 8192;

  /// At once, as far as a record may reach into the ring's end.
  void put(const std::vector<std::byte>& record) {
    auto* data = reinterpret_cast<std::byte*>(words_.data());
    for (const std::byte byte : record) data[head_++ % (kWords * 8)] = byte;
  }

  RecordRing& records() { return records_; }

 private:
  std::vector<std::uint64_t> words_ = std::vector<std::uint64_t>(kWords);
  std::uint64_t head_ = 0;
  std::uint64_t tail_ = 0;
  RecordRing records_{std::as_bytes(std::span(words_)), &head_, &tail_};
};

struct Fixture {
  /// In milliseconds, from when the buffer is whole.
  MonotonicTime at(std::int64_t ms) const { return {began.ns + ms * kNsPerMs}; }
  void map(std::int64_t ms, std::int32_t pid = kPid) {
    buffer.put(mapping_record(at(ms), pid, 0x1000, 0x1000, 0, 7, "/usr/bin/program"));
  }
  void exec(std::int64_t ms, std::int32_t pid = kPid) { buffer.put(comm_record(at(ms), pid, pid, "program", true)); }
  void end(std::int64_t ms, std::int32_t tid) { buffer.put(task_record(PERF_RECORD_EXIT, at(ms), kPid, 1, tid)); }

  /// What a drain brings after so many milliseconds.
  EventBatch drain_at(std::int64_t ms) {
    clock.advance_ns(at(ms).ns - clock.monotonic().ns);
    EventBatch batch;
    whole_until = side_band.drain(buffer.records(), kCpu, whole_until, batch);
    side_band.report(batch);
    return batch;
  }
  std::size_t drained_at(std::int64_t ms) { return drain_at(ms).events().size(); }

  const MonotonicTime began{1000 * kNsPerSecond};
  ManualClock clock{began, WallTime{0}};
  PlainBuffer buffer;
  SideBand side_band{clock,
                     {.free_per_program = 2, .per_second = 1, .at_once = 3, .muted_ns = 5 * kNsPerSecond},
                     [](std::int32_t) { return kUser; }};
  MonotonicTime whole_until = began;
};

TEST_CASE("what the kernel tells of processes is read as it stands, with its CPU, and nothing else") {
  Fixture fixture;
  fixture.exec(1);
  fixture.map(2);
  fixture.buffer.put(task_record(PERF_RECORD_FORK, fixture.at(3), 101, kPid, 101));
  fixture.buffer.put(test::RecordBytes(PERF_RECORD_THROTTLE).put(std::uint64_t{0}).put(fixture.at(4).ns).done());
  fixture.end(5, kPid);
  const EventBatch batch = fixture.drain_at(10);
  std::vector<RecordKind> kinds;
  for (const EventBatch::Event& event : batch.events()) {
    kinds.push_back(event.kind);
    CHECK(event.cpu == kCpu);
  }
  CHECK(kinds == std::vector{RecordKind::kComm, RecordKind::kMapping, RecordKind::kFork, RecordKind::kExit});
  const auto mapping = parse_mapping(batch.body(batch.events()[1]));
  REQUIRE(mapping);
  CHECK(mapping->pid == kPid);
  CHECK(mapping->path == "/usr/bin/program");
  CHECK(batch.has_side_band);
  CHECK_FALSE(batch.side_band_lost_from);
  CHECK(batch.muted.empty());
  CHECK(fixture.whole_until == fixture.at(10));
}

TEST_CASE("mappings and names beyond a share are skipped, counted and told, and nothing else is") {
  Fixture fixture;
  fixture.exec(0);
  for (int i = 1; i <= 20; ++i) {
    fixture.map(i);
    fixture.buffer.put(comm_record(fixture.at(i), kPid, kPid, "renamed", false));
    fixture.buffer.put(task_record(PERF_RECORD_FORK, fixture.at(i), kPid, kPid, 1000 + i));
  }
  const test::CapturedLog log;
  const EventBatch batch = fixture.drain_at(50);
  CHECK(batch.events().size() == 1 + (2 + 3) + 20);
  REQUIRE(batch.muted.size() == 1);
  CHECK(batch.muted[0].pid == kPid);
  CHECK(batch.muted[0].skipped == 35);
  CHECK(fixture.side_band.skipped().records == 35);
  CHECK(fixture.side_band.skipped().processes == 1);
  CHECK_FALSE(batch.side_band_lost_from);
  CHECK(log.text().find("warning: process 100 of user 1000 maps code") == 0);
  CHECK(fixture.drained_at(60) == 0);
  CHECK(fixture.side_band.skipped().processes == 0);
}

TEST_CASE("the log tells of one muted process a minute") {
  Fixture fixture;
  const test::CapturedLog log;
  for (const int minute : {0, 0, 2}) {
    for (std::int32_t pid = 200; pid < 210; ++pid) {
      for (int i = 0; i < 5; ++i) fixture.map(minute * 60'000, pid);
    }
    fixture.drain_at(minute * 60'000);
    fixture.drain_at(minute * 60'000);  // in which nobody is muted any more
  }
  const std::string text = log.text();
  CHECK(std::count(text.begin(), text.end(), '\n') == 2);
}

TEST_CASE("a program that starts has free records again, until its process ends, and whatever its threads do") {
  Fixture fixture;
  for (int i = 0; i < 20; ++i) fixture.map(1);
  CHECK(fixture.drained_at(2) == 3);
  SECTION("it starts another one") {
    fixture.exec(3);
    for (int i = 0; i < 20; ++i) fixture.map(3);
    CHECK(fixture.drained_at(4) == 1 + 2);
  }
  SECTION("a thread ends") {
    fixture.exec(3);
    fixture.end(3, kPid + 1);
    for (int i = 0; i < 20; ++i) fixture.map(3);
    CHECK(fixture.drained_at(4) == 2 + 2);
  }
  SECTION("the process ends") {
    fixture.exec(3);
    fixture.end(3, kPid);
    for (int i = 0; i < 20; ++i) fixture.map(3);
    CHECK(fixture.drained_at(4) == 2);
  }
}

TEST_CASE("something is missing from when the buffer was last known to be whole") {
  Fixture fixture;
  CHECK(fixture.drained_at(10) == 0);
  SECTION("since an empty drain") {
    fixture.buffer.put(lost_record(fixture.at(12), 5));
    CHECK(fixture.drain_at(20).side_band_lost_from == fixture.at(10));
  }
  SECTION("since the record before") {
    fixture.exec(11);
    fixture.buffer.put(lost_record(fixture.at(12), 5));
    fixture.exec(13);
    CHECK(fixture.drain_at(20).side_band_lost_from == fixture.at(11));
  }
  SECTION("also where a record can't be read") {
    fixture.exec(11);
    fixture.buffer.put(test::RecordBytes(PERF_RECORD_COMM).done());
    CHECK(fixture.drain_at(20).side_band_lost_from == fixture.at(11));
  }
  CHECK(fixture.whole_until == fixture.at(20));
  CHECK_FALSE(fixture.drain_at(30).side_band_lost_from);
}

TEST_CASE("a buffer that may have refused a record is whole only until the last one that it took") {
  Fixture fixture;
  SECTION("there was next to no room") {
    const std::size_t record_bytes = comm_record({}, kPid, kPid, "program", true).size();
    for (std::size_t i = 0; i < PlainBuffer::kWords * 8 / record_bytes; ++i) fixture.exec(5);
  }
  SECTION("it holds something that is no record") {
    fixture.exec(5);
    fixture.buffer.put(std::vector<std::byte>(16));
    fixture.exec(6);
  }
  CHECK(fixture.drain_at(20).side_band_lost_from == fixture.at(5));
  CHECK(fixture.whole_until == fixture.at(5));
  CHECK_FALSE(fixture.drain_at(30).side_band_lost_from);
  CHECK(fixture.whole_until == fixture.at(30));
}

TEST_CASE("of several losses the earliest is told, once") {
  Fixture fixture;
  for (const int ms : {5, 3, 4}) fixture.side_band.note_loss(fixture.at(ms));
  CHECK(fixture.drain_at(10).side_band_lost_from == fixture.at(3));
  CHECK_FALSE(fixture.drain_at(20).side_band_lost_from);
}

TEST_CASE("time for records that are skipped is counted while a process is muted") {
  Fixture fixture;
  const auto skip_many = [&](std::int64_t ms) {
    for (int i = 0; i < 400; ++i) fixture.map(ms);
    std::size_t read = 0;
    fixture.side_band.count_skipping([&] { read = fixture.drained_at(ms); });
    return read;
  };
  CHECK(skip_many(1) == 3);
  CHECK(fixture.side_band.skipped().ns == 0);
  CHECK(skip_many(2) == 0);
  const std::int64_t counted_ns = fixture.side_band.skipped().ns;
  CHECK(counted_ns > 0);
  fixture.side_band.count_skipping([&] { fixture.drain_at(3); });
  CHECK(fixture.side_band.skipped().ns == counted_ns);
}

}  // namespace
}  // namespace flamed::daemon
