// SPDX-License-Identifier: Apache-2.0
#include "daemon/waits/visit_slices.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

namespace flamed::daemon {

VisitSlices::VisitSlices(StackSlices& slices, std::uint16_t first_ring) : first_ring_(first_ring) {
  Result<MappedMemory> memory =
      MappedMemory::make_secret(kRings * sizeof(flamed_slice_ring), "slices of waiting threads' stacks");
  if (!memory) {
    spdlog::warn("no user stacks of waiting threads: {}", memory.error().message());
    return;
  }
  memory_ = std::move(memory).value();
  rings_ = memory_.as<flamed_slice_ring>();
  for (std::size_t i = 0; i < kRings; ++i) slices.add_ring(static_cast<int>(first_ring_ + i), rings_[i]);
}

std::optional<VisitSlices::Place> VisitSlices::put(const flamed_wait& wait, std::span<const std::byte> stack) {
  const std::size_t stack_blocks = (stack.size() + FLAMED_SLICE_BLOCK_BYTES - 1) / FLAMED_SLICE_BLOCK_BYTES;
  const std::size_t blocks = 1 + stack_blocks;
  for (std::size_t tried = 0; tried < rings_.size(); ++tried) {
    const std::size_t number = next_++ % rings_.size();
    flamed_slice_ring& ring = rings_[number];
    const std::uint64_t used = ring.head - __atomic_load_n(&ring.tail, __ATOMIC_ACQUIRE);
    if (stack_blocks > FLAMED_SLICE_BLOCKS || used + blocks > FLAMED_SLICE_RING_BLOCKS) continue;
    const auto block = [&](std::size_t i) { return &ring.blocks[(ring.head + i) % FLAMED_SLICE_RING_BLOCKS]; };
    flamed_slice_head head{};
    head.parts[0].start = start_of(wait.registers[FLAMED_SP_REGISTER]);
    head.parts[0].bytes = stack.size();
    std::copy(std::begin(wait.registers), std::end(wait.registers), head.registers);
    std::memcpy(block(0), &head, sizeof(head));
    for (std::size_t i = 0; i < stack_blocks; ++i) {
      const auto part = stack.subspan(i * FLAMED_SLICE_BLOCK_BYTES);
      std::memcpy(block(1 + i), part.data(), std::min<std::size_t>(part.size(), FLAMED_SLICE_BLOCK_BYTES));
    }
    const auto place = static_cast<std::uint16_t>(ring.head);
    __atomic_store_n(&ring.head, ring.head + blocks, __ATOMIC_RELEASE);
    return Place{static_cast<std::uint16_t>(first_ring_ + number), place, static_cast<std::uint16_t>(blocks)};
  }
  return std::nullopt;
}

bool VisitSlices::is_filling() const {
  return std::all_of(rings_.begin(), rings_.end(), [](const flamed_slice_ring& ring) {
    return ring.head - __atomic_load_n(&ring.tail, __ATOMIC_ACQUIRE) > FLAMED_SLICE_RING_BLOCKS / 2;
  });
}

}  // namespace flamed::daemon
