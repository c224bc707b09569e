// SPDX-License-Identifier: Apache-2.0
#include "daemon/sampler/stack_slices.h"

#include <spdlog/spdlog.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <iterator>

namespace flamed::daemon {

std::array<std::uint64_t, FLAMED_REGISTERS> StackSlices::Slice::registers() const {
  std::array<std::uint64_t, FLAMED_REGISTERS> registers{};
  std::copy(std::begin(content_->head.registers), std::end(content_->head.registers), registers.begin());
  return registers;
}

std::optional<std::uint64_t> StackSlices::Slice::thread_pointer() const {
  const std::uint64_t pointer = content_->head.go.thread_pointer;
  return pointer == 0 ? std::nullopt : std::optional(pointer);
}

std::optional<std::uint64_t> StackSlices::Slice::read(std::uint64_t address) const {
  std::uint64_t word = 0;
  const auto is_in = [&](std::uint64_t start, std::span<const std::byte> bytes) {
    const std::uint64_t offset = address - start;
    if (bytes.size() < sizeof(word) || offset > bytes.size() - sizeof(word)) return false;
    std::memcpy(&word, bytes.data() + offset, sizeof(word));
    return true;
  };
  std::span<const std::byte> rest = std::as_bytes(words());
  for (const auto& [start, size] : content_->head.parts) {
    const std::uint64_t bytes = std::min<std::uint64_t>(size, rest.size());
    if (is_in(start, rest.first(bytes))) return word;
    const std::uint64_t blocks = (bytes + FLAMED_SLICE_BLOCK_BYTES - 1) / FLAMED_SLICE_BLOCK_BYTES;
    rest = rest.subspan(blocks * FLAMED_SLICE_BLOCK_BYTES);
  }
  const flamed_slice_go& go = content_->head.go;
  const bool is_found = go.thread_pointer != 0 &&
                        (is_in(go.thread_pointer - sizeof(word), std::as_bytes(std::span(&go.current, 1))) ||
                         is_in(go.system, std::as_bytes(std::span(go.system_words))) ||
                         is_in(go.thread, std::as_bytes(std::span(go.thread_words))) ||
                         (go.goroutine != 0 && is_in(go.goroutine, std::as_bytes(std::span(go.goroutine_words)))));
  return is_found ? std::optional(word) : std::nullopt;
}

std::span<const std::uint64_t> StackSlices::Slice::words() const {
  const std::size_t bytes = (blocks_ - 1) * FLAMED_SLICE_BLOCK_BYTES;
  return {reinterpret_cast<const std::uint64_t*>(content_->stack), bytes / sizeof(std::uint64_t)};
}

StackSlices::StackSlices() {
  Result<MappedMemory> memory = MappedMemory::make_secret(kMost * kPlaceBytes, "slices of stacks");
  if (!memory) {
    spdlog::warn("no slices of stacks: {}", memory.error().message());
    return;
  }
  memory_ = std::move(memory).value();
  for (std::size_t i = 0; i < kMost; ++i) free_.push(reinterpret_cast<Content*>(memory_.data() + i * kPlaceBytes));
}

void StackSlices::free(Content& content, std::size_t blocks) {
  // Not memset(), which a compiler may leave out: nothing here reads the memory again.
  ::explicit_bzero(&content, blocks * FLAMED_SLICE_BLOCK_BYTES);
  const auto offset = static_cast<std::size_t>(reinterpret_cast<std::byte*>(&content) - memory_.data());
  if (offset >= kKeptPlaces * kPlaceBytes) ::madvise(&content, kPlaceBytes, MADV_DONTNEED);
  free_.push(&content);
}

void StackSlices::add_ring(int cpu, flamed_slice_ring& ring) {
  const std::lock_guard lock(mutex_);
  rings_.insert_or_assign(cpu, &ring);
}

std::optional<StackSlices::Slice> StackSlices::take(int cpu, const flamed_sample& sample) {
  // The first block is the head.
  if (sample.slice_blocks < 1 || sample.slice_blocks > 1 + FLAMED_SLICE_BLOCKS) return std::nullopt;
  flamed_slice_ring* ring = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto found = rings_.find(cpu);
    if (found == rings_.end()) return std::nullopt;
    ring = found->second;
  }
  const std::uint64_t begin = ring->tail;
  const std::uint64_t first = begin + (sample.slice_place - begin) % FLAMED_SLICE_RING_BLOCKS;
  const std::uint64_t end = first + sample.slice_blocks;
  if (end - begin > __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE) - begin) return std::nullopt;

  Content* const content = free_.empty() ? nullptr : free_.top();
  if (content != nullptr) free_.pop();
  auto* to = reinterpret_cast<flamed_slice_block*>(content);
  for (std::uint64_t at = begin; at != end; ++at) {
    flamed_slice_block& block = ring->blocks[at % FLAMED_SLICE_RING_BLOCKS];
    if (at >= first && to != nullptr) *to++ = block;
    ::explicit_bzero(&block, sizeof(block));
  }
  __atomic_store_n(&ring->tail, end, __ATOMIC_RELEASE);
  if (content == nullptr) return std::nullopt;
  return Slice(*this, *content, sample.slice_blocks);
}

}  // namespace flamed::daemon
