// SPDX-License-Identifier: Apache-2.0
//
// SliceRing: a ring of slices in plain memory, and slices written as the kernel program writes them
// (bpf/sampler/slice_stack.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "bpf/events.h"
#include "bpf/stack_slice.h"

namespace flamed::test {

class SliceRing {
 public:
  [[nodiscard]] flamed_slice_ring& memory() { return *memory_; }

  /// `words` of stack from `sp` on. Returns the sample's fields of it.
  flamed_sample put(std::uint64_t pc, std::uint64_t sp, std::uint64_t fp, const std::vector<std::uint64_t>& words) {
    const std::uint64_t start = sp & ~std::uint64_t{FLAMED_SLICE_BLOCK_BYTES - 1};
    std::vector<std::byte> stack(sp - start + words.size() * sizeof(std::uint64_t));
    std::memcpy(stack.data() + (sp - start), words.data(), words.size() * sizeof(std::uint64_t));

    auto& head = reinterpret_cast<flamed_slice_head&>(block(memory_->head));
    head.parts[0].start = start;
    head.parts[0].bytes = stack.size();
    head.registers[FLAMED_PC_REGISTER] = pc;
    head.registers[FLAMED_SP_REGISTER] = sp;
    head.registers[FLAMED_FP_REGISTER] = fp;
    std::uint64_t blocks = 1;
    for (std::size_t at = 0; at < stack.size(); at += FLAMED_SLICE_BLOCK_BYTES, ++blocks) {
      const std::size_t bytes = std::min<std::size_t>(stack.size() - at, FLAMED_SLICE_BLOCK_BYTES);
      std::memcpy(&block(memory_->head + blocks), stack.data() + at, bytes);
    }
    flamed_sample sample{};
    sample.slice_place = static_cast<std::uint16_t>(memory_->head % FLAMED_SLICE_RING_BLOCKS);
    sample.slice_blocks = static_cast<std::uint16_t>(blocks);
    memory_->head += blocks;
    return sample;
  }

  /// Are all blocks empty?
  [[nodiscard]] bool is_clear() const {
    return std::all_of(std::begin(memory_->blocks), std::end(memory_->blocks), [](const flamed_slice_block& block) {
      return std::all_of(std::begin(block.words), std::end(block.words), [](std::uint64_t word) { return word == 0; });
    });
  }
  [[nodiscard]] std::uint64_t in_use() const { return memory_->head - memory_->tail; }

 private:
  flamed_slice_block& block(std::uint64_t number) { return memory_->blocks[number % FLAMED_SLICE_RING_BLOCKS]; }

  std::unique_ptr<flamed_slice_ring> memory_ = std::make_unique<flamed_slice_ring>();
};

}  // namespace flamed::test
