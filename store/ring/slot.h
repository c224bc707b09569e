// SPDX-License-Identifier: Apache-2.0
//
// Slots: the samples of one minute, or of a part of a minute with one period and one offset of the wall clock. The
// writer counts in an OpenSlot; a Slot is sealed, immutable and shared with readers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "store/containers/budget.h"
#include "store/containers/id_index.h"
#include "store/containers/shared_array.h"
#include "store/model/quality.h"
#include "store/ring/histogram.h"
#include "store/ring/sample_log.h"
#include "store/ring/wait_log.h"

namespace flamed::store {

/// [start, end) on the monotonic axis, and how to show it on the wall clock.
struct SlotBounds {
  MonotonicTime start;
  MonotonicTime end;
  std::int64_t wall_offset_ns = 0;  ///< wall - monotonic when the slot was opened
  std::int64_t period_ns = 0;       ///< the CPU time of each of its samples

  [[nodiscard]] bool covers(MonotonicTime time) const { return start <= time && time < end; }
  [[nodiscard]] WallTime wall_start() const { return {start.ns + wall_offset_ns}; }
  [[nodiscard]] WallTime wall_end() const { return {end.ns + wall_offset_ns}; }
};

/// The bounds of the slot for `time`, after a slot that ended at `previous_end`: the wall clock's minute, without the
/// part that the previous slot covers. The wall clock drifts against the monotonic one, so a piece of less than a
/// second is added to its neighbour.
SlotBounds next_bounds(MonotonicTime time, std::optional<MonotonicTime> previous_end, std::int64_t wall_offset_ns,
                       std::int64_t period_ns);

/// A wait that began before the slots that were open when it was known to be over.
struct LongWait {
  std::uint32_t thread = 0;
  std::uint32_t stack_key = 0;  ///< StackRef
  MonotonicTime from, to;
};

/// Waits have other sums than the samples of the same slots (SlotRun::editions).
inline constexpr std::uint32_t kWaitsEdition = 1U << 24;

/// A sealed slot.
struct Slot {
  SlotBounds bounds;
  std::uint32_t sequence = 0;  ///< ascending in the order of opening, from 1
  Quality quality{};
  Histogram histogram{};
  std::uint32_t edition = 0;  ///< how often a smaller copy has replaced it
  /// Waiting time in the same bounds, in units of kWaitUnitNs; null: none.
  std::shared_ptr<const Slot> waits{};
  /// Only of `waits`: of long waits that ended in it, the part before it.
  std::vector<LongWait> long_waits{};
  std::int64_t resolution_ns = kNsPerMinute;  ///< it is of a minute, or of several on disk
  /// Only of minutes on disk, if it was known: CPU time of the machine in the kernel's accounts.
  std::optional<std::uint64_t> cpu_ns_accounted{};

  [[nodiscard]] std::size_t bytes() const {
    return sizeof(Slot) + 2 * sizeof(void*) + histogram.byte_count() + long_waits.size() * sizeof(LongWait) +
           (waits != nullptr ? waits->bytes() : 0);
  }
};

/// A sealed slot, and its single samples and waits as long as they are kept, else null. Their entries are numbered as
/// the stacks of the histogram are visited, those of waits as in the histogram of `Slot::waits`.
struct SealedSlot {
  std::shared_ptr<const Slot> slot;
  std::shared_ptr<const SampleLog> log{};
  std::shared_ptr<const WaitLog> wait_log{};
};

/// How to reduce the samples of some threads, to free their stacks.
struct Thinning {
  std::function<bool(std::uint32_t thread)> is_meant;
  /// Replaces all their stacks. Empty: the samples are dropped.
  std::optional<StackRef> instead;
  /// How a stack of a slot ended; empty: whole.
  std::function<std::optional<Truncation>(StackRef)> truncation_of;
};

/// The copy that replaces the slot, with its logs, if it has some. Adds the number of samples whose stacks were dropped
/// to `samples`.
SealedSlot thin(const SealedSlot& sealed, const Thinning& how, std::uint64_t& samples);

/// Writer only, except the view. Must not outlive its budgets.
class OpenSlot {
 public:
  using Entries = SharedArray<HistogramEntry, 1024, NoStamp>;

  /// An immutable copy of the slot, for a snapshot.
  struct View {
    SlotBounds bounds;
    std::uint32_t sequence = 0;
    Quality quality{};
    Entries::View entries{};
    std::uint32_t entry_count = 0;
    OpenSampleLog::View log{};  ///< its entries are indexes into `entries`
    std::shared_ptr<const View> waits{};
    std::optional<OpenWaitLog::View> wait_log{};  ///< its entries are indexes into those of `waits`
    std::vector<LongWait> long_waits{};

    /// The slot as if it ended then, without its log and its waits.
    [[nodiscard]] Slot until(MonotonicTime time) const;
  };

  /// The last places are reserved for stacks that were cut for lack of room, so that a slot without room for new
  /// entries can still count samples by thread.
  enum class Room : std::uint8_t { kOrdinary, kReserve };
  enum class Counted : std::uint8_t { kAgain, kFirstTime, kNoRoom };
  struct Count {
    Counted counted = Counted::kNoRoom;
    std::uint32_t entry = 0;  ///< for the log; meaningless with kNoRoom
  };

  OpenSlot(Budget& budget, Budget& log_budget, SlotBounds slot_bounds, std::uint32_t slot_sequence);
  ~OpenSlot();
  OpenSlot(const OpenSlot&) = delete;
  OpenSlot& operator=(const OpenSlot&) = delete;

  /// With kFirstTime the caller must mark the thread and the stack as used by this slot.
  Count count(std::uint32_t thread, StackRef ref, Room room, std::uint32_t amount = 1);
  /// The slot of the waiting time in these bounds. Its single waits are in `wait_log` of this one.
  OpenSlot& waits();
  /// False: there is no room.
  bool add_long_wait(const LongWait& wait);

  [[nodiscard]] View view();
  /// A sealed copy. It is not in the budgets yet.
  [[nodiscard]] SealedSlot seal();
  [[nodiscard]] std::uint32_t entry_count() const { return static_cast<std::uint32_t>(entries_.size()); }

  SlotBounds bounds;
  const std::uint32_t sequence;
  Quality quality;
  OpenSampleLog log;
  OpenWaitLog wait_log;

 private:
  static constexpr std::size_t kReserveCount = 256;

  [[nodiscard]] SlotBounds bounds_of_waits() const;
  /// Without the waits. `places`: where each entry went.
  [[nodiscard]] Slot seal_counts(std::vector<std::uint32_t>& places);

  static std::uint64_t hash_of(std::uint32_t thread, std::uint32_t stack_key) {
    return mix((std::uint64_t{thread} << 32) | stack_key);
  }

  Budget& budget_;
  Budget& log_budget_;
  Entries entries_;  ///< ids ascend without gaps: entries are never released
  IdIndex index_;
  std::unique_ptr<OpenSlot> waits_;  ///< null: none yet
  std::vector<LongWait> long_waits_;
};

}  // namespace flamed::store
