// SPDX-License-Identifier: Apache-2.0
//
// TableEditions: what a process's unwind tables have shown of its mappings. Ingest's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "symbolizer/process/mapping_set.h"

namespace flamed::symbolizer {

/// The mappings that a process's unwind tables have shown. Each edition has a number, which samples carry that were
/// walked by it: no clock tells to the instant when the kernel program went over from one to the next.
class TableEditions {
 public:
  /// The next edition. Its number stands in newest().
  void add(std::shared_ptr<const MappingSet> maps, MonotonicTime now);
  [[nodiscard]] std::uint16_t newest() const { return editions_.empty() ? 0 : editions_.back().number; }
  /// When that was added; 0 where there is none.
  [[nodiscard]] MonotonicTime newest_from() const {
    return editions_.empty() ? MonotonicTime{} : editions_.back().from;
  }
  /// Null: not known, or too old for a sample to be on its way still.
  [[nodiscard]] const MappingSet* find(std::uint16_t number) const;
  /// Frees what was replaced by `time`.
  void forget_replaced(MonotonicTime time);

 private:
  /// Batches that wait for ingest were drained before what it publishes now: each stands for one edition at most, and
  /// there are fewer of them (BatchQueues::kBatches, the reader's and the ring's).
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
