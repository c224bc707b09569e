// SPDX-License-Identifier: Apache-2.0
//
// RecordRing: the reader's side of a ring of records in memory shared with the kernel, which writes while it is
// drained: a perf buffer (PerfRing) or the sampler's own ring (SampleRing). Each record begins with a
// perf_event_header.
//
// Belongs to the reader thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace flamed::daemon {

class RecordRing {
 public:
  /// The size of `data` is a power of two of bytes, aligned to 8. The writer advances `head` by each record, with a
  /// release, and reads `tail`, which this class advances, with an acquire. All of them outlive the ring.
  RecordRing(std::span<const std::byte> data, const std::uint64_t* head, std::uint64_t* tail)
      : data_(data), head_(head), tail_(tail) {}

  /// Reads the head.
  void look() { seen_ = __atomic_load_n(head_, __ATOMIC_ACQUIRE); }

  /// Calls `visit(std::span<const std::byte>)` with each record that the last look() saw, oldest first. The span is
  /// valid during the call only. Frees their space at the end.
  template <typename Visit>
  void drain(Visit&& visit) {
    const std::uint64_t head = seen_;
    std::uint64_t tail = *tail_;
    was_full_ = data_.size() - (head - tail) < kLargestRecordBytes;
    while (tail < head) {
      const std::span<const std::byte> record = record_at(tail, head);
      if (record.empty()) {
        tail = head;  // the chain of sizes is broken: nothing after it can be trusted
        ++broken_;
        break;
      }
      tail += record.size();
      visit(record);
    }
    __atomic_store_n(tail_, tail, __ATOMIC_RELEASE);
  }

  /// Was there so little room at the last drain that a record may have been refused?
  [[nodiscard]] bool was_full() const { return was_full_; }
  /// How often the ring had an invalid record. Never, unless the kernel or memory is broken.
  [[nodiscard]] std::uint64_t broken() const { return broken_; }

 private:
  /// MMAP2 with a path of PATH_MAX; a sample of all frames has 2 KiB.
  static constexpr std::size_t kLargestRecordBytes = 8192;

  [[nodiscard]] std::span<const std::byte> record_at(std::uint64_t position, std::uint64_t head);

  std::span<const std::byte> data_;
  const std::uint64_t* head_;
  std::uint64_t* tail_;
  std::uint64_t seen_ = 0;          ///< of *head_
  std::vector<std::byte> wrapped_;  ///< a copy of a record that wraps around the ring's end
  std::uint64_t broken_ = 0;
  bool was_full_ = false;
};

}  // namespace flamed::daemon
