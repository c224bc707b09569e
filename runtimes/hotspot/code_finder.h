// SPDX-License-Identifier: Apache-2.0
//
// HotSpotCodeFinder: from an address in a HotSpot's code cache to the blob of code that has it. The cache has one to
// three heaps, each divided into segments of 64 or 128 bytes. A map has a byte for each segment: how many segments to
// go back, as often as needed, to where its block starts.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "runtimes/hotspot/layout.h"
#include "runtimes/remote_memory.h"

namespace flamed::runtimes {

class HotSpotCodeFinder {
 public:
  /// `layout` is that of the module that the process has at `base`. `memory` and `layout` must outlive it.
  static Result<HotSpotCodeFinder> open(RemoteMemory& memory, const HotSpotLayout& layout, std::uint64_t base);

  struct Range {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
  };
  /// Where code lies.
  [[nodiscard]] std::vector<Range> ranges() const;

  /// The address of the blob. Empty: there is none.
  std::optional<std::uint64_t> find(std::uint64_t address);

 private:
  struct Heap {
    std::uint64_t low = 0;  ///< of its memory in use
    std::uint64_t high = 0;
    std::uint64_t map = 0;
    std::uint64_t map_end = 0;
    unsigned log2_segment_bytes = 0;
  };
  HotSpotCodeFinder(RemoteMemory& memory, const HotSpotLayout& layout) : memory_(memory), layout_(layout) {}
  std::optional<Heap> read_heap(std::uint64_t address);

  RemoteMemory& memory_;
  const HotSpotLayout& layout_;
  std::vector<Heap> heaps_;
};

}  // namespace flamed::runtimes
