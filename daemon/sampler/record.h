// SPDX-License-Identifier: Apache-2.0
//
// Records of perf buffers and of rings of samples, decoded: bytes in, values out, no I/O. Layouts are those of
// perf_event_open(2) with sample_type = TIME and sample_id_all, so that every record has its CLOCK_MONOTONIC time;
// samples have the layout of bpf/events.h, visits that of bpf/visits.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/clock.h"
#include "bpf/events.h"
#include "bpf/linked_layout.h"
#include "bpf/visits.h"

namespace flamed::daemon {

enum class RecordKind : std::uint8_t {
  kSample,
  kVisit,    ///< of a waiting thread
  kMapping,  ///< MMAP2
  kComm,
  kFork,
  kExit,
  kLost,
  kOther,      ///< an unexpected kind of record
  kMalformed,  ///< too short for its kind
};

/// A record's kind, time and the bytes for the parse_* functions below.
struct RecordHead {
  RecordKind kind = RecordKind::kMalformed;
  bool comm_is_exec = false;  ///< of kComm: PERF_RECORD_MISC_COMM_EXEC
  MonotonicTime time;
  std::span<const std::byte> body;
  std::uint16_t cpu = 0;  ///< of the ring that it came from; set by the code that drains the ring
};
RecordHead read_head(std::span<const std::byte> record);

/// Views into the body, which must be 8-byte aligned; EventBatch ensures that.
struct SampleRecord {
  const flamed_sample* header = nullptr;
  std::span<const std::uint64_t> user;    ///< innermost first
  std::span<const std::uint64_t> kernel;  ///< innermost first
  std::span<const flamed_linked_frame> linked_frames;
  std::span<const std::uint64_t> linked_calls;
  [[nodiscard]] std::string_view comm() const;
};
/// Empty if the counts do not match the number of bytes.
std::optional<SampleRecord> parse_sample(std::span<const std::byte> body);

/// A visit of a waiting thread: `sample` has its process and its kernel stack.
struct VisitRecord {
  const flamed_wait* wait = nullptr;
  SampleRecord sample;
};
std::optional<VisitRecord> parse_visit(std::span<const std::byte> body);

struct MappingRecord {
  std::int32_t pid = 0;
  std::uint64_t start = 0, length = 0, file_offset = 0;
  std::uint32_t device_major = 0, device_minor = 0;
  std::uint64_t inode = 0, inode_generation = 0;
  std::string_view path;
};
std::optional<MappingRecord> parse_mapping(std::span<const std::byte> body);

struct CommRecord {
  std::int32_t pid = 0, tid = 0;
  std::string_view comm;
};
std::optional<CommRecord> parse_comm(std::span<const std::byte> body);

/// FORK and EXIT. A new thread of the same process has pid == parent_pid.
struct TaskRecord {
  std::int32_t pid = 0, parent_pid = 0, tid = 0, parent_tid = 0;
};
std::optional<TaskRecord> parse_task(std::span<const std::byte> body);

}  // namespace flamed::daemon
