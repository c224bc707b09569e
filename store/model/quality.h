// SPDX-License-Identifier: Apache-2.0
//
// How samples ended: every sample is stored whole, stored truncated for a reason, or lost for a reason. These are the
// reasons.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace flamed::store {

/// Why the outer part of a stored stack, a part in its middle, or the whole stack is missing. The number is the offset
/// of the marker frame in kTruncatedModule.
enum class Truncation : std::uint8_t {
  kDepthLimit,          ///< more user frames than a record holds; the outermost are missing
  kBrokenFramePointer,  ///< the frame pointer led nowhere: code built without frame pointers
  kUnreadableStack,     ///< a stack page was not in memory when the sample was taken
  kNoUserRegisters,     ///< the kernel did not know the user registers
  kKernelDepthLimit,    ///< more kernel frames than a record holds; those next to user space are missing
  kStoreFull,           ///< the store's budget had no room for new stacks; the known outer part was kept
  // Walks by unwind tables:
  kNewProcess,           ///< the process had only just begun: it had no tables yet
  kNoMapping,            ///< an address was outside of all known code mappings of the process
  kRowsPending,          ///< a module's unwind rows were still being built, or had been evicted
  kNoUnwindInformation,  ///< code without unwind information, and without frame pointers
  kUnsupportedUnwind,    ///< unwind information of a kind that is not supported
  kUnknownRegister,      ///< unwinding needed a register that was not known in that frame
  kDamagedStack,         ///< the caller's frame was not above its callee's
  // After storing:
  kUserShare,  ///< the whole stack was dropped: its user had more than a share of the store, and others needed room
  // Walks of a slice of the stack:
  kSliceEnded,  ///< the stack was longer than its slice
  kGuessed,     ///< frames are missing between code without unwind information and the next known caller
  // Stacks of waiting threads:
  kStackLater,    ///< it has waited since long before its first visit: its stack is read when there is time
  kStackRan,      ///< the thread ran before its stack was read
  kStackNotRead,  ///< not in time, or stacks are not read at all
};
inline constexpr std::size_t kTruncationCount = 19;

/// Why a sample that was taken is in no slot.
enum class Loss : std::uint8_t {
  kRingFull,   ///< the CPU's ring of samples was full: the reader was too slow
  kNoRing,     ///< the CPU had no ring of samples
  kMalformed,  ///< the record could not be decoded
  kTooOld,     ///< older than anything still retained when it arrived
  kStoreFull,  ///< the store's budget had no room for the sample's thread
};
inline constexpr std::size_t kLossCount = 5;

/// Stable names for metrics and answers, e.g. "depth_limit", "ring_full".
std::string_view name_of(Truncation reason);
std::string_view name_of(Loss reason);
/// A short phrase for people, e.g. "deeper than a sample can hold".
std::string_view describe(Truncation reason);
/// The outermost frame of such a stack in an answer, e.g. "[truncated: deeper than a sample can hold]".
std::string marker_of(Truncation reason);
std::string_view describe(Loss reason);

/// Counts of samples by how they ended. taken = whole + guessed + truncated + lost.
struct Quality {
  std::uint64_t whole = 0;
  std::array<std::uint64_t, kTruncationCount> truncated{};
  std::array<std::uint64_t, kLossCount> lost{};
  /// Samples that are not stored yet, since their stacks wait for unwind rows: they are not in the answer, and not
  /// among the taken ones.
  std::uint64_t pending = 0;

  [[nodiscard]] std::uint64_t stored() const;  ///< whole + guessed + truncated
  [[nodiscard]] std::uint64_t guessed() const { return truncated[static_cast<std::size_t>(Truncation::kGuessed)]; }
  [[nodiscard]] std::uint64_t truncated_total() const;  ///< without guessed
  [[nodiscard]] std::uint64_t lost_total() const;
  [[nodiscard]] std::uint64_t taken() const { return stored() + lost_total(); }
  Quality& operator+=(const Quality& other);
};

}  // namespace flamed::store
