// SPDX-License-Identifier: Apache-2.0
#include "daemon/sampler/record.h"

#include <linux/perf_event.h>

#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "daemon/sampler/event_batch.h"
#include "test/catch.h"
#include "test/unit/daemon/sampler/record_bytes.h"

namespace flamed::daemon {
namespace {

constexpr MonotonicTime kTime{123'456'789'012};

/// The body as ingest sees it: copied to aligned memory.
struct Decoded {
  explicit Decoded(const std::vector<std::byte>& record) : head(read_head(record)) {
    batch.append(head);
    body = batch.body(batch.events().front());
  }
  RecordHead head;
  EventBatch batch;
  std::span<const std::byte> body;
};

test::SampleFields some_sample() {
  test::SampleFields fields;
  fields.tgid = 4242;
  fields.tid = 4243;
  fields.comm = "worker";
  fields.user = {0x401000, 0x402000, 0x403000};
  fields.kernel = {0xffffffff81000010, 0xffffffff81000020};
  return fields;
}

TEST_CASE("a sample has its time, identity and addresses") {
  const Decoded decoded(test::sample_record(kTime, some_sample()));
  CHECK(decoded.head.kind == RecordKind::kSample);
  CHECK(decoded.head.time == kTime);
  const auto sample = parse_sample(decoded.body);
  REQUIRE(sample);
  CHECK(sample->header->tgid == 4242);
  CHECK(sample->header->tid == 4243);
  CHECK(sample->header->start_boottime_ns == 50'000'000'000);
  CHECK(sample->header->cgroup_id == 77);
  CHECK(sample->comm() == "worker");
  CHECK(std::vector(sample->user.begin(), sample->user.end()) ==
        std::vector<std::uint64_t>{0x401000, 0x402000, 0x403000});
  CHECK(std::vector(sample->kernel.begin(), sample->kernel.end()) ==
        std::vector<std::uint64_t>{0xffffffff81000010, 0xffffffff81000020});
}

flamed_wait some_wait() {
  flamed_wait wait{};
  wait.switches = 17;
  wait.run_ns = 2'000'000;
  wait.system_call = 202;
  wait.state = FLAMED_SLEEPS;
  return wait;
}

TEST_CASE("a visit has its time, the wait, and the thread with its kernel stack") {
  test::SampleFields fields = some_sample();
  fields.user.clear();
  const Decoded decoded(test::visit_record(kTime, some_wait(), fields));
  CHECK(decoded.head.kind == RecordKind::kVisit);
  CHECK(decoded.head.time == kTime);
  const auto visit = parse_visit(decoded.body);
  REQUIRE(visit);
  CHECK(visit->wait->switches == 17);
  CHECK(visit->wait->run_ns == 2'000'000);
  CHECK(visit->wait->system_call == 202);
  CHECK(visit->wait->state == FLAMED_SLEEPS);
  CHECK(visit->sample.header->tid == 4243);
  CHECK(visit->sample.comm() == "worker");
  CHECK(visit->sample.user.empty());
  CHECK(std::vector(visit->sample.kernel.begin(), visit->sample.kernel.end()) ==
        std::vector<std::uint64_t>{0xffffffff81000010, 0xffffffff81000020});
}

TEST_CASE("a visit that is too short for its fields is refused") {
  test::SampleFields fields = some_sample();
  fields.user.clear();
  const Decoded decoded(test::visit_record(kTime, some_wait(), fields));
  REQUIRE(decoded.body.size() == sizeof(flamed_wait) + sizeof(flamed_sample) + 16);
  for (std::size_t bytes = 0; bytes < decoded.body.size(); bytes += 8)
    CHECK_FALSE(parse_visit(decoded.body.first(bytes)));
}

TEST_CASE("a sample without addresses is valid") {
  const Decoded decoded(test::sample_record(kTime, {}));
  const auto sample = parse_sample(decoded.body);
  REQUIRE(sample);
  CHECK(sample->user.empty());
  CHECK(sample->kernel.empty());
}

TEST_CASE("a sample with the most frames that a record holds fits") {
  test::SampleFields fields;
  fields.user.assign(FLAMED_MAX_USER_FRAMES, 0x401000);
  fields.kernel.assign(FLAMED_MAX_KERNEL_FRAMES, 0xffffffff81000010);
  const Decoded decoded(test::sample_record(kTime, fields));
  const auto sample = parse_sample(decoded.body);
  REQUIRE(sample);
  CHECK(sample->user.size() == 1024);
  CHECK(sample->kernel.size() == 127);
}

TEST_CASE("a comm that fills its field needs no terminator") {
  Decoded decoded(test::sample_record(kTime, {}));
  std::vector<std::uint64_t> copy(decoded.body.size() / 8 + 1);
  std::memcpy(copy.data(), decoded.body.data(), decoded.body.size());
  std::memset(reinterpret_cast<char*>(copy.data()) + offsetof(flamed_sample, comm), 'x', FLAMED_COMM_BYTES);
  const auto sample = parse_sample({reinterpret_cast<const std::byte*>(copy.data()), decoded.body.size()});
  REQUIRE(sample);
  CHECK(sample->comm() == std::string(16, 'x'));
}

TEST_CASE("a sample that claims more addresses than it has is refused") {
  test::SampleFields fields = some_sample();
  const Decoded decoded(test::sample_record(kTime, fields));
  std::vector<std::uint64_t> copy(decoded.body.size() / 8 + 1);
  std::memcpy(copy.data(), decoded.body.data(), decoded.body.size());
  reinterpret_cast<flamed_sample*>(copy.data())->kernel_count = 3;
  CHECK_FALSE(parse_sample({reinterpret_cast<const std::byte*>(copy.data()), decoded.body.size()}));
  reinterpret_cast<flamed_sample*>(copy.data())->user_count = 255;
  CHECK_FALSE(parse_sample({reinterpret_cast<const std::byte*>(copy.data()), decoded.body.size()}));
}

TEST_CASE("a mapping has its process, place, file and path") {
  const Decoded decoded(test::mapping_record(kTime, 4242, 0x7f0000000000, 0x21000, 0x28000, 99, "/lib/my lib.so"));
  CHECK(decoded.head.kind == RecordKind::kMapping);
  CHECK(decoded.head.time == kTime);
  const auto mapping = parse_mapping(decoded.body);
  REQUIRE(mapping);
  CHECK(mapping->pid == 4242);
  CHECK(mapping->start == 0x7f0000000000);
  CHECK(mapping->length == 0x21000);
  CHECK(mapping->file_offset == 0x28000);
  CHECK(mapping->device_major == 8);
  CHECK(mapping->device_minor == 1);
  CHECK(mapping->inode == 99);
  CHECK(mapping->inode_generation == 5);
  CHECK(mapping->path == "/lib/my lib.so");
}

TEST_CASE("a path without a terminator ends with its record") {
  std::vector<std::byte> body(72, std::byte{'a'});
  const auto mapping = parse_mapping(body);
  REQUIRE(mapping);
  CHECK(mapping->path == "aaaaaaaa");
}

TEST_CASE("a comm record says whether it came with an exec") {
  const Decoded named(test::comm_record(kTime, 4242, 4243, "worker", false));
  CHECK(named.head.kind == RecordKind::kComm);
  CHECK(named.head.time == kTime);
  CHECK_FALSE(named.head.comm_is_exec);
  const auto comm = parse_comm(named.body);
  REQUIRE(comm);
  CHECK(comm->pid == 4242);
  CHECK(comm->tid == 4243);
  CHECK(comm->comm == "worker");
  CHECK(read_head(test::comm_record(kTime, 4242, 4242, "ls", true)).comm_is_exec);
}

TEST_CASE("fork and exit name process, parent and thread") {
  for (const auto& [type, kind] :
       {std::pair(PERF_RECORD_FORK, RecordKind::kFork), {PERF_RECORD_EXIT, RecordKind::kExit}}) {
    const Decoded decoded(test::task_record(type, kTime, 10, 9, 11));
    CHECK(decoded.head.kind == kind);
    CHECK(decoded.head.time == kTime);
    const auto task = parse_task(decoded.body);
    REQUIRE(task);
    CHECK(task->pid == 10);
    CHECK(task->parent_pid == 9);
    CHECK(task->tid == 11);
    CHECK(task->parent_tid == 9);
  }
}

TEST_CASE("records of losses and of kinds that were not requested are recognised") {
  CHECK(read_head(test::lost_record(kTime, 7)).kind == RecordKind::kLost);
  CHECK(read_head(test::lost_record(kTime, 7)).time == kTime);
  CHECK(read_head(test::RecordBytes(PERF_RECORD_THROTTLE).put(kTime.ns).done()).kind == RecordKind::kOther);
  CHECK(read_head(test::RecordBytes(9999).put(kTime.ns).done()).kind == RecordKind::kOther);
}

std::vector<std::vector<std::byte>> one_of_each() {
  return {test::sample_record(kTime, some_sample()),
          test::mapping_record(kTime, 1, 0x1000, 0x1000, 0, 5, "/lib/a.so"),
          test::comm_record(kTime, 1, 1, "comm", true),
          test::task_record(PERF_RECORD_FORK, kTime, 1, 2, 1),
          test::task_record(PERF_RECORD_EXIT, kTime, 1, 2, 1),
          test::lost_record(kTime, 3)};
}

/// Runs all decoders on the bytes. The sanitizer catches reads outside.
void decode_all(std::span<const std::byte> body) {
  // An allocation of exactly these bytes, aligned as in a batch.
  const auto copy = std::make_unique<std::byte[]>(body.size());
  if (!body.empty()) std::memcpy(copy.get(), body.data(), body.size());
  const std::span<const std::byte> exact(copy.get(), body.size());
  if (const auto sample = parse_sample(exact)) {
    CHECK(sample->comm().size() <= FLAMED_COMM_BYTES);
    CHECK(sample->user.size() + sample->kernel.size() <= body.size() / 8);
  }
  if (const auto mapping = parse_mapping(exact)) CHECK(mapping->path.size() <= body.size());
  if (const auto comm = parse_comm(exact)) CHECK(comm->comm.size() <= body.size());
  static_cast<void>(parse_task(exact));
}

TEST_CASE("a record that is cut off at any length is malformed") {
  for (const std::vector<std::byte>& whole : one_of_each()) {
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
      CHECK(read_head(cut).kind == RecordKind::kMalformed);
    }
  }
}

TEST_CASE("a record that claims to be shorter than its fields is read only within its bytes") {
  for (const std::vector<std::byte>& whole : one_of_each()) {
    for (std::size_t size = sizeof(perf_event_header); size < whole.size(); ++size) {
      std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
      const auto said = static_cast<std::uint16_t>(size);
      std::memcpy(cut.data() + offsetof(perf_event_header, size), &said, sizeof(said));
      cut.shrink_to_fit();
      const RecordHead head = read_head(cut);
      CHECK((size >= 16 || head.kind == RecordKind::kMalformed));
      decode_all(head.body);
    }
  }
}

TEST_CASE("a body that is too short for its kind is refused") {
  for (std::size_t size = 0; size < 80; ++size) {
    CAPTURE(size);
    const std::vector<std::byte> body(size);
    decode_all(body);
    CHECK(parse_mapping(body).has_value() == (size >= 64));
    CHECK(parse_comm(body).has_value() == (size >= 8));
    CHECK(parse_task(body).has_value() == (size >= 16));
  }
}

TEST_CASE("a sample's frames of a runtime follow its addresses") {
  flamed_sample header{};
  header.user_count = 1;
  header.kernel_count = 1;
  header.linked_frames = 2;
  header.linked_calls = 1;
  std::vector<std::uint64_t> words(sizeof(header) / 8);
  std::memcpy(words.data(), &header, sizeof(header));
  words.insert(words.end(), {11, 22, 1, 2, 3, 4, 5});
  const std::span<const std::byte> body = std::as_bytes(std::span(words));
  const auto sample = parse_sample(body);
  REQUIRE(sample);
  CHECK(sample->kernel[0] == 22);
  REQUIRE(sample->linked_frames.size() == 2);
  CHECK(sample->linked_frames[1].code == 3);
  CHECK(sample->linked_frames[1].check == 4);
  REQUIRE(sample->linked_calls.size() == 1);
  CHECK(sample->linked_calls[0] == 5);
  CHECK_FALSE(parse_sample(body.first(body.size() - 8)));
}

}  // namespace
}  // namespace flamed::daemon
