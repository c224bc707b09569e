// SPDX-License-Identifier: Apache-2.0
//
// PerfRing: one CPU's perf buffer. The BPF program's samples and the kernel's own side band (MMAP2, COMM, FORK, EXIT)
// arrive in the same ring, so that one drain serves both and their order on a CPU is kept.
//
// Belongs to the reader thread. The kernel writes while it is drained.
#pragma once

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/handle.h"
#include "base/result.h"

namespace flamed::daemon {

class PerfRing {
 public:
  struct Options {
    std::size_t data_bytes = 512 * 1024;  ///< a power of two, at least a page
    bool side_band = true;                ///< also MMAP2, COMM, FORK and EXIT of every process on the CPU
  };

  /// Opens and maps, but does not enable. Wakes a poll only when half full: who wants data earlier comes and looks.
  static Result<PerfRing> open(int cpu, const Options& options);

  PerfRing(PerfRing&& other) noexcept;
  PerfRing& operator=(PerfRing&& other) noexcept;
  ~PerfRing();

  Status enable();

  /// Calls `visit(std::span<const std::byte>)` with each record that is complete, oldest first. The span is valid
  /// during the call only. Space is given back to the kernel at the end.
  template <typename Visit>
  void drain(Visit&& visit) {
    const std::uint64_t head = read_head();
    std::uint64_t tail = read_tail();
    was_full_ = data_bytes_ - (head - tail) < kLargestRecordBytes;
    while (tail < head) {
      const std::span<const std::byte> record = record_at(tail, head);
      if (record.empty()) {
        tail = head;  // the chain of sizes is broken: nothing behind it can be trusted
        ++broken_;
        break;
      }
      tail += record.size();
      visit(record);
    }
    write_tail(tail);
  }

  [[nodiscard]] int fd() const { return event_.get(); }
  [[nodiscard]] int cpu() const { return cpu_; }
  /// Had the last drain found so little room that a record may have been refused? The kernel says so itself only with
  /// the next record that it writes, which is too late for what is drained now.
  [[nodiscard]] bool was_full() const { return was_full_; }
  /// How often the ring held something that is no record. Never, unless the kernel or memory is broken.
  [[nodiscard]] std::uint64_t broken() const { return broken_; }

 private:
  /// MMAP2 with a path of PATH_MAX, and a sample of all frames beside it.
  static constexpr std::size_t kLargestRecordBytes = 8192;

  PerfRing(int cpu, Fd event, std::byte* memory, std::size_t page_bytes, std::size_t data_bytes);

  [[nodiscard]] std::uint64_t read_head() const;
  [[nodiscard]] std::uint64_t read_tail() const;
  void write_tail(std::uint64_t tail);
  [[nodiscard]] std::span<const std::byte> record_at(std::uint64_t position, std::uint64_t head);
  void unmap();

  int cpu_;
  Fd event_;
  std::byte* memory_;  ///< one control page (perf_event_mmap_page), then the data
  std::size_t page_bytes_;
  std::size_t data_bytes_;
  std::vector<std::byte> wrapped_;  ///< a record that runs over the ring's end, put together
  std::uint64_t broken_ = 0;
  bool was_full_ = false;
};

}  // namespace flamed::daemon
