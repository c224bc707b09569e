// SPDX-License-Identifier: Apache-2.0
//
// Any memory as the code and the methods of a HotSpot, of the version that the first byte says: texts are bounded
// UTF-8, lines ascend, and reads are bounded. The second byte says what is there: code, a method, heaps, or a table of
// lines.
#include "runtimes/hotspot/names.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "runtimes/hotspot/code_finder.h"
#include "runtimes/remote_memory.h"
#include "test/unit/runtimes/forged_hotspot.h"

namespace {

using namespace flamed::runtimes;

/// The input repeats from ForgedHotSpot::kStart on, so that pointers in it lead to something, up to an end.
class AnyMemory final : public RemoteMemory {
 public:
  AnyMemory(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}

  bool read(std::uint64_t address, std::span<std::byte> to) override {
    constexpr std::uint64_t kBytes = 1 << 20;
    constexpr std::size_t kMostRead = std::size_t{64} << 10;
    constexpr int kMostReads = 2048;
    if (to.size() > kMostRead || ++reads_ > kMostReads) std::abort();
    const std::uint64_t at = address - ForgedHotSpot::kStart;
    if (size_ == 0 || address < ForgedHotSpot::kStart || at > kBytes || to.size() > kBytes - at) return false;
    for (std::size_t done = 0; done < to.size();) {
      const std::size_t from = (at + done) % size_;
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

void check_text(const std::string& text) {
  if (text.size() > 2 * kMostTextBytes + 1) std::abort();
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const std::size_t length = byte < 0x80 ? 1 : byte < 0xc0 ? 0 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
    if (length == 0 || length > text.size() - i) std::abort();
    for (std::size_t k = 1; k < length; ++k) {
      if ((static_cast<unsigned char>(text[i + k]) & 0xc0) != 0x80) std::abort();
    }
    i += length;
  }
}

void check_lines(const std::vector<LineRun>& lines) {
  if (lines.size() > kMostLineRuns) std::abort();
  for (std::size_t i = 1; i < lines.size(); ++i) {
    if (lines[i - 1].first >= lines[i].first || lines[i - 1].line == lines[i].line) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  constexpr std::array<std::uint32_t, 3> kVersions{8, 17, 25};
  HotSpotLayout layout = forged_hotspot_layout(kVersions[data[0] % kVersions.size()]);
  AnyMemory memory(data + 2, size - 2);
  HotSpotNames names(memory, memory, layout);
  switch (data[1] % 4) {
    case 0: {
      const auto code = names.code(ForgedHotSpot::kBlob);
      if (!code) break;
      if (code->name.empty() || code->code <= code->address || code->code - code->address > code->bytes) std::abort();
      if (code->kind != HotSpotCodeKind::kCompiled) break;
      for (const std::uint64_t offset : {0U, 0x10U, 0x20U, 0x1000U}) {
        const auto calls = names.calls(*code, code->code + offset);
        if (!calls) continue;
        if (calls->empty() || calls->size() > kMostInlinedCalls || calls->back().method != code->method) std::abort();
      }
      if (!names.is_unchanged(*code)) std::abort();
      break;
    }
    case 1: {
      const auto method = names.method(ForgedHotSpot::kMethod);
      if (!method) {
        if (method.error().message().empty()) std::abort();
        break;
      }
      if (method->name.empty()) std::abort();
      check_text(method->name);
      check_text(method->file);
      check_lines(method->lines);
      static_cast<void>(method->line_at(-1));
      static_cast<void>(method->line_at(INT32_MAX));
      const std::uint64_t const_method = names.const_method_of(ForgedHotSpot::kMethod);
      for (const std::uint64_t check : {0U, 1U}) {
        for (const std::uint64_t at : {std::uint64_t{0}, const_method + layout.methods.const_method_bytes + 7}) {
          const auto bytecode = names.bytecode_of({ForgedHotSpot::kMethod, check, at}, const_method);
          if (bytecode && (*bytecode < HotSpotCall::kNotKnown || *bytecode > UINT16_MAX)) std::abort();
        }
      }
      break;
    }
    case 2: {
      layout.heaps.heaps = ForgedHotSpot::kStart;
      layout.heaps.array_length = {0, 4};
      layout.heaps.array_data = {8, 8};
      layout.heaps.memory = {0, 0};
      layout.heaps.segment_map = {32, 0};
      layout.heaps.log2_segment_bytes = {64, 4};
      layout.heaps.low = {0, 8};
      layout.heaps.high = {8, 8};
      layout.heaps.block_is_used = {8, 1};
      layout.heaps.block_head_bytes = 16;
      auto finder = HotSpotCodeFinder::open(memory, layout, 0);
      if (!finder) break;
      for (const auto& [low, high] : finder->ranges()) {
        const auto found = finder->find(low);
        if (found && *found < low) std::abort();
      }
      break;
    }
    default:
      check_lines(read_bytecode_lines(std::as_bytes(std::span(data, size)), data[0] & 1));
  }
  return 0;
}
