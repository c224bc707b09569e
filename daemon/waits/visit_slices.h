// SPDX-License-Identifier: Apache-2.0
//
// VisitSlices: the rings through which slices of the stacks of waiting threads come to ingest, as those of samples do
// (bpf/stack_slice.h). A visit with a slice has the number of its ring in place of a CPU.
//
// The thread `waits` writes; ingest takes the slices, through StackSlices, which must not outlive this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/mapped_memory.h"
#include "bpf/visits.h"
#include "daemon/sampler/stack_slices.h"

namespace flamed::daemon {

class VisitSlices {
 public:
  /// Bytes of a stack, from the block of its stack pointer on. Eight of ten stacks are shorter.
  static constexpr std::size_t kStackBytes = std::size_t{8} * FLAMED_SLICE_BLOCK_BYTES;

  /// The rings' numbers: no machine has so many CPUs.
  static constexpr std::uint16_t kOfVisits = 0xff00;
  static constexpr std::uint16_t kOfExactMode = 0xff10;

  /// Without memory, which it logs, there are no slices. `first_ring`: one of the above, for each its own.
  explicit VisitSlices(StackSlices& slices, std::uint16_t first_ring = kOfVisits);

  /// Where a slice begins for this stack pointer.
  static std::uint64_t start_of(std::uint64_t stack_pointer) {
    return stack_pointer & ~std::uint64_t{FLAMED_SLICE_BLOCK_BYTES - 1};
  }

  struct Place {
    std::uint16_t ring = 0;
    std::uint16_t place = 0;   ///< flamed_sample.slice_place
    std::uint16_t blocks = 0;  ///< flamed_sample.slice_blocks
  };
  /// `stack` begins at start_of() the stack pointer. Empty: there is no room.
  std::optional<Place> put(const flamed_wait& wait, std::span<const std::byte> stack);

  /// Most of the room is used up.
  [[nodiscard]] bool is_filling() const;

 private:
  static constexpr std::size_t kRings = 4;

  const std::uint16_t first_ring_;
  MappedMemory memory_;
  std::span<flamed_slice_ring> rings_;
  std::size_t next_ = 0;
};

}  // namespace flamed::daemon
