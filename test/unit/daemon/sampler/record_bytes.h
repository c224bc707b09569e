// SPDX-License-Identifier: Apache-2.0
//
// Records of a perf buffer, written as the kernel writes them (perf_event_open(2), sample_type = TIME, sample_id_all),
// and of a ring of samples, as the kernel program does (flamed_record). `misc` as on the running kernel.
#pragma once

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "bpf/events.h"
#include "bpf/visits.h"

namespace flamed::test {

class RecordBytes {
 public:
  explicit RecordBytes(std::uint32_t type, std::uint16_t misc = 0) : header_{type, misc, 0} {
    bytes_.resize(sizeof(header_));
  }

  template <typename T>
  RecordBytes& put(const T& value) {
    const auto* first = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), first, first + sizeof(T));
    return *this;
  }
  /// NUL-terminated and padded to a multiple of 8 bytes.
  RecordBytes& put_string(const std::string& text) {
    for (const char letter : text) put(letter);
    do put('\0');
    while (bytes_.size() % 8 != 0);
    return *this;
  }
  /// Ends the record: fills in its size.
  std::vector<std::byte> done() {
    header_.size = static_cast<std::uint16_t>(bytes_.size());
    std::memcpy(bytes_.data(), &header_, sizeof(header_));
    return bytes_;
  }

 private:
  perf_event_header header_;
  std::vector<std::byte> bytes_;
};

struct SampleFields {
  std::uint32_t tgid = 100;
  std::uint32_t tid = 100;
  std::uint64_t start_boottime_ns = 50'000'000'000;
  std::string comm = "program";
  std::vector<std::uint64_t> user;
  std::vector<std::uint64_t> kernel;
  std::uint8_t user_end = FLAMED_END_OUTERMOST;
  std::uint8_t flags = 0;
  std::uint16_t tables = 0;  ///< with FLAMED_WALKED_BY_TABLES
  std::uint64_t cgroup_id = 77;
  std::uint64_t exec_id = 1;
  std::uint32_t owner = FLAMED_NO_OWNER;
  std::uint64_t weight_ns = 10'000'000;
  flamed_sample slice{};  ///< its slice_* are copied
};

inline flamed_sample sample_head(const SampleFields& fields) {
  flamed_sample sample{};
  sample.tgid = fields.tgid;
  sample.tid = fields.tid;
  sample.start_boottime_ns = fields.start_boottime_ns;
  sample.cgroup_id = fields.cgroup_id;
  sample.exec_id = fields.exec_id;
  sample.weight_ns = fields.weight_ns;
  sample.owner = fields.owner;
  sample.kind = FLAMED_ON_CPU;
  sample.user_end = fields.user_end;
  sample.user_count = static_cast<std::uint16_t>(fields.user.size());
  sample.kernel_count = static_cast<std::uint8_t>(fields.kernel.size());
  sample.flags = fields.flags;
  sample.tables = fields.tables;
  sample.slice_place = fields.slice.slice_place;
  sample.slice_blocks = fields.slice.slice_blocks;
  std::strncpy(sample.comm, fields.comm.c_str(), sizeof(sample.comm) - 1);
  return sample;
}

inline std::vector<std::byte> sample_record(MonotonicTime time, const SampleFields& fields) {
  RecordBytes record(PERF_RECORD_SAMPLE);
  record.put(time.ns).put(sample_head(fields));
  for (const std::uint64_t address : fields.user) record.put(address);
  for (const std::uint64_t address : fields.kernel) record.put(address);
  return record.done();
}

inline std::vector<std::byte> visit_record(MonotonicTime time, const flamed_wait& wait, const SampleFields& fields) {
  RecordBytes record(FLAMED_RECORD_VISIT);
  record.put(time.ns).put(wait).put(sample_head(fields));
  for (const std::uint64_t address : fields.kernel) record.put(address);
  return record.done();
}

inline std::vector<std::byte> mapping_record(MonotonicTime time, std::int32_t pid, std::uint64_t start,
                                             std::uint64_t length, std::uint64_t file_offset, std::uint64_t inode,
                                             const std::string& path) {
  const std::uint32_t major = inode == 0 ? 0 : 8;
  const std::uint32_t minor = inode == 0 ? 0 : 1;
  return RecordBytes(PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER)
      .put(pid)
      .put(pid)
      .put(start)
      .put(length)
      .put(file_offset)
      .put(major)
      .put(minor)
      .put(inode)
      .put(std::uint64_t{5})  // inode generation
      .put(std::uint32_t{5})  // PROT_READ | PROT_EXEC
      .put(std::uint32_t{2})  // MAP_PRIVATE
      .put_string(path)
      .put(time.ns)
      .done();
}

inline std::vector<std::byte> comm_record(MonotonicTime time, std::int32_t pid, std::int32_t tid,
                                          const std::string& comm, bool exec) {
  return RecordBytes(PERF_RECORD_COMM, exec ? PERF_RECORD_MISC_COMM_EXEC : 0)
      .put(pid)
      .put(tid)
      .put_string(comm)
      .put(time.ns)
      .done();
}

inline std::vector<std::byte> task_record(std::uint32_t type, MonotonicTime time, std::int32_t pid,
                                          std::int32_t parent_pid, std::int32_t tid) {
  return RecordBytes(type).put(pid).put(parent_pid).put(tid).put(parent_pid).put(time.ns).put(time.ns).done();
}

inline std::vector<std::byte> lost_record(MonotonicTime time, std::uint64_t count) {
  return RecordBytes(PERF_RECORD_LOST).put(std::uint64_t{1}).put(count).put(time.ns).done();
}

}  // namespace flamed::test
