// SPDX-License-Identifier: Apache-2.0
//
// Any memory as a V8's heap, of the version that the first byte says: texts are bounded, lines ascend, and reads are
// bounded.
#include "runtimes/v8/names.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "runtimes/remote_memory.h"

namespace {

using namespace flamed::runtimes;

/// The input repeats from address 0 on, so that pointers in it lead to something, up to an end.
class AnyMemory final : public RemoteMemory {
 public:
  AnyMemory(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}

  bool read(std::uint64_t address, std::span<std::byte> to) override {
    constexpr std::uint64_t kEnd = 1 << 20;
    constexpr std::size_t kMostRead = std::size_t{256} << 10;
    if (to.size() > kMostRead || ++reads_ > 1 << 20) std::abort();
    if (size_ == 0 || address > kEnd || to.size() > kEnd - address) return false;
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
  if (size == 0) return 0;
  V8Objects objects;
  objects.map_instance_type = 12;
  objects.shared_data = 8;
  objects.shared_name = 16;
  objects.shared_script = 32;
  objects.shared_token_offset = 44;
  objects.scope_flags = 12;
  objects.scope_locals = 24;
  objects.scope_start = (data[0] & 1) != 0 ? 32 : 0;
  objects.scope_names = (data[0] & 1) != 0 ? 48 : 32;
  objects.script_source = 8;
  objects.script_name = 16;
  objects.script_line_offset = 24;
  objects.bytecode_positions = 32;
  objects.array_length = 8;
  objects.array_data = 16;
  objects.string_length = 12;
  objects.string_text = 16;
  objects.string_first = 16;
  objects.string_second = 24;
  objects.string_actual = 16;
  objects.string_parent = 16;
  objects.string_offset = 24;
  objects.string_resource = 24;
  objects.code_head_kind = (data[0] & 2) != 0 ? V8CodeHead::kCode : V8CodeHead::kDescriptor;
  objects.code_head = (data[0] & 2) != 0 ? 128 : 16;
  objects.code_descriptor = 8;
  objects.code_start = 40;
  objects.code_size = 56;
  objects.code_flags = 48;
  objects.code_data = 16;
  objects.baseline_kind = 11;
  objects.data_shared = 64;
  objects.wrapped_shared = (data[0] & 4) != 0 ? 8 : 0;
  objects.shared_type = 3;
  objects.scope_type = 2;
  objects.script_type = 1;
  objects.bytecode_type = 5;
  objects.position_type = 4;
  objects.code_type = 6;
  objects.descriptor_type = 7;
  // Types of other objects would be strings: so that those are there, too, the input has small types.
  AnyMemory memory(data + 1, size - 1);
  V8Reader reader(memory, objects);
  const auto code = reader.code_at(0x8123, 0);
  if (!code && code.error().message().empty()) std::abort();
  const auto function = reader.function(0);
  if (!function) {
    if (function.error().message().empty()) std::abort();
    return 0;
  }
  if (!*function) return 0;
  if ((*function)->name.empty() || (*function)->name.size() > kMostTextBytes) std::abort();
  if ((*function)->file.size() > kMostTextBytes || (*function)->lines.size() > kMostLineRuns) std::abort();
  for (std::size_t i = 1; i < (*function)->lines.size(); ++i) {
    if ((*function)->lines[i - 1].first >= (*function)->lines[i].first) std::abort();
  }
  return 0;
}
