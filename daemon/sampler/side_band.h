// SPDX-License-Identifier: Apache-2.0
//
// SideBand: the kernel's records of processes beside the samples: mappings, names, forks and ends, in a perf buffer of
// each CPU. Reads these buffers, skips records beyond their user's share (SideBandShares), and notes since when records
// may be missing. The caller decides which CPUs have a buffer.
//
// Belongs to the reader thread, except where a function says otherwise.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/thread_cpu.h"
#include "daemon/sampler/event_batch.h"
#include "daemon/sampler/perf_ring.h"
#include "daemon/sampler/record.h"
#include "daemon/sampler/record_ring.h"
#include "daemon/sampler/side_band_shares.h"

namespace flamed::daemon {

/// Records that were not read, since their users exceeded their shares.
struct SideBandSkipped {
  std::uint64_t records = 0;  ///< since start
  std::size_t processes = 0;  ///< with skipped records, at the last report()
  std::int64_t ns = 0;        ///< CPU time since start, for skipping them
};

class SideBand {
 public:
  /// One CPU's perf buffer, enabled.
  struct Buffer {
    PerfRing ring;
    MonotonicTime opened;
    MonotonicTime whole_until;  ///< what was lost before it is known of
    bool is_proven = false;     ///< was seen to be alive when it was no longer young

    /// While a CPU comes online, what is opened there may be dead at once: it is not judged before this has passed.
    [[nodiscard]] bool is_young(MonotonicTime now) const { return now.ns - opened.ns < 100 * kNsPerMs; }
  };

  explicit SideBand(const Clock& clock);
  SideBand(const Clock& clock, const SideBandShares::Limits& limits, SideBandShares::UserOf user_of)
      : clock_(clock), shares_(limits, std::move(user_of)) {}

  /// Where the kernel refuses to tell anything, and with `may_do_without`, all buffers stay empty from now on, and tell
  /// only when they die.
  Result<Buffer> open(int cpu, bool may_do_without);
  /// Asks the buffers whether they are alive. Returns the CPUs of those that are not proven now.
  static std::vector<int> prove(std::span<Buffer* const> buffers);

  /// Appends the records that are to be read.
  void drain(Buffer& buffer, EventBatch& batch) {
    buffer.whole_until = drain(buffer.ring.records(), buffer.ring.cpu(), buffer.whole_until, batch);
  }
  /// Of one CPU's records, which are whole until that time; returns until when they are now.
  [[nodiscard]] MonotonicTime drain(RecordRing& records, int cpu, MonotonicTime whole_until, EventBatch& batch);

  /// Calls `drain`, which drains buffers, and counts the CPU time of it for the records that were skipped, by their
  /// number. Only while some are: this clock is a system call. So what the first drain skips is not counted.
  template <typename Drain>
  void count_skipping(Drain&& drain) {
    if (muted_ == 0) return drain();
    const std::uint64_t read_before = read_;
    const std::uint64_t skipped_before = skipped_;
    const std::int64_t began_ns = read_cpu_clock(CLOCK_THREAD_CPUTIME_ID);
    drain();
    const std::uint64_t skipped = skipped_ - skipped_before;
    if (skipped == 0) return;
    const std::int64_t took_ns = read_cpu_clock(CLOCK_THREAD_CPUTIME_ID) - began_ns;
    const double part = static_cast<double>(skipped) / static_cast<double>(read_ - read_before);
    skipping_ns_ += static_cast<std::int64_t>(static_cast<double>(took_ns) * part);
  }

  /// Something was lost, none of it from before this time.
  void note_loss(MonotonicTime from) { lost_from_ = std::min(lost_from_.value_or(from), from); }
  /// Tells the batch of losses and of muted processes since the last call. Before the batch is split.
  void report(EventBatch& batch);

  // -- Any thread ---------------------------------------------------------------------------------------------------

  /// Does the kernel tell anything at all?
  [[nodiscard]] bool is_told() const { return is_told_; }
  [[nodiscard]] SideBandSkipped skipped() const { return {skipped_, muted_, skipping_ns_}; }

 private:
  void follow_programs(const RecordHead& head);
  [[nodiscard]] bool is_within_share(const RecordHead& head);
  void report_muted(std::span<const SideBandShares::Muted> muted);

  const Clock& clock_;
  SideBandShares shares_;
  std::optional<MonotonicTime> lost_from_{};
  std::optional<MonotonicTime> told_of_muted_{};  ///< when the log was
  std::uint64_t read_ = 0;                        ///< records, with those that were skipped
  std::atomic<bool> is_told_ = true;
  std::atomic<std::uint64_t> skipped_ = 0;
  std::atomic<std::size_t> muted_ = 0;
  std::atomic<std::int64_t> skipping_ns_ = 0;
};

}  // namespace flamed::daemon
