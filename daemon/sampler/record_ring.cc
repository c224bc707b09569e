// SPDX-License-Identifier: Apache-2.0
#include "daemon/sampler/record_ring.h"

#include <linux/perf_event.h>

#include <cstring>

namespace flamed::daemon {

std::span<const std::byte> RecordRing::record_at(std::uint64_t position, std::uint64_t head) {
  const std::size_t start = position & (data_.size() - 1);

  // Records are multiples of 8 bytes and so is the ring: a header never wraps around.
  perf_event_header header;
  std::memcpy(&header, data_.data() + start, sizeof(header));
  const std::size_t size = header.size;
  if (size < sizeof(header) || size % 8 != 0 || size > head - position) return {};

  if (start + size <= data_.size()) return data_.subspan(start, size);
  wrapped_.resize(size);
  const std::size_t first = data_.size() - start;
  std::memcpy(wrapped_.data(), data_.data() + start, first);
  std::memcpy(wrapped_.data() + first, data_.data(), size - first);
  return wrapped_;
}

}  // namespace flamed::daemon
