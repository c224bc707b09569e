// SPDX-License-Identifier: Apache-2.0
//
// Store: the recent past. A ring of one-minute slots over one interned call-tree, bounded in time and in bytes.
//
// One thread writes (ingest); any thread may take a Snapshot, which never changes afterwards, and work on it for as
// long as it likes without holding the writer up.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/identity.h"
#include "store/model/gap.h"
#include "store/model/process_info.h"
#include "store/model/quality.h"
#include "store/ring/snapshot.h"

namespace flamed::store {

struct Limits {
  std::int64_t retention_ns = 24 * 60 * kNsPerMinute;
  std::size_t budget_bytes = 256U << 20;
  /// The part of `budget_bytes` in which the newest minutes' samples are kept one by one, in the order of time. The
  /// minutes' histograms have the rest. Empty: a quarter, which at 99 Hz lasts 8 busy CPUs for more than three hours.
  std::optional<std::size_t> exact_budget_bytes{};
};

/// One normalised sample. Borrowed for the length of add().
struct StackSample {
  MonotonicTime time;
  ProcessId process;
  std::int32_t tid = 0;
  std::string_view comm;          ///< the thread's name
  std::span<const Frame> frames;  ///< outermost first; may be empty
  std::optional<Truncation> truncation;
  std::uint16_t cpu = 0;
  std::uint32_t owner = kNoUser;  ///< the user whose thread it was; kNoUser: nobody's alone
  bool is_hidden = false;         ///< that user may not look into the process: see seen_by()
};

/// Figures for /metrics and for tests. Bytes are what the store accounts against its budget.
struct StoreStats {
  Quality quality;  ///< since start
  std::size_t used_bytes = 0;
  std::size_t budget_bytes = 0;
  std::size_t slots = 0;
  std::size_t histogram_entries = 0;                              ///< over all slots
  std::size_t sealed_bytes = 0;                                   ///< of the sealed slots
  std::size_t nodes = 0, frames = 0, threads = 0, processes = 0;  ///< live
  std::uint64_t slots_dropped_for_age = 0;
  std::uint64_t slots_dropped_for_budget = 0;
  std::uint64_t slots_dropped_for_memory = 0;  ///< because give_back() was asked for
  std::uint64_t given_back_bytes = 0;          ///< likewise
  std::optional<WallTime> oldest;              ///< start of the oldest slot held, or of sampling in it
  std::size_t exact_bytes = 0;                 ///< of samples that are kept one by one; part of used_bytes
  std::size_t exact_budget_bytes = 0;          ///< the most that exact_bytes may be
  std::size_t exact_samples = 0;
  /// Start of the oldest minute since which samples are kept one by one, or of sampling in it.
  std::optional<WallTime> exact_from;
  std::array<GapLog::Total, kGapReasonCount> gaps{};  ///< since start
  // What users lost who had more than a share while others needed room, since start. `quality` is not changed by it: it
  // tells how samples ended when they came.
  std::uint64_t stacks_given_up = 0;            ///< samples whose stacks went
  std::uint64_t samples_dropped_for_share = 0;  ///< whose minutes have nothing of the user any more
  std::uint64_t stacks_cut_for_share = 0;       ///< samples that came while the user had no room for new stacks
  std::vector<std::uint32_t> above_share;       ///< the users who lost something in the last minutes
};

class Store {
 public:
  Store(Limits limits, const Clock& clock, std::int64_t period_ns);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // -- Writer: the ingest thread only --------------------------------------------------------------------------------

  /// Sampling begins now: there is nothing to be known of the time before. Without it that is when the store was made.
  void begin();

  /// Counts the sample in exactly one bucket: stored whole, stored truncated, or lost.
  void add(const StackSample& sample);

  /// Counts samples that never arrived. They belong to the slot of `when`.
  void add_lost(Loss reason, std::uint64_t count, MonotonicTime when);

  /// Tells that samples of a stretch of time are missing. Answers about it say so. Kept as long as slots are.
  void add_gap(const Gap& gap);

  /// Creates or replaces what is known of a process. Kept for as long as a slot names the process.
  void update_process(const ProcessInfo& info);

  /// The same where all that is new is the process's end. False: the process is unknown.
  bool end_process(ProcessId id, WallTime ended);

  /// Samples from `from` on weigh this much, those before what they did. Closes the open slot there, so that every slot
  /// has one period. No earlier than the newest sample.
  void set_period_ns(std::int64_t period_ns, MonotonicTime from);

  /// Seals slots whose minute is over, drops what is too old or over budget, reclaims what only they named. Over
  /// budget, users who have more than a share lose their own oldest stacks, and then what is left of these samples;
  /// only where nobody has, the oldest minutes go. Cheap when there is nothing to do; call it at every drain.
  void advance(MonotonicTime now);

  /// Every module that a stored stack names, sorted. Empty unless stacks were reclaimed since the last call:
  /// the caller may then free modules that are not in it.
  std::optional<std::vector<ModuleId>> take_live_modules();

  // -- Readers: any thread --------------------------------------------------------------------------------------------

  [[nodiscard]] Snapshot snapshot() const;

  /// Another number whenever the writer has added something. Costs nothing.
  [[nodiscard]] std::uint64_t revision() const;

  [[nodiscard]] StoreStats stats() const;

  /// Memory is short: at its next advance() the writer frees this much, first of samples that are kept one by one,
  /// the oldest first, then of the oldest minutes. Any thread.
  void give_back(std::size_t bytes);

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace flamed::store
