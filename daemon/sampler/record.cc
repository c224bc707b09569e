// SPDX-License-Identifier: Apache-2.0
#include "daemon/sampler/record.h"

#include <linux/perf_event.h>

#include <cstring>

namespace flamed::daemon {
namespace {

/// Reads fixed-size values from the front of a body; becomes false if there are not enough bytes.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <typename T>
  void take(T& value) {
    if (rest_.size() < sizeof(T)) {
      ok_ = false;
      return;
    }
    std::memcpy(&value, rest_.data(), sizeof(T));
    rest_ = rest_.subspan(sizeof(T));
  }

  /// The rest, up to the first NUL.
  std::string_view take_string() {
    const char* text = reinterpret_cast<const char*>(rest_.data());
    return {text, ::strnlen(text, rest_.size())};
  }

  [[nodiscard]] bool ok() const { return ok_; }

 private:
  std::span<const std::byte> rest_;
  bool ok_ = true;
};

RecordKind kind_of(std::uint32_t type) {
  switch (type) {
    case PERF_RECORD_SAMPLE:
      return RecordKind::kSample;
    case FLAMED_RECORD_VISIT:
      return RecordKind::kVisit;
    case PERF_RECORD_MMAP2:
      return RecordKind::kMapping;
    case PERF_RECORD_COMM:
      return RecordKind::kComm;
    case PERF_RECORD_FORK:
      return RecordKind::kFork;
    case PERF_RECORD_EXIT:
      return RecordKind::kExit;
    case PERF_RECORD_LOST:
      return RecordKind::kLost;
    default:
      return RecordKind::kOther;
  }
}

}  // namespace

RecordHead read_head(std::span<const std::byte> record) {
  RecordHead head;
  perf_event_header header{};
  std::uint64_t time = 0;
  if (record.size() < sizeof(header) + sizeof(time)) return head;
  std::memcpy(&header, record.data(), sizeof(header));
  if (header.size != record.size()) return head;
  head.kind = kind_of(header.type);
  head.comm_is_exec = (header.misc & PERF_RECORD_MISC_COMM_EXEC) != 0;
  std::span<const std::byte> body = record.subspan(sizeof(header));

  if (head.kind == RecordKind::kSample || head.kind == RecordKind::kVisit) {
    // The time comes first, see flamed_record and flamed_visit.
    std::memcpy(&time, body.data(), sizeof(time));
    body = body.subspan(sizeof(time));
  } else {
    // struct sample_id at the end, which has only the time with this sample_type.
    std::memcpy(&time, body.data() + body.size() - sizeof(time), sizeof(time));
    body = body.first(body.size() - sizeof(time));
  }
  head.time = MonotonicTime{static_cast<std::int64_t>(time)};
  head.body = body;
  return head;
}

std::string_view SampleRecord::comm() const { return {header->comm, ::strnlen(header->comm, sizeof(header->comm))}; }

std::optional<SampleRecord> parse_sample(std::span<const std::byte> body) {
  if (body.size() < sizeof(flamed_sample)) return std::nullopt;
  SampleRecord sample;
  sample.header = reinterpret_cast<const flamed_sample*>(body.data());
  const std::size_t user = sample.header->user_count;
  const std::size_t kernel = sample.header->kernel_count;
  const std::size_t linked = sample.header->linked_frames;
  const std::size_t calls = sample.header->linked_calls;
  if (body.size() <
      sizeof(flamed_sample) + (user + kernel + calls) * sizeof(std::uint64_t) + linked * sizeof(flamed_linked_frame)) {
    return std::nullopt;
  }
  const auto* addresses = reinterpret_cast<const std::uint64_t*>(body.data() + sizeof(flamed_sample));
  sample.user = {addresses, user};
  sample.kernel = {addresses + user, kernel};
  sample.linked_frames = {reinterpret_cast<const flamed_linked_frame*>(addresses + user + kernel), linked};
  sample.linked_calls = {reinterpret_cast<const std::uint64_t*>(sample.linked_frames.data() + linked), calls};
  return sample;
}

std::optional<VisitRecord> parse_visit(std::span<const std::byte> body) {
  if (body.size() < sizeof(flamed_wait)) return std::nullopt;
  const std::optional<SampleRecord> sample = parse_sample(body.subspan(sizeof(flamed_wait)));
  if (!sample) return std::nullopt;
  return VisitRecord{reinterpret_cast<const flamed_wait*>(body.data()), *sample};
}

std::optional<MappingRecord> parse_mapping(std::span<const std::byte> body) {
  MappingRecord mapping;
  Cursor cursor(body);
  std::int32_t tid = 0;
  std::uint32_t protection = 0;
  std::uint32_t flags = 0;
  cursor.take(mapping.pid);
  cursor.take(tid);
  cursor.take(mapping.start);
  cursor.take(mapping.length);
  cursor.take(mapping.file_offset);
  cursor.take(mapping.device_major);
  cursor.take(mapping.device_minor);
  cursor.take(mapping.inode);
  cursor.take(mapping.inode_generation);
  cursor.take(protection);
  cursor.take(flags);
  if (!cursor.ok()) return std::nullopt;
  mapping.path = cursor.take_string();
  return mapping;
}

std::optional<CommRecord> parse_comm(std::span<const std::byte> body) {
  CommRecord comm;
  Cursor cursor(body);
  cursor.take(comm.pid);
  cursor.take(comm.tid);
  if (!cursor.ok()) return std::nullopt;
  comm.comm = cursor.take_string();
  return comm;
}

std::optional<TaskRecord> parse_task(std::span<const std::byte> body) {
  TaskRecord task;
  Cursor cursor(body);
  cursor.take(task.pid);
  cursor.take(task.parent_pid);
  cursor.take(task.tid);
  cursor.take(task.parent_tid);
  if (!cursor.ok()) return std::nullopt;
  return task;
}

}  // namespace flamed::daemon
