// SPDX-License-Identifier: Apache-2.0
//
// TableEditions: the mappings that a process's unwind tables have had. For the ingest thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "symbolizer/process/mapping_set.h"

namespace flamed::symbolizer {

/// Each edition has a number, which samples walked by it have: no clock shows exactly when the kernel program changed
/// from one to the next.
class TableEditions {
 public:
  /// Adds the next edition. newest() has its number.
  void add(std::shared_ptr<const MappingSet> maps, MonotonicTime now);
  [[nodiscard]] std::uint16_t newest() const { return editions_.empty() ? 0 : editions_.back().number; }
  /// When the newest was added; 0 if there is none.
  [[nodiscard]] MonotonicTime newest_from() const {
    return editions_.empty() ? MonotonicTime{} : editions_.back().from;
  }
  /// Null: not known, or too old for samples that have not arrived yet.
  [[nodiscard]] const MappingSet* find(std::uint16_t number) const;
  /// Frees editions that were replaced by `time`.
  void forget_replaced(MonotonicTime time);

 private:
  /// Waiting batches were drained before the tables that ingest publishes now: each has at most one edition, and there
  /// are fewer batches than this (BatchQueues::kBatches, the reader's and the ring's).
  static constexpr std::size_t kMost = 16;
  struct Edition {
    std::uint16_t number;
    MonotonicTime from;
    std::shared_ptr<const MappingSet> maps;
  };
  std::vector<Edition> editions_;  ///< oldest first
  std::uint16_t next_ = 1;
};

}  // namespace flamed::symbolizer
