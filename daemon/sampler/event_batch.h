// SPDX-License-Identifier: Apache-2.0
//
// EventBatch: the events of one drain of all CPUs, in the order of time: the value that the reader passes to ingest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "bpf/linked_layout.h"
#include "daemon/sampler/record.h"
#include "daemon/sampler/side_band_shares.h"
#include "store/model/gap.h"

namespace flamed::daemon {

/// Counts of the kernel program between two drains.
struct SampleCounts {
  std::uint64_t taken = 0;
  std::uint64_t submitted = 0;
  std::uint64_t lost_ring_full = 0;
  std::uint64_t lost_no_ring = 0;
  std::uint64_t run_ns = 0;                      ///< CPU time of the kernel program
  std::uint64_t sliced = 0, slices_refused = 0;  ///< samples with a slice of their stack, and without for lack of room
};

/// A stretch of time without samples.
struct SamplingGap {
  MonotonicTime from;
  MonotonicTime to;
  std::int64_t suspended_ns = 0;  ///< time in suspend, in which the monotonic clock stood still; to be added
  store::GapReason reason = store::GapReason::kTimerSilent;
  std::optional<std::uint16_t> cpu{};  ///< empty: all
};

/// Reused for each drain, so that a steady state allocates nothing. Owned by one thread at a time.
class EventBatch {
 public:
  struct Event {
    MonotonicTime time;
    std::uint32_t word = 0;   ///< where the body starts in the batch's memory, in units of 8 bytes
    std::uint32_t bytes = 0;  ///< length of the body
    RecordKind kind = RecordKind::kOther;
    bool comm_is_exec = false;
    std::uint16_t cpu = 0;
  };

  /// Copies the body, 8-byte aligned.
  void append(const RecordHead& head) {
    const std::size_t word = memory_.size();
    memory_.resize(word + (head.body.size() + 7) / 8);
    if (!head.body.empty()) std::memcpy(memory_.data() + word, head.body.data(), head.body.size());
    events_.push_back({head.time, static_cast<std::uint32_t>(word), static_cast<std::uint32_t>(head.body.size()),
                       head.kind, head.comm_is_exec, head.cpu});
  }

  /// The visit at this index has its slice there, see flamed_sample.
  void set_slice(std::size_t index, std::uint16_t cpu, std::uint16_t place, std::uint16_t blocks) {
    Event& event = events_[index];
    event.cpu = cpu;
    auto* const wait = reinterpret_cast<flamed_wait*>(memory_.data() + event.word);
    auto* const sample = reinterpret_cast<flamed_sample*>(wait + 1);
    sample->slice_place = place;
    sample->slice_blocks = blocks;
  }

  /// What became of the stack of the visit at this index: enum flamed_wait_stack.
  void set_stack(std::size_t index, std::uint32_t outcome) {
    reinterpret_cast<flamed_wait*>(memory_.data() + events_[index].word)->stack = static_cast<__u8>(outcome);
  }

  /// The lock for which that thread waits is held by this one.
  void set_holder(std::size_t index, std::uint32_t tid, std::span<const char, FLAMED_COMM_BYTES> comm) {
    auto* const wait = reinterpret_cast<flamed_wait*>(memory_.data() + events_[index].word);
    wait->holder = tid;
    std::memcpy(wait->holder_comm, comm.data(), comm.size());
  }

  [[nodiscard]] std::span<const std::byte> body(const Event& event) const {
    return {reinterpret_cast<const std::byte*>(memory_.data() + event.word), event.bytes};
  }

  [[nodiscard]] const std::vector<Event>& events() const { return events_; }
  [[nodiscard]] std::size_t bytes() const { return memory_.size() * sizeof(std::uint64_t); }
  [[nodiscard]] bool empty() const { return events_.empty(); }
  /// No events, no losses, and no copies for samples to come.
  [[nodiscard]] bool is_uneventful() const {
    return events_.empty() && gaps.empty() && malformed == 0 && !side_band_lost_from && muted.empty() &&
           code_copies.empty() && counts.lost_ring_full == 0 && counts.lost_no_ring == 0;
  }

  /// Sorts events and `muted` by time and moves those later than `cutoff` to `later`: another CPU's ring, drained a
  /// moment earlier, may still have older events.
  void sort_and_split(MonotonicTime cutoff, EventBatch& later);

  void clear();

  SampleCounts counts;  ///< since the last batch
  MonotonicTime drained_at;
  MonotonicTime drained_before;   ///< time of the drain before this one
  std::vector<SamplingGap> gaps;  ///< found since the last batch
  std::uint64_t malformed = 0;    ///< records that could not be decoded
  std::int64_t period_ns = 0;     ///< of the timers at the drain: the period of later samples; 0: unchanged
  bool has_side_band = true;      ///< does the kernel report mappings, forks and exits at all?
  /// Side-band records were lost, none before this time: the state of processes may be out of date.
  std::optional<MonotonicTime> side_band_lost_from;
  /// A round of visits to all waiting threads. The records of what it found are older than its end.
  struct Round {
    MonotonicTime began, ended;
    /// Owners whose threads were not all visited, and since when they were.
    std::vector<std::pair<std::uint32_t, MonotonicTime>> late{};
  };
  std::vector<Round> rounds;  ///< since the last batch, oldest first
  /// How many threads of programs the last of them has found; empty: there was none.
  struct ThreadCount {
    MonotonicTime time;  ///< of the middle of the round
    std::size_t threads = 0;
  };
  std::optional<ThreadCount> threads{};
  /// Processes whose records were skipped, see SideBandShares.
  std::vector<SideBandShares::Muted> muted;
  /// Code that these samples or later ones have met.
  std::vector<flamed_code_copy> code_copies;

 private:
  void sort();

  std::vector<Event> events_;
  std::vector<std::ptrdiff_t> ends_of_runs_;  ///< scratch of sort()
  std::vector<std::uint64_t> memory_;
};

}  // namespace flamed::daemon
