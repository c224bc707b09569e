// SPDX-License-Identifier: Apache-2.0
//
// RunAllocator: which places of an array are free. Hands out runs of neighbouring places that do not cross the border
// of a segment. Pure bookkeeping: knows nothing of what the places hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace flamed::daemon {

class RunAllocator {
 public:
  /// `segments` segments of `segment_size` places each.
  RunAllocator(std::uint32_t segments, std::uint32_t segment_size);

  /// The first place of a run of `count`, where the lowest fits; empty when none does. 1 <= count <= segment_size.
  std::optional<std::uint32_t> allocate(std::uint32_t count);

  /// Gives a run back, whole as it was allocated.
  void free(std::uint32_t first, std::uint32_t count);

  [[nodiscard]] std::uint32_t used() const { return used_; }
  /// Is nothing of the segment handed out?
  [[nodiscard]] bool is_segment_free(std::uint32_t segment) const;

 private:
  const std::uint32_t segment_size_;
  std::map<std::uint32_t, std::uint32_t> free_;  ///< first place → length; never across a segment's border
  std::uint32_t used_ = 0;
};

}  // namespace flamed::daemon
