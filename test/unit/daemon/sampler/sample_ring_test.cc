// SPDX-License-Identifier: Apache-2.0
//
// A ring of samples from both sides: the kernel program's writer (bpf/sample_ring.h), run on the host, and the daemon's
// reader (RecordRing).
#include <linux/perf_event.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "bpf/sample_ring.h"
#include "daemon/sampler/record.h"
#include "daemon/sampler/record_ring.h"
#include "test/catch.h"

namespace flamed::daemon {
namespace {

constexpr std::uint32_t kHeaderWords = offsetof(flamed_record, addresses) / 8;

class SharedRing {
 public:
  /// False if there is no room. A sample is identified by its tid, and each of its addresses is its tid.
  bool put(std::uint32_t tid, std::size_t frames) {
    flamed_record record{};
    const auto words = kHeaderWords + static_cast<std::uint32_t>(frames);
    record.type = PERF_RECORD_SAMPLE;
    record.size = static_cast<std::uint16_t>(words * 8);
    record.time_ns = tid;
    record.sample.tid = tid;
    record.sample.user_count = static_cast<std::uint16_t>(std::min<std::size_t>(frames, FLAMED_MAX_USER_FRAMES));
    record.sample.kernel_count = static_cast<std::uint8_t>(frames - record.sample.user_count);
    for (std::size_t i = 0; i < frames; ++i) record.addresses[i] = tid;
    waiting = ::ring_put(memory.get(), &record, words, FLAMED_MAX_RECORD_WORDS, nullptr);
    return waiting >= 0;
  }
  /// The tids of all waiting samples. Checks that each is as it was written.
  std::vector<std::uint32_t> drain() {
    std::vector<std::uint32_t> tids;
    records.look();
    records.drain([&](std::span<const std::byte> bytes) {
      const RecordHead head = read_head(bytes);
      REQUIRE(head.kind == RecordKind::kSample);
      const auto sample = parse_sample(head.body);
      REQUIRE(sample);
      CHECK(head.time.ns == sample->header->tid);
      CHECK(std::count(sample->user.begin(), sample->user.end(), sample->header->tid) == std::ssize(sample->user));
      CHECK(std::count(sample->kernel.begin(), sample->kernel.end(), sample->header->tid) ==
            std::ssize(sample->kernel));
      tids.push_back(sample->header->tid);
    });
    return tids;
  }

  std::unique_ptr<flamed_sample_ring> memory = std::make_unique<flamed_sample_ring>();
  RecordRing records{std::as_bytes(std::span(memory->words)), reinterpret_cast<const std::uint64_t*>(&memory->head),
                     reinterpret_cast<std::uint64_t*>(&memory->tail)};
  long waiting = 0;  ///< the bytes waiting after the last put()
};

TEST_CASE("samples are read from a ring as they were written") {
  SharedRing ring;
  CHECK(ring.drain().empty());
  CHECK(ring.put(1, 0));
  CHECK(ring.put(2, 30));
  CHECK(ring.put(3, FLAMED_MAX_FRAMES));
  CHECK(ring.drain() == std::vector<std::uint32_t>{1, 2, 3});
  CHECK(ring.drain().empty());
  CHECK(ring.put(4, 5));
  CHECK(ring.drain() == std::vector<std::uint32_t>{4});
}

TEST_CASE("a ring knows how much waits to be read") {
  SharedRing ring;
  CHECK(ring.put(1, 0));
  CHECK(ring.waiting == kHeaderWords * 8);
  CHECK(ring.put(2, 10));
  CHECK(ring.waiting == kHeaderWords * 16 + 80);
  ring.drain();
  CHECK(ring.put(3, 1));
  CHECK(ring.waiting == kHeaderWords * 8 + 8);
}

TEST_CASE("a full ring refuses samples, keeps its own, and takes more once it was read") {
  SharedRing ring;
  std::uint32_t put = 0;
  while (ring.put(put, 100)) ++put;
  CHECK(put == FLAMED_SAMPLE_RING_WORDS / (kHeaderWords + 100));
  CHECK_FALSE(ring.put(put, 100));
  const std::vector<std::uint32_t> tids = ring.drain();
  CHECK(ring.records.was_full());
  REQUIRE(tids.size() == put);
  for (std::uint32_t i = 0; i < put; ++i) CHECK(tids[i] == i);
  CHECK(ring.put(put, 100));
  CHECK(ring.drain() == std::vector<std::uint32_t>{put});
  CHECK_FALSE(ring.records.was_full());
}

TEST_CASE("samples of any length that wrap at the ring's end stay whole, however seldom it is read") {
  std::minstd_rand random(7);
  SharedRing ring;
  std::uint32_t next = 0;
  std::uint32_t seen = 0;
  while (next < 20'000) {
    const std::size_t burst = random() % 300;
    for (std::size_t i = 0; i < burst && ring.put(next, random() % (FLAMED_MAX_FRAMES + 1)); ++i) ++next;
    for (const std::uint32_t tid : ring.drain()) CHECK(tid == seen++);
    CHECK(seen == next);
  }
  CHECK(ring.records.broken() == 0);
}

TEST_CASE("a ring can be written while it is read") {
  constexpr std::uint32_t kSamples = 50'000;
  SharedRing ring;
  std::jthread writer([&ring] {
    for (std::uint32_t next = 0; next < kSamples;) {
      if (ring.put(next, next % 100)) ++next;
    }
  });
  std::uint32_t seen = 0;
  while (seen < kSamples) {
    for (const std::uint32_t tid : ring.drain()) REQUIRE(tid == seen++);
  }
  CHECK(ring.records.broken() == 0);
}

TEST_CASE("a ring with a corrupt size is emptied, and that is counted") {
  for (const int broken : {0, 4, 12, 8192}) {
    const auto size = static_cast<std::uint16_t>(broken);
    CAPTURE(size);
    SharedRing ring;
    ring.put(1, 3);
    ring.put(2, 3);
    std::memcpy(reinterpret_cast<std::byte*>(ring.memory->words) + offsetof(perf_event_header, size), &size,
                sizeof(size));
    CHECK(ring.drain().empty());
    CHECK(ring.records.broken() == 1);
    CHECK(ring.put(3, 3));
    CHECK(ring.drain() == std::vector<std::uint32_t>{3});
  }
}

}  // namespace
}  // namespace flamed::daemon
