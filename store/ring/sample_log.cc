// SPDX-License-Identifier: Apache-2.0
#include "store/ring/sample_log.h"

#include <bit>
#include <utility>

namespace flamed::store {

SampleLog::SampleLog(std::vector<LoggedSample> samples) : count_(samples.size()) {
  if (samples.empty()) return;
  const auto earlier = [](const LoggedSample& a, const LoggedSample& b) { return a.time < b.time; };
  if (!std::is_sorted(samples.begin(), samples.end(), earlier)) {
    std::stable_sort(samples.begin(), samples.end(), earlier);
  }
  first_ = samples.front().time;
  last_ = samples.back().time;
  std::uint32_t largest_entry = 0;
  std::uint16_t largest_cpu = 0;
  for (const LoggedSample& sample : samples) {
    largest_entry = std::max(largest_entry, sample.entry);
    largest_cpu = std::max(largest_cpu, sample.cpu);
  }
  cpu_bits_ = static_cast<std::uint8_t>(std::bit_width(largest_cpu));
  what_bits_ = static_cast<std::uint8_t>(std::bit_width(largest_entry) + cpu_bits_);

  std::vector<std::uint8_t> bytes;
  bytes.reserve(samples.size() * 7);
  blocks_.reserve((samples.size() + kSamplesPerBlock - 1) / kSamplesPerBlock);
  for (std::size_t begin = 0; begin < samples.size(); begin += kSamplesPerBlock) {
    const auto block = std::span(samples).subspan(begin, std::min(kSamplesPerBlock, samples.size() - begin));
    const std::int64_t before = samples[begin == 0 ? 0 : begin - 1].time.ns;
    const auto gap = [&](std::size_t i) {
      return static_cast<std::uint64_t>(block[i].time.ns - (i == 0 ? before : block[i - 1].time.ns));
    };
    std::uint64_t gaps = 0;
    for (std::size_t i = 0; i < block.size(); ++i) gaps |= gap(i);
    const auto gap_bits = static_cast<std::uint32_t>(std::bit_width(gaps));
    blocks_.push_back({before, static_cast<std::uint32_t>(bytes.size()), gap_bits});
    append_bit_fields(bytes, block.size(), gap_bits, gap);
    append_bit_fields(bytes, block.size(), what_bits_,
                      [&](std::size_t i) { return (std::uint64_t{block[i].entry} << cpu_bits_) | block[i].cpu; });
  }
  bytes.resize(bytes.size() + kBitFieldsTail);
  bytes_.assign(bytes.begin(), bytes.end());  // exactly the needed size: it is kept for hours
}

SampleLog SampleLog::earlier_by(std::int64_t ns) const {
  SampleLog log = *this;
  log.first_.ns -= ns;
  log.last_.ns -= ns;
  for (Block& block : log.blocks_) block.time_ns -= ns;
  return log;
}

std::size_t SampleLog::block_before(MonotonicTime from) const {
  // If a block's first delta starts at `from`, the block before it may have samples at `from`, too.
  const auto at = std::lower_bound(blocks_.begin(), blocks_.end(), from.ns,
                                   [](const Block& block, std::int64_t ns) { return block.time_ns < ns; });
  return at == blocks_.begin() ? 0 : static_cast<std::size_t>(at - blocks_.begin()) - 1;
}

OpenSampleLog::View OpenSampleLog::view() const {
  View view;
  view.chunks_.assign(chunks_.begin(), chunks_.end());
  view.spans_ = spans_;
  view.count_ = count_;
  view.whole_ = whole_;
  view.first_ = first_;
  view.last_ = last_;
  return view;
}

std::shared_ptr<const SampleLog> OpenSampleLog::seal(std::span<const std::uint32_t> new_number) const {
  if (!whole_) return nullptr;
  std::vector<LoggedSample> samples;
  samples.reserve(count_);
  for (std::size_t i = 0; i < count_; ++i) {
    const Chunk& chunk = *chunks_[i / kPerChunk];
    const std::size_t place = i % kPerChunk;
    samples.push_back({{chunk.times[place]}, new_number[chunk.entries[place]], chunk.cpus[place]});
  }
  return std::make_shared<const SampleLog>(std::move(samples));
}

bool OpenSampleLog::add_chunk() {
  if (!budget_.has_room(kChunkBytes)) {
    discard();
    return false;
  }
  // Not make_shared, which would zero all of it first.
  chunks_.push_back(std::shared_ptr<Chunk>(new Chunk));
  spans_.emplace_back();
  budget_.take(kChunkBytes);
  return true;
}

void OpenSampleLog::release() {
  budget_.give_back(bytes());
  chunks_.clear();
  spans_.clear();
  count_ = 0;
}

}  // namespace flamed::store
