// SPDX-License-Identifier: Apache-2.0
//
// Any memory as the tables of a JVM: reading them ends, with a layout that is complete or a reason. The memory repeats
// the input, so that pointers in it lead to something.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "runtimes/hotspot/detect.h"
#include "runtimes/remote_memory.h"

namespace {

using namespace flamed::runtimes;

class AnyMemory final : public RemoteMemory {
 public:
  AnyMemory(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}

  bool read(std::uint64_t address, std::span<std::byte> to) override {
    constexpr std::uint64_t kEnd = 1 << 24;
    if (address > kEnd || to.size() > kEnd - address) return false;
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = static_cast<std::byte>(data_[(address + i) % size_]);
    return true;
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  HotSpotTables tables;
  tables.structures = {0, 8};
  tables.types = {16, 24};
  tables.type_name = 32;
  tables.field_name = 40;
  tables.type_string = 48;
  tables.is_static = 56;
  tables.offset = 64;
  tables.address = 72;
  tables.size_type_name = 32;
  tables.size = 40;
  AnyMemory memory(data, size);
  const flamed::Result<HotSpotLayout> layout = read_hotspot_layout(memory, tables, 0);
  if (!layout) {
    if (layout.error().message().empty()) std::abort();
    return 0;
  }
  if (layout->version == 0 || layout->heaps.block_head_bytes == 0 || !layout->blobs.name.is_there()) std::abort();
  if (layout->release_text().size() >= layout->release.size()) std::abort();
  return 0;
}
