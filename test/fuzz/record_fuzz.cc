// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as consecutive records of a perf buffer or a ring of samples, through a batch, as reader and ingest process
// them.
#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>

#include "daemon/sampler/event_batch.h"
#include "daemon/sampler/record.h"

namespace {

using namespace flamed::daemon;

void require(bool condition) {
  if (!condition) std::abort();
}

/// Reads every byte of a view, so that the sanitizer catches one outside of it.
template <typename View>
std::uint64_t read_all(const View& view) {
  std::uint64_t sum = 0;
  for (const auto& element : view) sum += static_cast<std::uint64_t>(element);
  return sum;
}

std::uint64_t parse(RecordKind kind, std::span<const std::byte> body) {
  std::uint64_t sum = 0;
  switch (kind) {
    case RecordKind::kSample:
      if (const auto sample = parse_sample(body)) {
        require(sizeof(flamed_sample) + sample->user.size_bytes() + sample->kernel.size_bytes() +
                    sample->linked_frames.size_bytes() + sample->linked_calls.size_bytes() <=
                body.size());
        sum += read_all(sample->user) + read_all(sample->kernel) + read_all(sample->comm());
        sum += read_all(sample->linked_calls);
        for (const flamed_linked_frame& frame : sample->linked_frames) sum += frame.code + frame.check;
      }
      break;
    case RecordKind::kVisit:
      if (const auto visit = parse_visit(body)) {
        require(sizeof(flamed_wait) + sizeof(flamed_sample) + visit->sample.kernel.size() * 8 <= body.size());
        sum += read_all(visit->sample.kernel) + visit->wait->switches;
      }
      break;
    case RecordKind::kMapping:
      if (const auto mapping = parse_mapping(body)) sum += read_all(mapping->path);
      break;
    case RecordKind::kComm:
      if (const auto comm = parse_comm(body)) sum += read_all(comm->comm);
      break;
    default:
      if (const auto task = parse_task(body)) sum += static_cast<std::uint64_t>(task->pid);
      break;
  }
  return sum;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::span<const std::byte> rest(reinterpret_cast<const std::byte*>(data), size);
  EventBatch batch;
  EventBatch later;
  std::size_t records = 0;
  std::size_t malformed = 0;
  while (rest.size() >= sizeof(perf_event_header)) {
    perf_event_header header;
    std::memcpy(&header, rest.data(), sizeof(header));
    if (header.size < sizeof(header) || header.size > rest.size()) break;
    const RecordHead head = read_head(rest.first(header.size));
    rest = rest.subspan(header.size);
    ++records;
    if (head.kind == RecordKind::kMalformed)
      ++malformed;
    else
      batch.append(head);
  }

  batch.sort_and_split({1'000'000}, later);
  require(batch.events().size() + later.events().size() + malformed == records);
  volatile std::uint64_t sum = 0;
  for (const EventBatch* part : {&batch, &later}) {
    flamed::MonotonicTime last = part->empty() ? flamed::MonotonicTime{} : part->events().front().time;
    for (const EventBatch::Event& event : part->events()) {
      require(last <= event.time);
      last = event.time;
      sum = sum + parse(event.kind, part->body(event));
    }
  }
  return 0;
}
