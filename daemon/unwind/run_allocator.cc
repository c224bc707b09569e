// SPDX-License-Identifier: Apache-2.0
#include "daemon/unwind/run_allocator.h"

#include <cstdlib>
#include <iterator>

namespace flamed::daemon {

RunAllocator::RunAllocator(std::uint32_t segments, std::uint32_t segment_size) : segment_size_(segment_size) {
  for (std::uint32_t segment = 0; segment < segments; ++segment) free_.emplace(segment * segment_size, segment_size);
}

std::optional<std::uint32_t> RunAllocator::allocate(std::uint32_t count) {
  if (count == 0 || count > segment_size_) return std::nullopt;
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const auto [first, length] = *it;
    if (length < count) continue;
    free_.erase(it);
    if (length > count) free_.emplace(first + count, length - count);
    used_ += count;
    return first;
  }
  return std::nullopt;
}

void RunAllocator::free(std::uint32_t first, std::uint32_t count) {
  auto next = free_.lower_bound(first);
  std::uint32_t length = count;
  const std::uint32_t segment = first / segment_size_;
  if (next != free_.end() && next->first < first + count) std::abort();  // freed twice
  if (next != free_.end() && next->first == first + count && next->first / segment_size_ == segment) {
    length += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second > first) std::abort();  // freed twice
    if (before->first + before->second == first && before->first / segment_size_ == segment) {
      before->second += length;
      used_ -= count;
      return;
    }
  }
  free_.emplace(first, length);
  used_ -= count;
}

bool RunAllocator::is_segment_free(std::uint32_t segment) const {
  const auto found = free_.find(segment * segment_size_);
  return found != free_.end() && found->second == segment_size_;
}

}  // namespace flamed::daemon
