// SPDX-License-Identifier: Apache-2.0
//
// Store: the recent past. A ring of one-minute slots over one interned call-tree, bounded in time and in bytes.
//
// One thread writes (ingest); any thread may take a Snapshot, which never changes, and work on it as long as it likes
// without blocking the writer.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/identity.h"
#include "store/model/gap.h"
#include "store/model/pending_sample.h"
#include "store/model/process_info.h"
#include "store/model/quality.h"
#include "store/model/wait_reason.h"
#include "store/model/waits_seen.h"
#include "store/ring/snapshot.h"

namespace flamed::store {

struct Limits {
  std::int64_t retention_ns = 24 * 60 * kNsPerMinute;
  std::size_t budget_bytes = 256U << 20;
  /// The part of `budget_bytes` for single samples and waits of the newest minutes. The minutes' histograms have the
  /// rest. Empty: a quarter, which at 99 Hz is enough for more than three hours of 8 busy CPUs.
  std::optional<std::size_t> exact_budget_bytes{};
};

/// One normalised sample. Borrowed for the duration of add().
struct StackSample {
  MonotonicTime time;
  ProcessId process;
  std::int32_t tid = 0;
  std::string_view comm;          ///< the thread's name
  std::span<const Frame> frames;  ///< outermost first; may be empty
  std::optional<Truncation> truncation;
  std::uint16_t cpu = 0;
  std::uint32_t owner = kNoUser;  ///< the thread's owner; kNoUser: no single user
  bool is_hidden = false;         ///< the process is not dumpable: see seen_by()
};

/// A visit of a waiting thread. Borrowed for the duration of add_wait().
struct WaitSample {
  /// The wait that it was found in: `time` is that of the visit, the last frame says why (wait_frame()).
  StackSample sample{};
  /// The stack has the part in user space, as far as it could be walked.
  bool has_user_stack = false;
  /// It was known to be in this wait. Nothing below is set then.
  bool is_known = false;
  /// When it was last seen in its wait before. Empty: not known.
  std::optional<MonotonicTime> last_seen{};
  std::int64_t waited_ns = 0;  ///< since then, in waits of which this one is a sample
  std::int64_t queued_ns = 0;  ///< since then, in run queues, if it was not found there
  std::int64_t disk_ns = 0;    ///< for block devices, where no visit has seen it
};

/// Numbers for /metrics and for tests. Bytes are counted against the store's budget.
struct StoreStats {
  Quality quality;  ///< since start
  std::size_t used_bytes = 0;
  std::size_t budget_bytes = 0;
  std::size_t slots = 0;
  std::size_t histogram_entries = 0;                              ///< over all slots
  std::size_t sealed_bytes = 0;                                   ///< of the sealed slots
  std::size_t nodes = 0, frames = 0, threads = 0, processes = 0;  ///< live
  std::size_t waiting_threads = 0;                                ///< whose waits are known
  std::uint64_t slots_dropped_for_age = 0;
  std::uint64_t slots_dropped_for_budget = 0;
  std::uint64_t slots_dropped_for_memory = 0;  ///< by give_back()
  std::uint64_t given_back_bytes = 0;          ///< likewise
  std::optional<WallTime> oldest;              ///< start of the oldest slot held, or of sampling in it
  std::size_t exact_bytes = 0;                 ///< of single samples and waits; part of used_bytes
  std::size_t exact_budget_bytes = 0;          ///< the limit of exact_bytes
  std::size_t exact_samples = 0;
  std::size_t exact_waits = 0;
  /// Start of the oldest minute with single samples, or of sampling in it.
  std::optional<WallTime> exact_from;
  std::array<GapLog::Total, kGapReasonCount> gaps{};  ///< since start
  // Losses of users who had more than a share while others needed room, since start. `quality` does not count them: it
  // counts samples as they arrive.
  std::uint64_t stacks_given_up = 0;            ///< samples whose stacks were dropped
  std::uint64_t samples_dropped_for_share = 0;  ///< samples that were dropped whole
  std::uint64_t stacks_cut_for_share = 0;       ///< samples that arrived while the user had no room for new stacks
  std::vector<std::uint32_t> above_share;       ///< users who lost something in the last minutes
};

class Store {
 public:
  Store(Limits limits, const Clock& clock, std::int64_t period_ns);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // -- Writer: the ingest thread only --------------------------------------------------------------------------------

  /// Sampling begins now. Without this call, it began when the store was created.
  void begin();

  /// Counts the sample in exactly one bucket: stored whole, stored truncated, or lost.
  void add(const StackSample& sample);

  /// Counts waiting time. The thread is taken to stay in the wait until its next visit, see set_waits_seen().
  void add_wait(const WaitSample& wait);
  /// The stack of the wait that the thread was found in at `sample.time` is known better now.
  void correct_wait(const StackSample& sample);
  /// The thread has ended.
  void end_wait(std::int32_t tid, MonotonicTime time);
  /// All threads were visited since `time`, those of owners in `late` since then: if they have no newer add_wait() they
  /// were still in their waits. `disk` is of all threads.
  void set_waits_seen(MonotonicTime time, DiskAccount disk = DiskAccount::kOfNone, const LateOwners& late = {});

  /// Replaces the list of samples that are to be added later. Answers count them.
  void set_pending(std::vector<PendingSample> pending);

  /// Counts samples that never arrived. They belong to the slot of `when`.
  void add_lost(Loss reason, std::uint64_t count, MonotonicTime when);

  /// Records that samples of a stretch of time are missing. Answers about it say so. Kept as long as slots.
  void add_gap(const Gap& gap);

  /// Creates or replaces the properties of a process. Kept as long as a slot refers to the process.
  void update_process(const ProcessInfo& info);

  /// The same if only the process's end is new. False: the process is unknown.
  bool end_process(ProcessId id, WallTime ended);

  /// Sets the period of samples from `from` on, which must not be before the newest sample. Closes the open slot there,
  /// so that every slot has one period.
  void set_period_ns(std::int64_t period_ns, MonotonicTime from);

  /// Seals slots whose minute is over, drops slots that are too old or over budget, and reclaims data that only they
  /// referred to. Over budget, users who have more than a share lose their own oldest stacks, and then these samples;
  /// only if no user has more than a share, the oldest minutes are dropped. Cheap if there is nothing to do; call it at
  /// every drain.
  void advance(MonotonicTime now);

  /// Seals all slots. Nothing is added any more.
  void finish(MonotonicTime now);

  /// Every module of stored stacks, sorted. Empty unless stacks were reclaimed since the last call: the caller may then
  /// free modules that are not in it.
  std::optional<std::vector<ModuleId>> take_live_modules();

  // -- Readers: any thread --------------------------------------------------------------------------------------------

  [[nodiscard]] Snapshot snapshot() const;

  /// Waits until a slot with a higher sequence is sealed, and returns that of the newest. Empty: `stop` was requested,
  /// or none was sealed for so long.
  [[nodiscard]] std::optional<std::uint32_t> await_sealed(std::uint32_t sequence, const std::stop_token& stop,
                                                          std::chrono::nanoseconds longest) const;

  /// Changes whenever the writer has added something. Costs nothing.
  [[nodiscard]] std::uint64_t revision() const;

  [[nodiscard]] StoreStats stats() const;

  /// Memory is short: at its next advance() the writer frees this much, first of the oldest single samples, then of the
  /// oldest minutes. Any thread.
  void give_back(std::size_t bytes);

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace flamed::store
