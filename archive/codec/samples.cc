// SPDX-License-Identifier: Apache-2.0
#include "archive/codec/samples.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <utility>

#include "archive/codec/block.h"

namespace flamed::archive {
namespace {

constexpr std::uint8_t kVersion = 1;
/// As store::SampleLog can hold.
constexpr std::uint64_t kLongestStepNs = std::uint64_t{1} << 56;

// The columns.
enum : std::size_t {
  kHead,   // how many samples; the time of the first, signed
  kTimes,  // of each but the first: ns since the sample before
  kPairs,
  kCpus,
  kColumns
};

Error damaged() { return Error("damaged samples"); }

}  // namespace

Result<std::vector<std::byte>> encode(std::span<const Sample> samples) {
  if (samples.size() > kMostSamples) return Error("a minute has too many samples to keep them one by one");
  std::array<Column, kColumns> columns;
  columns[kHead].put(samples.size());
  columns[kHead].put_signed(samples.empty() ? 0 : samples.front().time.ns);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (i != 0) columns[kTimes].put(static_cast<std::uint64_t>(samples[i].time.ns - samples[i - 1].time.ns));
    columns[kPairs].put(samples[i].pair);
    columns[kCpus].put(samples[i].cpu);
  }
  return pack_block(kVersion, columns);
}

Result<std::vector<Sample>> decode_samples(std::span<const std::byte> block, const Minute& minute) {
  Result<BlockReader> opened = BlockReader::open(block, kVersion, kColumns);
  if (!opened) return std::move(opened).error();
  BlockReader& columns = *opened;
  const std::uint64_t count = columns[kHead].uleb();
  std::int64_t time = unzigzag(columns[kHead].uleb());
  constexpr std::int64_t kMostNs = std::numeric_limits<std::int64_t>::max() / 4;
  if (count > kMostSamples || count > columns[kPairs].left() || time < -kMostNs || time > kMostNs) return damaged();
  std::vector<std::uint32_t> left;  // by pair
  left.reserve(minute.pairs.size());
  for (const Pair& pair : minute.pairs) left.push_back(pair.count);
  std::vector<Sample> samples;
  samples.reserve(count);
  while (samples.size() < count) {
    const std::uint64_t step = samples.empty() ? 0 : columns[kTimes].uleb();
    const std::uint64_t pair = columns[kPairs].uleb();
    const std::uint64_t cpu = columns[kCpus].uleb();
    if (step >= kLongestStepNs || pair >= left.size() || left[pair] == 0 ||
        cpu > std::numeric_limits<std::uint16_t>::max()) {
      return damaged();
    }
    time += static_cast<std::int64_t>(step);
    if (time > kMostNs) return damaged();
    --left[pair];
    samples.push_back({{time}, static_cast<std::uint32_t>(pair), static_cast<std::uint16_t>(cpu)});
  }
  const bool is_all = std::all_of(left.begin(), left.end(), [](std::uint32_t missing) { return missing == 0; });
  if (!columns.ok() || !is_all) return damaged();
  return samples;
}

}  // namespace flamed::archive
