// SPDX-License-Identifier: Apache-2.0
//
// The protocol between the daemon and the ELF worker. Both ends are the same program, so these structures have no
// version; no other process can reach the sockets.
//
//   control socket (SOCK_SEQPACKET), one for each spawner
//     spawner -> daemon   Hello, once; then Usage whenever a child has ended
//     daemon -> spawner   Order with two descriptors: the child's end of the request socket, the write end of the news
//                         pipe
//   request socket (SOCK_STREAM), one for each child
//     daemon -> child     RequestHead with the files' descriptors, then RequestHead::size bytes
//     child -> daemon     AnswerHead, then AnswerHead::size bytes: the value (value_codec.h) or an error. Hostile.
//     If Order::serves_many the next request may follow, until the daemon closes its end.
//   news pipe, one for each child
//     spawner -> daemon News. The child does not have it, so it can't lie about its end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "symbolizer/model/reading_purpose.h"

namespace flamed::symbolizer {

enum class RequestKind : std::uint8_t {
  kInspect,
  kSymbols,
  kLocate,
  kUnwindRows,
  kFunctionRows,
  kJitSymbols,
  kDemangle,
  kRuntime,
  kRuntimeFunctions,
  kHotSpot,
  kHotSpotCode,
  kHotSpotNames,
  kContainer,
  kEngine,
  kDisassembly
};
inline constexpr std::size_t kRequestKinds = 15;

/// For the label of a metric.
constexpr const char* name_of(RequestKind kind) {
  constexpr std::array<const char*, kRequestKinds> kNames = {
      "inspect",      "symbols",       "lines",     "unwind_rows",       "function_rows",
      "jit_symbols",  "demangle",      "runtime",   "runtime_functions", "hotspot",
      "hotspot_code", "hotspot_names", "container", "container_engine",  "instructions"};
  return kNames[static_cast<std::size_t>(kind)];
}

/// The limits of one request. The kernel enforces all of them on the child; the daemon never waits longer than wall_ns.
/// To the times of a child that serves many requests kSessionNs is added.
struct RequestLimits {
  std::int64_t wall_ns = 10 * kNsPerSecond;
  std::uint32_t cpu_seconds = 10;
  std::uint64_t memory_bytes = std::uint64_t{1} << 30;  ///< of address space
  std::uint64_t answer_bytes = std::uint64_t{320} << 20;
  std::int32_t nice = 0;
};

/// A child that serves many requests begins none after this time. Its CPU time is known only when it has ended, and a
/// mistake in reading one process could show in those of the same user that come after it.
inline constexpr std::int64_t kSessionNs = 2 * kNsPerSecond;

/// By RequestKind. The largest valid answer of symbols has 256 MiB of names, see SymbolTable::Builder.
constexpr RequestLimits default_limits(RequestKind kind) {
  constexpr std::uint64_t kMebibyte = 1U << 20;
  switch (kind) {
    case RequestKind::kInspect:
      return {2 * kNsPerSecond, 2, 256 * kMebibyte, kMebibyte, 0};
    case RequestKind::kDemangle:
      return {2 * kNsPerSecond, 2, 512 * kMebibyte, 128 * kMebibyte, 0};
    case RequestKind::kLocate:
      return {10 * kNsPerSecond, 10, 1024 * kMebibyte, 128 * kMebibyte, 0};
    case RequestKind::kUnwindRows:
      // Nobody waits for it, so it may yield to others; but until it is done stacks through the file are truncated. 5:
      // a quarter of a busy CPU.
      return {60 * kNsPerSecond, 20, 1024 * kMebibyte, 160 * kMebibyte, 5};
    case RequestKind::kFunctionRows:
      return {2 * kNsPerSecond, 2, 256 * kMebibyte, 16 * kMebibyte, 0};
    case RequestKind::kRuntime:
      return {2 * kNsPerSecond, 2, 256 * kMebibyte, kMebibyte, 0};
    case RequestKind::kRuntimeFunctions:
      // A read may wait for a page that another user's file system provides.
      return {2 * kNsPerSecond, 2, 512 * kMebibyte, 96 * kMebibyte, 0};
    case RequestKind::kHotSpot:
      return {2 * kNsPerSecond, 2, 256 * kMebibyte, kMebibyte, 0};
    case RequestKind::kHotSpotCode:
      // The first reading of 240 MiB of code takes 0.3 s.
      return {2 * kNsPerSecond, 2, 512 * kMebibyte, 64 * kMebibyte, 0};
    case RequestKind::kHotSpotNames:
      return {2 * kNsPerSecond, 2, 256 * kMebibyte, 16 * kMebibyte, 0};
    case RequestKind::kContainer:
    case RequestKind::kEngine:
      return {2 * kNsPerSecond, 2, 256 * kMebibyte, 4096, 0};
    case RequestKind::kDisassembly:
      // 4 MiB of code take 1.5 s.
      return {5 * kNsPerSecond, 5, 512 * kMebibyte, 64 * kMebibyte, 0};
    case RequestKind::kSymbols:
    case RequestKind::kJitSymbols:
      break;
  }
  return {};
}

struct Hello {
  static constexpr std::uint32_t kMagic = 0x666c6d01;
  std::uint32_t magic = kMagic;
  std::uint32_t uid = 0;
  std::int32_t pid = 0;
  /// errno of each step, 0: in force.
  std::int32_t own_user_error = 0;
  std::int32_t no_capabilities_error = 0;
  std::int32_t outside_world_error = 0;
  std::int32_t system_calls_error = 0;
};

/// Since the spawner's start, for itself and its children.
struct Usage {
  static constexpr std::uint32_t kMagic = 0x666c6d02;
  std::uint32_t magic = kMagic;
  std::uint32_t padding = 0;
  std::int64_t cpu_ns = 0;
  std::array<std::int64_t, kReadingPurposes> children_cpu_ns{};  ///< of cpu_ns, by ReadingPurpose
  std::uint64_t peak_bytes = 0;                                  ///< resident, of the largest child
};

struct Order {
  static constexpr std::uint32_t kMagic = 0x666c6d03;
  static constexpr std::size_t kFds = 2;
  std::uint32_t magic = kMagic;
  ReadingPurpose purpose = ReadingPurpose::kAnswer;  ///< for accounting
  std::uint8_t serves_many = 0;
  std::array<std::uint8_t, 2> padding{};
  RequestLimits limits;
};

struct News {
  enum class What : std::uint32_t {
    kStarted = 1,
    kEnded,    ///< `detail` is the status as of wait(2)
    kRefused,  ///< `detail` is an errno
  };
  What what;
  std::int32_t detail;
};

struct RequestHead {
  static constexpr std::uint32_t kMagic = 0x666c6d04;
  static constexpr std::size_t kMaxFds = 3;
  std::uint32_t magic = kMagic;
  RequestKind kind = RequestKind::kInspect;
  std::uint8_t jit_format = 0;
  /// Bit i: descriptor i comes along: ModuleFiles' module, debug, alternate; of kUnwindRows the module and kept rows;
  /// of kRuntimeFunctions and kHotSpotCode, kHotSpotNames a process's memory; of kHotSpot the module and a process's
  /// memory; of kEngine a connection.
  std::uint8_t fd_mask = 0;
  std::uint8_t padding = 0;
  std::uint64_t size = 0;
};

struct AnswerHead {
  static constexpr std::uint32_t kMagic = 0x666c6d05;
  enum class Kind : std::uint32_t { kValue = 1, kError = 2 };
  std::uint32_t magic = kMagic;
  Kind kind = Kind::kValue;
  std::uint64_t size = 0;
};

}  // namespace flamed::symbolizer
