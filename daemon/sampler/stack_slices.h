// SPDX-License-Identifier: Apache-2.0
//
// StackSlices: the slices of user stacks that come with samples (bpf/stack_slice.h). A slice that is taken leaves its
// CPU's ring, whose blocks are cleared, and stays in memory of its own until it is walked. That memory is limited, is
// in no core dump and in no child process, and is cleared when the slice ends.
//
// The reader thread adds rings, ingest takes slices. Must not outlive the rings, and must outlive its slices.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include "base/mapped_memory.h"
#include "bpf/events.h"
#include "bpf/stack_slice.h"

namespace flamed::daemon {

class StackSlices {
 public:
  /// Slices that can exist at once.
  static constexpr std::size_t kMost = 256;

  /// A slice as it lies in memory.
  struct Content {
    flamed_slice_head head;
    flamed_slice_block stack[FLAMED_SLICE_BLOCKS];
  };

  /// The registers of a thread and the part of its stack from the stack pointer on; of a thread of a Go program a part
  /// of both its stacks, and what leads from one to the other.
  class Slice {
   public:
    ~Slice() {
      if (content_ != nullptr) owner_->free(*content_, blocks_);
    }
    Slice(Slice&& other) noexcept
        : owner_(other.owner_), content_(std::exchange(other.content_, nullptr)), blocks_(other.blocks_) {}
    Slice& operator=(Slice&& other) noexcept {
      std::swap(owner_, other.owner_);
      std::swap(content_, other.content_);
      std::swap(blocks_, other.blocks_);
      return *this;
    }

    /// By DWARF number.
    [[nodiscard]] std::array<std::uint64_t, FLAMED_REGISTERS> registers() const;
    /// Only of a thread of a Go program.
    [[nodiscard]] std::optional<std::uint64_t> thread_pointer() const;
    /// The 8 bytes at `address`; empty if they are not in the slice.
    [[nodiscard]] std::optional<std::uint64_t> read(std::uint64_t address) const;
    /// All words of its stacks.
    [[nodiscard]] std::span<const std::uint64_t> words() const;

   private:
    friend class StackSlices;
    Slice(StackSlices& owner, Content& content, std::size_t blocks)
        : owner_(&owner), content_(&content), blocks_(blocks) {}

    StackSlices* owner_;
    Content* content_;
    std::size_t blocks_;  ///< in use, with the head
  };

  /// Without memory, which it logs, there are no slices.
  StackSlices();

  /// `ring` is of this CPU from now on.
  void add_ring(int cpu, flamed_slice_ring& ring);

  /// The slice of a sample. Samples of one CPU come in the order in which they were taken; slices of samples that never
  /// come are dropped. Empty if the sample has none, if what it says can't be true, or if there is no room.
  std::optional<Slice> take(int cpu, const flamed_sample& sample);

 private:
  /// A whole number of pages: arm64 has some of 64 KiB.
  static constexpr std::size_t kPlaceBytes = std::size_t{64} << 10;
  static_assert(sizeof(Content) <= kPlaceBytes);

  /// Places that keep their pages: as many as a batch needs where programs are started all the time. 1.6 MiB.
  static constexpr std::size_t kKeptPlaces = 32;

  void free(Content& content, std::size_t blocks);

  MappedMemory memory_;
  std::priority_queue<Content*, std::vector<Content*>, std::greater<>> free_;  ///< the first places first
  std::mutex mutex_;  ///< guards the map; each ring belongs to ingest
  std::map<int, flamed_slice_ring*> rings_;
};

}  // namespace flamed::daemon
