// SPDX-License-Identifier: Apache-2.0
//
// The single waits of one slot, in addition to its histogram of waiting time: from when to when, how much of that the
// thread waited, and pair of thread and stack. The writer has an OpenWaitLog; a WaitLog is sealed, immutable and shared
// with readers. What outlasts slots is not here (LongWait, StandingWait).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "store/containers/bit_fields.h"
#include "store/containers/budget.h"
#include "store/containers/shared_array.h"
#include "store/model/measure.h"

namespace flamed::store {

struct LoggedWait {
  MonotonicTime from, to;   ///< not empty
  std::uint32_t units = 0;  ///< of kWaitUnitNs, spread evenly over that time
  std::uint32_t entry = 0;  ///< number of the pair of thread and stack in the slot's waits, see SealedSlot

  /// The units in [from, end). Those of successive times add up to `units`.
  [[nodiscard]] std::uint64_t units_before(MonotonicTime end) const {
    const auto length = static_cast<double>(to.ns - from.ns);
    const auto part = static_cast<double>(std::clamp(end.ns, from.ns, to.ns) - from.ns);
    return static_cast<std::uint64_t>(static_cast<double>(units) * (part / length) + 0.5);
  }
};

/// Four columns of numbers, each as wide as its largest; times are rounded to kWaitUnitNs:
///
///   from, since the earliest of all; to - from; units; entry
///
/// A minute of 6,000 waits of about a second in 1,000 pairs needs 8 bytes a wait.
class WaitLog {
 public:
  WaitLog() = default;
  /// In any order.
  explicit WaitLog(const std::vector<LoggedWait>& waits);

  /// visit(const LoggedWait&)
  template <typename F>
  void for_each(F&& visit) const {
    const BitFields froms = column(kFrom);
    const BitFields lengths = column(kLength);
    const BitFields units = column(kUnits);
    const BitFields entries = column(kEntry);
    for (std::size_t i = 0; i < count_; ++i) {
      const std::int64_t from = first_.ns + static_cast<std::int64_t>(froms[i]) * kWaitUnitNs;
      visit(LoggedWait{{from},
                       {from + static_cast<std::int64_t>(lengths[i]) * kWaitUnitNs},
                       static_cast<std::uint32_t>(units[i]),
                       static_cast<std::uint32_t>(entries[i])});
    }
  }

  [[nodiscard]] std::size_t count() const { return count_; }
  /// When the earliest begins, and a moment in the one that ends last; meaningless in an empty log.
  [[nodiscard]] MonotonicTime first() const { return first_; }
  [[nodiscard]] MonotonicTime last() const { return last_; }
  [[nodiscard]] std::size_t bytes() const { return sizeof(WaitLog) + 2 * sizeof(void*) + bytes_.size(); }

 private:
  enum ColumnId : std::uint8_t { kFrom, kLength, kUnits, kEntry, kColumns };
  struct Column {
    std::uint32_t offset = 0;  ///< in bytes_
    std::uint32_t bits = 0;
  };
  [[nodiscard]] BitFields column(ColumnId id) const { return {bytes_.data() + columns_[id].offset, columns_[id].bits}; }

  std::vector<std::uint8_t> bytes_;
  std::array<Column, kColumns> columns_{};
  std::size_t count_ = 0;
  MonotonicTime first_;
  MonotonicTime last_;
};

/// Writer only, except the view. When there is no room for a wait, the log is discarded and takes no more, so that a
/// log is always complete. Must not outlive its Budget.
class OpenWaitLog {
 public:
  using Waits = SharedArray<LoggedWait, 1024, NoStamp>;

  /// The waits so far.
  class View {
   public:
    /// visit(const LoggedWait&)
    template <typename F>
    void for_each(F&& visit) const {
      waits_.for_each_below(count_, [&](std::uint32_t, const LoggedWait& wait) { visit(wait); });
    }
    [[nodiscard]] std::size_t count() const { return count_; }
    [[nodiscard]] MonotonicTime first() const { return first_; }
    [[nodiscard]] MonotonicTime last() const { return last_; }

   private:
    friend class OpenWaitLog;
    Waits::View waits_;
    std::uint32_t count_ = 0;
    MonotonicTime first_;
    MonotonicTime last_;
  };

  explicit OpenWaitLog(Budget& budget) : waits_(std::in_place, budget) {}

  /// Whether append() needs memory, and the budget has none.
  [[nodiscard]] bool needs_room() const { return waits_ && !waits_->has_room(1); }
  /// Without room the log is discarded.
  void append(const LoggedWait& wait);

  /// Empty: the waits were not kept.
  [[nodiscard]] std::optional<View> view();
  /// A sealed copy whose entries are `new_number[entry]`; null if the log was discarded. It is not in the budget yet.
  [[nodiscard]] std::shared_ptr<const WaitLog> seal(std::span<const std::uint32_t> new_number) const;

 private:
  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(waits_->size()); }

  std::optional<Waits> waits_;  ///< ids ascend without gaps: waits are never released
  MonotonicTime first_;
  MonotonicTime last_;
};

}  // namespace flamed::store
