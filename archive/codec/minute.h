// SPDX-License-Identifier: Apache-2.0
//
// Minute: a sealed slot of the store, as it is kept on disk. A plain value, and its bytes. Pure; any thread.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "store/model/quality.h"

namespace flamed::archive {

/// The samples of one thread with one stack. Both are numbers of the session's dictionary, see additions.h.
struct Pair {
  std::uint32_t thread = 0;
  std::uint32_t stack = 0;
  bool is_cut = false;  ///< store::StackRef::cut
  std::uint32_t count = 1;

  friend auto operator<=>(const Pair&, const Pair&) = default;
};

/// Whether a minute is over, or is written as it is so far: then the same minute comes again, with all that it adds to
/// the dictionary, and replaces it.
enum class Ending : std::uint8_t { kOver, kSoFar };

/// As in store::SlotBounds and store::Slot. Or the minutes of a stretch together, see codec/stretch.h.
struct Minute {
  MonotonicTime start;
  MonotonicTime end;
  std::int64_t wall_offset_ns = 0;
  std::int64_t period_ns = 0;
  std::uint32_t sequence = 0;
  /// Set: it is a stretch, of the minutes from this sequence on up to `sequence`. Their threads are not told apart.
  std::optional<std::uint32_t> first{};
  std::uint32_t cpus = 0;                           ///< that were sampled at its end
  std::optional<std::uint64_t> cpu_ns_accounted{};  ///< CPU time of the machine in the kernel's accounts
  store::Quality quality;                           ///< without `pending`
  std::vector<Pair> pairs;                          ///< ascending; each thread, stack and cut once

  [[nodiscard]] WallTime wall_start() const { return {start.ns + wall_offset_ns}; }
  [[nodiscard]] WallTime wall_end() const { return {end.ns + wall_offset_ns}; }
};

/// Puts the pairs in their order, and returns where each went.
std::vector<std::uint32_t> sort_pairs(std::vector<Pair>& pairs);

class StackPlaces;

/// Of version 1, which refers to stacks by their numbers.
Result<std::vector<std::byte>> encode(const Minute& minute);
/// Of version 2, which refers to them by their places and takes a third less. They have all that the minute refers to.
Result<std::vector<std::byte>> encode(const Minute& minute, const StackPlaces& places);

/// The sizes of the dictionary that a minute refers to.
struct DictionarySize {
  std::uint32_t modules = 0;
  std::uint32_t frames = 0;
  std::uint32_t stacks = 1;  ///< the stack without frames, number 0, is there from the start
  std::uint32_t threads = 0;
  std::uint32_t processes = 0;

  friend bool operator==(const DictionarySize&, const DictionarySize&) = default;
};

/// An Error says what is wrong with the bytes, also if they refer to something that is not in the dictionary; with code
/// ENOTSUP they have another version.
Result<Minute> decode_minute(std::span<const std::byte> block, const StackPlaces& dictionary);
/// Of version 1 alone, as sums have it.
Result<Minute> decode_minute(std::span<const std::byte> block, const DictionarySize& dictionary);
/// All but its pairs, whatever its dictionary.
Result<Minute> decode_head(std::span<const std::byte> block);

}  // namespace flamed::archive
