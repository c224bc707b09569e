// SPDX-License-Identifier: Apache-2.0
//
// Any memory as a JVM's code heap: reads are bounded, code lies within its heap, and its rows are in order. The memory
// repeats the input, so that pointers in it lead to something.
#include "runtimes/hotspot/code_heap.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "runtimes/remote_memory.h"

namespace {

using namespace flamed::runtimes;

class AnyMemory final : public RemoteMemory {
 public:
  AnyMemory(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}

  bool read(std::uint64_t address, std::span<std::byte> to) override {
    constexpr std::uint64_t kEnd = 1 << 20;
    if (size_ == 0 || address > kEnd || to.size() > kEnd - address || ++reads_ > 1'000'000) return false;
    for (std::size_t done = 0; done < to.size();) {
      const std::size_t from = (address + done) % size_;
      const std::size_t part = std::min(size_ - from, to.size() - done);
      std::memcpy(to.data() + done, data_ + from, part);
      done += part;
    }
    return true;
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
  int reads_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const bool has_offsets = (data[0] & 1) != 0;
  HotSpotLayout layout;
  layout.interpreter = 0x20;
  layout.stub_buffer = {8, 8};
  layout.stub_buffer_end = {20, 4};
  layout.stub_bytes = {8, 4};
  layout.stub_head_bytes = 16;
  layout.heaps.heaps = 0;
  layout.heaps.array_length = {0, 4};
  layout.heaps.array_data = {8, 8};
  layout.heaps.memory = {8, 8};
  layout.heaps.segment_map = {72, 8};
  layout.heaps.log2_segment_bytes = {136, 4};
  layout.heaps.low = {16, 8};
  layout.heaps.high = {24, 8};
  layout.heaps.high_boundary = {8, 8};
  layout.heaps.block_segments = {0, static_cast<std::uint32_t>(has_offsets ? 4 : 8)};
  layout.heaps.block_is_used = {static_cast<std::uint32_t>(has_offsets ? 4 : 8), 1};
  layout.heaps.block_head_bytes = has_offsets ? 8 : 16;
  layout.blobs.name = {96, 8};
  layout.blobs.bytes = {12, 4};
  layout.blobs.frame_size = {28, 4};
  layout.blobs.frame_complete = {20, 4};
  if (has_offsets) {
    layout.blobs.code_offset = {32, 4};
    layout.blobs.data_offset = {36, 4};
  } else {
    layout.blobs.code_begin = {32, 8};
    layout.blobs.code_end = {40, 8};
  }
  layout.nmethods.compile_id = {128, 4};
  layout.nmethods.state = {132, 1};
  AnyMemory memory(data + 1, size - 1);
  const flamed::Result<HotSpotCode> code = read_hotspot_code(memory, layout, 0, {});
  if (!code) {
    if (code.error().message().empty()) std::abort();
    return 0;
  }
  if (code->heaps.empty() || code->blobs.size() > kMostHotSpotBlobs) std::abort();
  for (const HotSpotBlob& blob : code->blobs) {
    if (blob.code_end <= blob.code_begin || blob.row_count == 0 || blob.first_row > code->rows.size() ||
        blob.row_count > code->rows.size() - blob.first_row) {
      std::abort();
    }
    for (std::uint32_t i = 0; i < blob.row_count; ++i) {
      const auto& row = code->rows[blob.first_row + i];
      if (row.rule.value >= code->rules.size() || row.offset >= blob.code_end - blob.code_begin) std::abort();
      if (i == 0 ? row.offset != 0 : row.offset <= code->rows[blob.first_row + i - 1].offset) std::abort();
    }
  }
  return 0;
}
