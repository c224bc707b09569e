// SPDX-License-Identifier: Apache-2.0
#include "runtimes/hotspot/code_finder.h"

#include <algorithm>
#include <cstddef>
#include <span>

namespace flamed::runtimes {
namespace {

constexpr std::uint64_t kMostHeaps = 8;
/// A step goes back 254 segments at most: 4 MiB of code, where a compiled method has less than one.
constexpr int kMostSteps = 256;
constexpr std::uint8_t kFree = 0xff;

}  // namespace

Result<HotSpotCodeFinder> HotSpotCodeFinder::open(RemoteMemory& memory, const HotSpotLayout& layout,
                                                  std::uint64_t base) {
  const HotSpotCodeHeaps& places = layout.heaps;
  HotSpotCodeFinder finder(memory, layout);
  std::vector<std::uint64_t> addresses;
  if (places.one_heap != 0) {
    if (const auto heap = read_number<std::uint64_t>(memory, base + places.one_heap)) addresses.push_back(*heap);
  } else if (const auto array = read_number<std::uint64_t>(memory, base + places.heaps); array && *array != 0) {
    const auto length = read_number<std::uint32_t>(memory, *array + places.array_length.offset).value_or(0);
    const auto data = read_number<std::uint64_t>(memory, *array + places.array_data.offset).value_or(0);
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(length, kMostHeaps); ++i) {
      if (const auto heap = read_number<std::uint64_t>(memory, data + i * sizeof(std::uint64_t)))
        addresses.push_back(*heap);
    }
  }
  for (const std::uint64_t address : addresses) {
    const std::optional<Heap> heap = finder.read_heap(address);
    const auto overlaps = [&](const Heap& other) { return heap->low < other.high && other.low < heap->high; };
    if (heap && std::none_of(finder.heaps_.begin(), finder.heaps_.end(), overlaps)) finder.heaps_.push_back(*heap);
  }
  if (finder.heaps_.empty()) return Error("HotSpot: its code heaps can't be read");
  return finder;
}

std::optional<HotSpotCodeFinder::Heap> HotSpotCodeFinder::read_heap(std::uint64_t address) {
  const HotSpotCodeHeaps& places = layout_.heaps;
  const auto in_space = [&](const HotSpotPlace& space, const HotSpotPlace& member) {
    return read_number<std::uint64_t>(memory_, address + space.offset + member.offset).value_or(0);
  };
  const Heap heap{in_space(places.memory, places.low), in_space(places.memory, places.high),
                  in_space(places.segment_map, places.low), in_space(places.segment_map, places.high),
                  read_number<std::uint32_t>(memory_, address + places.log2_segment_bytes.offset).value_or(0)};
  constexpr unsigned kMostLog2 = 16;
  if (address == 0 || heap.low == 0 || heap.low >= heap.high || heap.map == 0 || heap.log2_segment_bytes == 0 ||
      heap.log2_segment_bytes > kMostLog2) {
    return std::nullopt;
  }
  return heap;
}

std::vector<HotSpotCodeFinder::Range> HotSpotCodeFinder::ranges() const {
  std::vector<Range> ranges;
  for (const Heap& heap : heaps_) ranges.push_back({heap.low, heap.high});
  return ranges;
}

std::optional<std::uint64_t> HotSpotCodeFinder::find(std::uint64_t address) {
  const HotSpotCodeHeaps& places = layout_.heaps;
  for (const Heap& heap : heaps_) {
    if (address < heap.low || address >= heap.high) continue;
    std::uint64_t segment = (address - heap.low) >> heap.log2_segment_bytes;
    for (int steps = 0; steps < kMostSteps; ++steps) {
      if (segment >= heap.map_end - heap.map) return std::nullopt;
      const auto back = read_number<std::uint8_t>(memory_, heap.map + segment);
      if (!back || *back == kFree || *back > segment) return std::nullopt;
      if (*back == 0) {
        const std::uint64_t block = heap.low + (segment << heap.log2_segment_bytes);
        const auto is_used = read_number<std::uint8_t>(memory_, block + places.block_is_used.offset);
        return is_used && *is_used != 0 ? std::optional(block + places.block_head_bytes) : std::nullopt;
      }
      segment -= *back;
    }
  }
  return std::nullopt;
}

}  // namespace flamed::runtimes
