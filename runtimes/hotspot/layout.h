// SPDX-License-Identifier: Apache-2.0
//
// HotSpotLayout: where one build of the HotSpot JVM keeps its compiled code, and what names its methods. Values only;
// `detect.h` makes them, from what the JVM says of itself.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

namespace flamed::runtimes {

/// A member of a structure. What a version does not have is nowhere.
struct HotSpotPlace {
  static constexpr std::uint32_t kNowhere = 0xffff'ffff;
  std::uint32_t offset = kNowhere;  ///< in bytes
  std::uint32_t bytes = 0;          ///< its size: 1, 2, 4 or 8

  [[nodiscard]] bool is_there() const { return offset != kNowhere; }
  /// Its value in a copy of the structure. 0 if it lies outside.
  [[nodiscard]] std::uint64_t in(std::span<const std::byte> structure) const {
    std::uint64_t value = 0;
    if (bytes > sizeof(value) || structure.size() < bytes || offset > structure.size() - bytes) return 0;
    std::memcpy(&value, structure.data() + offset, bytes);
    return value;
  }
  /// The same of a signed number.
  [[nodiscard]] std::int64_t signed_in(std::span<const std::byte> structure) const {
    const std::uint64_t value = in(structure);
    if (bytes == 1) return static_cast<std::int8_t>(value);
    if (bytes == 2) return static_cast<std::int16_t>(value);
    if (bytes == 4) return static_cast<std::int32_t>(value);
    return static_cast<std::int64_t>(value);
  }
  friend bool operator==(const HotSpotPlace&, const HotSpotPlace&) = default;
};

/// The code cache: CodeCache's list of heaps, in each of which blocks lie one behind the other. A block that is used
/// has a CodeBlob behind its head.
struct HotSpotCodeHeaps {
  std::uint64_t heaps = 0;     ///< address of CodeCache::_heaps, which points to a GrowableArray of pointers
  std::uint64_t one_heap = 0;  ///< JDK 8: address of CodeCache::_heap, which points to the only one
  HotSpotPlace array_length, array_data;
  HotSpotPlace memory, segment_map, log2_segment_bytes;  ///< of a CodeHeap; the first two are VirtualSpaces
  HotSpotPlace low, high, low_boundary, high_boundary;   ///< of a VirtualSpace: in use, and reserved
  HotSpotPlace block_segments, block_is_used;            ///< of a block's head
  std::uint32_t block_head_bytes = 0;
};

/// CodeBlob: any piece of code that HotSpot has made. Where code begins and ends is in it either as addresses or as
/// offsets from the CodeBlob.
struct HotSpotBlobs {
  HotSpotPlace name, bytes, frame_size;  ///< frame_size in words, with the return address
  HotSpotPlace frame_complete;           ///< from the start of the code; negative: there is no frame
  HotSpotPlace code_begin, code_end;     ///< addresses
  HotSpotPlace code_offset, data_offset;
};

/// nmethod: a compiled method, a CodeBlob. Its tables are in it either as addresses or as offsets.
struct HotSpotNmethods {
  HotSpotPlace method, compile_id, comp_level, entry_bci, state;
  HotSpotPlace verified_entry, verified_entry_offset;
  HotSpotPlace orig_pc_offset;  ///< in the frame of a deoptimised method: where its return address was
  HotSpotPlace deopt_handler, deopt_handler_offset, deopt_mh_handler, deopt_mh_handler_offset;
  HotSpotPlace stub_offset;
  // Debug information. With immutable_data all of these count from it, else from the nmethod.
  HotSpotPlace immutable_data, immutable_data_bytes;
  HotSpotPlace scopes_pcs_offset, scopes_data, scopes_data_offset;
  HotSpotPlace dependencies_offset, handler_table_offset, nul_chk_table_offset;
  // Metadata: offsets from the nmethod, or at the end of what mutable_data (of the CodeBlob) points to.
  HotSpotPlace oops_offset, metadata_offset;
  HotSpotPlace mutable_data, mutable_data_bytes, relocation_bytes;
  HotSpotPlace pc_desc_pc, pc_desc_scope;  ///< of a PcDesc
  std::uint32_t pc_desc_bytes = 0;
};

/// Methods and what they are called.
struct HotSpotMethods {
  HotSpotPlace const_method;                                                                   ///< of a Method
  HotSpotPlace constants, code_bytes, name_index, signature_index, flags, const_method_words;  ///< of a ConstMethod
  HotSpotPlace pool_holder, pool_length, pool_tags, pool_source_file;                          ///< of a ConstantPool
  HotSpotPlace class_name;                                                                     ///< of a Klass
  HotSpotPlace class_constants;                                                                ///< of an InstanceKlass
  HotSpotPlace class_source_file;           ///< likewise, up to JDK 11
  HotSpotPlace array_of_bytes;              ///< of an array of bytes in metaspace: its first byte
  HotSpotPlace symbol_length, symbol_text;  ///< of a Symbol
  std::uint32_t const_method_bytes = 0;     ///< the bytecode follows it
  std::uint32_t constant_pool_bytes = 0;    ///< its words follow it
};

/// Addresses are those of the module: the process has them at these plus the address that it was loaded at.
struct HotSpotLayout {
  std::uint32_t version = 0;       ///< of the JDK: 8, 11, 17
  std::array<char, 64> release{};  ///< "17.0.15+6-Debian-1deb12u1", NUL-terminated, printable
  std::uint64_t interpreter = 0;   ///< address of AbstractInterpreter::_code, which points to its StubQueue
  HotSpotPlace stub_buffer;        ///< of a StubQueue: where its code begins
  HotSpotPlace stub_bytes;         ///< of an InterpreterCodelet: its size, with its head
  std::uint32_t stub_head_bytes = 0;
  HotSpotPlace stub_buffer_end;  ///< likewise, bytes from there
  std::uint64_t call_stub_return =
      0;  ///< address of StubRoutines::_call_stub_return_address: where Java returns to C++
  HotSpotCodeHeaps heaps;
  HotSpotBlobs blobs;
  HotSpotNmethods nmethods;
  HotSpotMethods methods;

  [[nodiscard]] std::string release_text() const { return {release.data(), ::strnlen(release.data(), release.size())}; }
};

/// An interpreted method's frame, in words from the frame pointer (frame_x86.hpp): the saved frame pointer is at 0, the
/// return address at 1. The JVM does not describe it. From JDK 9 on there is one more word below the method.
struct HotSpotInterpreterFrame {
  static constexpr int kSenderSp = -1;  ///< the caller's stack pointer
  static constexpr int kMethod = -3;
  static constexpr int kLocals = -7;  ///< their address, since JDK 21 in words from the frame pointer
  static constexpr int kLocalsJdk8 = -6;
  static constexpr int kBytecode = -8;  ///< the address of the running bytecode, as it was at the last call
  static constexpr int kBytecodeJdk8 = -7;
};

}  // namespace flamed::runtimes
