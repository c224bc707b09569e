// SPDX-License-Identifier: Apache-2.0
//
// Samples: those of a minute one by one, in addition to its counts. A plain value, and its bytes. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "archive/codec/minute.h"
#include "base/clock.h"
#include "base/result.h"

namespace flamed::archive {

/// As store::LoggedSample.
struct Sample {
  MonotonicTime time;
  std::uint32_t pair = 0;  ///< its place in Minute::pairs
  std::uint16_t cpu = 0;

  friend bool operator==(const Sample&, const Sample&) = default;
};

/// Of one minute: 350 busy CPUs at 99 Hz.
inline constexpr std::size_t kMostSamples = std::size_t{1} << 21;

/// In the order of time; kMostSamples at most.
Result<std::vector<std::byte>> encode(std::span<const Sample> samples);

/// An Error says what is wrong with the bytes, also if they are not the minute's: each pair has as many samples as it
/// counts. With code ENOTSUP they have another version.
Result<std::vector<Sample>> decode_samples(std::span<const std::byte> block, const Minute& minute);

}  // namespace flamed::archive
