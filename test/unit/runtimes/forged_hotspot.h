// SPDX-License-Identifier: Apache-2.0
//
// ForgedHotSpot: memory with a compiled method, its method and class, laid out as JDK 17 would.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "runtimes/hotspot/layout.h"
#include "runtimes/remote_memory.h"

namespace flamed::runtimes {

/// JDK 17 in the members that names need, but descriptions of places lie as `version` has them: 8, 17 or 25.
inline HotSpotLayout forged_hotspot_layout(std::uint32_t version) {
  HotSpotLayout layout;
  layout.version = version;
  layout.blobs.name = {96, 8};
  layout.blobs.bytes = {12, 4};
  layout.blobs.data_offset = {24, 4};
  layout.nmethods.method = {112, 8};
  layout.nmethods.compile_id = {200, 4};
  layout.nmethods.scopes_pcs_offset = {204, 4};
  layout.nmethods.pc_desc_pc = {0, 4};
  layout.nmethods.pc_desc_scope = {4, 4};
  layout.nmethods.pc_desc_bytes = 16;
  if (version == 25) {
    layout.blobs.code_offset = {20, 4};
    layout.nmethods.immutable_data = {120, 8};
    layout.nmethods.immutable_data_bytes = {216, 4};
    layout.nmethods.scopes_data_offset = {220, 4};
    layout.nmethods.mutable_data = {128, 8};
    layout.nmethods.mutable_data_bytes = {224, 4};
    layout.nmethods.relocation_bytes = {228, 4};
  } else {
    layout.nmethods.dependencies_offset = {208, 4};
    layout.nmethods.metadata_offset = {212, 4};
    if (version == 8) {
      layout.blobs.code_offset = {20, 4};
      layout.nmethods.scopes_data_offset = {220, 4};
    } else {
      layout.blobs.code_begin = {32, 8};
      layout.nmethods.scopes_data = {120, 8};
    }
  }
  HotSpotMethods& methods = layout.methods;
  methods.const_method = {8, 8};
  methods.constants = {8, 8};
  methods.const_method_words = {24, 4};
  methods.flags = {28, 2};
  methods.code_bytes = {32, 2};
  methods.name_index = {34, 2};
  methods.const_method_bytes = 48;
  methods.pool_tags = {8, 8};
  methods.pool_holder = {24, 8};
  methods.pool_length = {60, 4};
  methods.pool_source_file = {54, 2};
  methods.constant_pool_bytes = 72;
  methods.class_name = {24, 8};
  methods.class_constants = {32, 8};
  methods.array_of_bytes = {4, 8};
  methods.symbol_length = {4, 2};
  methods.symbol_text = {6, 8};
  return layout;
}

class ForgedHotSpot final : public RemoteMemory {
 public:
  static constexpr std::uint64_t kStart = 0x10000;
  static constexpr std::uint64_t kBlob = kStart;
  static constexpr std::uint64_t kCode = kBlob + 0x200;
  static constexpr std::uint64_t kMetadata = kBlob + 0x300;
  static constexpr std::uint64_t kScopes = kBlob + 0x310;
  static constexpr std::uint64_t kDescriptors = kBlob + 0x320;
  static constexpr std::uint64_t kBlobName = kBlob + 0x400;
  static constexpr std::uint64_t kMethod = kStart + 0x1000;
  static constexpr std::uint64_t kConstMethod = kStart + 0x1100;
  static constexpr std::uint64_t kPool = kStart + 0x1200;
  static constexpr std::uint64_t kTags = kStart + 0x1300;
  static constexpr std::uint64_t kClass = kStart + 0x1400;
  static constexpr std::uint64_t kClassName = kStart + 0x1500;
  static constexpr std::uint64_t kName = kStart + 0x1600;
  static constexpr std::uint64_t kFile = kStart + 0x1700;

  ForgedHotSpot() {
    put<std::uint32_t>(kBlob + 12, 0x400);
    put<std::uint64_t>(kBlob + 32, kCode);
    put<std::uint64_t>(kBlob + 96, kBlobName);
    std::memcpy(&bytes_.at(kBlobName - kStart), "nmethod", 8);
    put<std::uint64_t>(kBlob + 112, kMethod);
    put<std::uint64_t>(kBlob + 120, kScopes);
    put<std::uint32_t>(kBlob + 200, 77);
    put<std::uint32_t>(kBlob + 204, static_cast<std::uint32_t>(kDescriptors - kBlob));
    put<std::uint32_t>(kBlob + 208, static_cast<std::uint32_t>(kDescriptors - kBlob) + 4 * 16);
    put<std::uint32_t>(kBlob + 212, static_cast<std::uint32_t>(kMetadata - kBlob));
    put<std::uint64_t>(kMetadata, kMethod);
    put<std::uint64_t>(kMetadata + 8, kMethod + 1000);
    // Caller, method, bytecode + 1; the second one is inlined by the method, the first one stands alone.
    put_bytes(kScopes + 1, {0, 1, 6, 0, 1, 10, 4, 2, 3});
    put_descriptor(0, -1, 0);
    put_descriptor(1, 0x10, 1);
    put_descriptor(2, 0x20, 7);
    put_descriptor(3, 0x7fffffff, 0);

    put<std::uint64_t>(kMethod + 8, kConstMethod);
    put<std::uint64_t>(kConstMethod + 8, kPool);
    put<std::uint32_t>(kConstMethod + 24, 12);
    put<std::uint16_t>(kConstMethod + 28, 1);
    put<std::uint16_t>(kConstMethod + 32, 40);
    put<std::uint16_t>(kConstMethod + 34, 1);
    put_bytes(kConstMethod + 48 + 40, {7, 30 << 3 | 2, 0});
    put<std::uint64_t>(kPool + 8, kTags);
    put<std::uint64_t>(kPool + 24, kClass);
    put<std::uint16_t>(kPool + 54, 2);
    put<std::uint32_t>(kPool + 60, 3);
    put<std::uint64_t>(kPool + 72 + 8, kName);
    put<std::uint64_t>(kPool + 72 + 16, kFile);
    put_bytes(kTags + 4, {0, 1, 1});
    put<std::uint64_t>(kClass + 24, kClassName);
    put<std::uint64_t>(kClass + 32, kPool);
    put_text(kClassName, "java/util/Map$Node");
    put_text(kName, "get");
    put_text(kFile, "Map.java");
  }

  bool read(std::uint64_t address, std::span<std::byte> to) override {
    if (address < kStart || address - kStart > bytes_.size() || to.size() > bytes_.size() - (address - kStart))
      return false;
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(address - kStart), to.size(), to.begin());
    return true;
  }

  template <typename T>
  void put(std::uint64_t address, T value) {
    std::memcpy(&bytes_.at(address - kStart), &value, sizeof(value));
  }
  void put_text(std::uint64_t symbol, std::string_view text) {
    put<std::uint16_t>(symbol + 4, static_cast<std::uint16_t>(text.size()));
    std::memcpy(&bytes_.at(symbol + 6 - kStart), text.data(), text.size());
  }
  void put_bytes(std::uint64_t address, const std::vector<int>& values) {
    for (const int value : values) put(address++, static_cast<std::uint8_t>(value));
  }

  HotSpotLayout layout = forged_hotspot_layout(17);

 private:
  void put_descriptor(std::uint64_t number, std::int32_t pc, std::int32_t scope) {
    put(kDescriptors + 16 * number, pc);
    put(kDescriptors + 16 * number + 4, scope);
  }

  std::vector<std::byte> bytes_ = std::vector<std::byte>(0x2000);
};

}  // namespace flamed::runtimes
