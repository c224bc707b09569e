// SPDX-License-Identifier: Apache-2.0
//
// RunAllocator: keeps the free places of an array. Allocates runs of adjacent places that do not cross a segment's
// border. Knows nothing of the places' content.
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

  /// The first place of the lowest free run of `count`; empty if none fits. 1 <= count <= segment_size.
  std::optional<std::uint32_t> allocate(std::uint32_t count);

  /// Frees a whole run, as it was allocated.
  void free(std::uint32_t first, std::uint32_t count);

  [[nodiscard]] std::uint32_t used() const { return used_; }
  /// Is the whole segment free?
  [[nodiscard]] bool is_segment_free(std::uint32_t segment) const;

 private:
  const std::uint32_t segment_size_;
  std::map<std::uint32_t, std::uint32_t> free_;  ///< first place → length; never across a segment's border
  std::uint32_t used_ = 0;
};

}  // namespace flamed::daemon
