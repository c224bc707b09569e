// SPDX-License-Identifier: Apache-2.0
//
// Reads the code heap of a HotSpot JVM: which code is where, and how its frames are stepped over.
//
// The heap changes while it is read, and its process may have arranged it. What does not look like code is left out: of
// it nothing is known. Readings are bounded in blocks and bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "runtimes/hotspot/layout.h"
#include "runtimes/remote_memory.h"
#include "unwinder/row.h"

namespace flamed::runtimes {

enum class HotSpotCodeKind : std::uint8_t {
  kCompiled,     ///< a method, by one of the compilers
  kNative,       ///< the wrapper of a native method
  kInterpreter,  ///< all of the interpreter
  kAdapter,      ///< between compiled and interpreted code
  kStub,         ///< anything else
};
inline constexpr std::size_t kHotSpotCodeKinds = 5;

/// A piece of code. Those of a heap are in the order of their addresses.
struct HotSpotBlob {
  std::uint64_t address = 0;  ///< of the CodeBlob
  std::uint64_t code_begin = 0, code_end = 0;
  std::uint32_t bytes = 0;       ///< of the CodeBlob, with its code
  std::uint32_t compile_id = 0;  ///< of compiled and native methods: another number for each compilation
  std::uint32_t first_row = 0;   ///< in HotSpotCode::rows, whose offsets count from code_begin
  std::uint32_t row_count = 0;   ///< 0 if it was known
  HotSpotCodeKind kind = HotSpotCodeKind::kStub;
  std::uint8_t is_known = 0;  ///< its rows are those of the reading before
  std::uint16_t reserved = 0;
  std::uint32_t reserved_too = 0;
};
static_assert(sizeof(HotSpotBlob) == 48);

/// Code that an earlier reading has met.
struct HotSpotKnownBlob {
  std::uint64_t address = 0;
  std::uint32_t bytes = 0;
  std::uint32_t compile_id = 0;

  friend bool operator==(const HotSpotKnownBlob&, const HotSpotKnownBlob&) = default;
};

/// Process addresses: [low, high) is in use, up to `end` it may grow.
struct HotSpotHeapRange {
  std::uint64_t low = 0, high = 0, end = 0;
};

struct HotSpotCode {
  std::vector<HotSpotHeapRange> heaps;
  std::vector<HotSpotBlob> blobs;
  std::vector<unwinder::Row> rows;
  std::vector<unwinder::Rule> rules;  ///< by RuleId
};

inline constexpr std::size_t kMostHotSpotHeaps = 8;
inline constexpr std::size_t kMostHotSpotBlobs = 131'072;
inline constexpr std::size_t kMostHotSpotRules = 4096;
/// HotSpot's own limit of its code cache.
inline constexpr std::uint64_t kMostHotSpotHeapBytes = std::uint64_t{2} << 30;

/// `known` is in the order of addresses. An error with code EBUSY: the JVM is still starting.
Result<HotSpotCode> read_hotspot_code(RemoteMemory& memory, const HotSpotLayout& layout, std::uint64_t base,
                                      std::span<const HotSpotKnownBlob> known);

}  // namespace flamed::runtimes
