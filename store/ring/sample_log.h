// SPDX-License-Identifier: Apache-2.0
//
// The single samples of one slot, in addition to its histogram: time, CPU, and pair of thread and stack. The writer has
// an OpenSampleLog; a SampleLog is sealed, immutable and shared with readers.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "base/clock.h"
#include "store/containers/bit_fields.h"
#include "store/containers/budget.h"

namespace flamed::store {

struct LoggedSample {
  MonotonicTime time;
  std::uint32_t entry = 0;  ///< number of the pair of thread and stack in the slot, see SealedSlot
  std::uint16_t cpu = 0;
};

/// In the order of time, with less than 2^57 ns (four years) between samples. Blocks of kSamplesPerBlock samples, each
/// with two columns of numbers of a fixed width:
///
///   ns since the sample before (the first: 0, at first()), as wide as the block's largest
///   entry << b | cpu, with b bits, enough for the largest CPU number in the log
///
/// A host with 8 CPUs needs 5 bytes a sample.
class SampleLog {
 public:
  SampleLog() = default;
  /// In any order; the sort is stable.
  explicit SampleLog(std::vector<LoggedSample> samples);

  /// visit(const LoggedSample&) for the samples in [from, to).
  template <typename F>
  void for_each(MonotonicTime from, MonotonicTime to, F&& visit) const {
    for_each_block(from, to, [&](const Block& block, std::size_t count, bool /*inside*/) {
      const BitFields whats = whats_of(block, count);
      for_each_inside(block, count, from, to, [&](std::size_t i, std::int64_t time) {
        const std::uint64_t what = whats[i];
        visit(
            LoggedSample{{time}, entry_of(what), static_cast<std::uint16_t>(what & ~(~std::uint64_t{0} << cpu_bits_))});
      });
    });
  }
  /// visit(entry) for the samples in [from, to): times are read only in the first and the last block.
  template <typename F>
  void for_each_entry(MonotonicTime from, MonotonicTime to, F&& visit) const {
    for_each_block(from, to, [&](const Block& block, std::size_t count, bool inside) {
      const BitFields whats = whats_of(block, count);
      if (inside) {
        for (std::size_t i = 0; i < count; ++i) visit(entry_of(whats[i]));
      } else {
        for_each_inside(block, count, from, to, [&](std::size_t i, std::int64_t) { visit(entry_of(whats[i])); });
      }
    });
  }

  /// The same samples, so much earlier.
  [[nodiscard]] SampleLog earlier_by(std::int64_t ns) const;

  [[nodiscard]] std::size_t count() const { return count_; }
  /// Times of the earliest and the latest sample; meaningless in an empty log.
  [[nodiscard]] MonotonicTime first() const { return first_; }
  [[nodiscard]] MonotonicTime last() const { return last_; }
  [[nodiscard]] std::size_t bytes() const {
    return sizeof(SampleLog) + 2 * sizeof(void*) + bytes_.size() + blocks_.size() * sizeof(Block);
  }

 private:
  struct Block {
    std::int64_t time_ns = 0;  ///< of the previous sample; in the first block: of its first sample
    std::uint32_t offset = 0;  ///< of its columns in bytes_: a minute of 8192 CPUs has 0.4 GB
    std::uint32_t gap_bits = 0;
  };
  static constexpr std::size_t kSamplesPerBlock = 512;
  static_assert(std::numeric_limits<decltype(LoggedSample::entry)>::digits +
                    std::numeric_limits<decltype(LoggedSample::cpu)>::digits <=
                kWidestBitField);

  [[nodiscard]] std::size_t block_before(MonotonicTime from) const;
  [[nodiscard]] std::uint32_t entry_of(std::uint64_t what) const {
    return static_cast<std::uint32_t>(what >> cpu_bits_);
  }
  [[nodiscard]] BitFields whats_of(const Block& block, std::size_t count) const {
    return {bytes_.data() + block.offset + bytes_of_bit_fields(count, block.gap_bits), what_bits_};
  }
  /// visit(block, its samples, whether all of them are in [from, to)) for the blocks that may have samples there.
  template <typename F>
  void for_each_block(MonotonicTime from, MonotonicTime to, F&& visit) const {
    if (count_ == 0 || to <= first_ || last_ < from) return;
    for (std::size_t i = block_before(from); i < blocks_.size() && blocks_[i].time_ns < to.ns; ++i) {
      const bool is_last = i + 1 == blocks_.size();
      const std::int64_t last_ns = is_last ? last_.ns : blocks_[i + 1].time_ns;
      visit(blocks_[i], is_last ? count_ - i * kSamplesPerBlock : kSamplesPerBlock,
            blocks_[i].time_ns >= from.ns && last_ns < to.ns);
    }
  }
  /// visit(index in the block, time) for the block's samples in [from, to).
  template <typename F>
  void for_each_inside(const Block& block, std::size_t count, MonotonicTime from, MonotonicTime to, F&& visit) const {
    const BitFields gaps(bytes_.data() + block.offset, block.gap_bits);
    std::int64_t time = block.time_ns;
    for (std::size_t i = 0; i < count; ++i) {
      time += static_cast<std::int64_t>(gaps[i]);
      if (time < from.ns) continue;
      if (time >= to.ns) return;
      visit(i, time);
    }
  }

  std::vector<std::uint8_t> bytes_;
  std::vector<Block> blocks_;
  std::size_t count_ = 0;
  MonotonicTime first_;
  MonotonicTime last_;
  std::uint8_t cpu_bits_ = 0;
  std::uint8_t what_bits_ = 0;
};

/// Writer only, except the view. When there is no room for a sample, the log is discarded and takes no more, so that a
/// log is always complete. Must not outlive its Budget.
class OpenSampleLog {
 public:
  static constexpr std::size_t kPerChunk = 1024;

  /// 14 bytes per sample.
  struct Chunk {
    std::array<std::int64_t, kPerChunk> times;
    std::array<std::uint32_t, kPerChunk> entries;
    std::array<std::uint16_t, kPerChunk> cpus;
  };

  /// Times of the earliest and the latest sample of a chunk.
  struct Span {
    MonotonicTime first;
    MonotonicTime last;
  };

  /// The samples so far, in the order of arrival. The writer continues in the last chunk, after the view's samples.
  class View {
   public:
    /// visit(const LoggedSample&) for the samples in [from, to).
    template <typename F>
    void for_each(MonotonicTime from, MonotonicTime to, F&& visit) const {
      for (std::size_t c = 0; c < chunks_.size(); ++c) {
        if (spans_[c].last < from || spans_[c].first >= to) continue;
        const Chunk& chunk = *chunks_[c];
        const std::size_t end = std::min(count_ - c * kPerChunk, kPerChunk);
        for (std::size_t place = 0; place < end; ++place) {
          const std::int64_t time = chunk.times[place];
          if (time < from.ns || time >= to.ns) continue;
          visit(LoggedSample{{time}, chunk.entries[place], chunk.cpus[place]});
        }
      }
    }
    /// visit(entry) for the samples in [from, to).
    template <typename F>
    void for_each_entry(MonotonicTime from, MonotonicTime to, F&& visit) const {
      for_each(from, to, [&](const LoggedSample& sample) { visit(sample.entry); });
    }
    [[nodiscard]] std::size_t count() const { return count_; }
    /// False: the samples were not kept.
    [[nodiscard]] bool whole() const { return whole_; }
    /// Times of the earliest and the latest sample; meaningless without samples.
    [[nodiscard]] MonotonicTime first() const { return first_; }
    [[nodiscard]] MonotonicTime last() const { return last_; }
    /// Of a log whose samples were not kept.
    [[nodiscard]] static View discarded() {
      View view;
      view.whole_ = false;
      return view;
    }

   private:
    friend class OpenSampleLog;
    std::vector<std::shared_ptr<const Chunk>> chunks_;
    std::vector<Span> spans_;
    std::size_t count_ = 0;
    bool whole_ = true;
    MonotonicTime first_;
    MonotonicTime last_;
  };

  explicit OpenSampleLog(Budget& budget) : budget_(budget) {}
  ~OpenSampleLog() { release(); }
  OpenSampleLog(const OpenSampleLog&) = delete;
  OpenSampleLog& operator=(const OpenSampleLog&) = delete;

  /// Whether append() needs memory, and the budget has none.
  [[nodiscard]] bool needs_room() const {
    return whole_ && count_ == chunks_.size() * kPerChunk && !budget_.has_room(kChunkBytes);
  }
  /// It takes no samples any more.
  void discard() {
    release();
    whole_ = false;
  }
  /// Without room the log is discarded.
  void append(const LoggedSample& sample) {
    if (!whole_) return;
    if (count_ == chunks_.size() * kPerChunk && !add_chunk()) return;
    Chunk& chunk = *chunks_.back();
    const std::size_t place = count_++ % kPerChunk;
    chunk.times[place] = sample.time.ns;
    chunk.entries[place] = sample.entry;
    chunk.cpus[place] = sample.cpu;
    Span& span = spans_.back();
    span = place == 0 ? Span{sample.time, sample.time}
                      : Span{std::min(span.first, sample.time), std::max(span.last, sample.time)};
    first_ = count_ == 1 ? sample.time : std::min(first_, sample.time);
    last_ = count_ == 1 ? sample.time : std::max(last_, sample.time);
  }

  [[nodiscard]] View view() const;
  /// A sealed copy whose entries are `new_number[entry]`; null if the log was discarded. It is not in the budget yet.
  [[nodiscard]] std::shared_ptr<const SampleLog> seal(std::span<const std::uint32_t> new_number) const;

  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] bool whole() const { return whole_; }
  [[nodiscard]] std::size_t bytes() const { return chunks_.size() * kChunkBytes; }

 private:
  static constexpr std::size_t kChunkBytes =
      sizeof(Chunk) + 2 * sizeof(void*) + sizeof(std::shared_ptr<Chunk>) + sizeof(Span);

  bool add_chunk();
  void release();

  Budget& budget_;
  std::vector<std::shared_ptr<Chunk>> chunks_;
  std::vector<Span> spans_;  ///< by chunk
  std::size_t count_ = 0;
  bool whole_ = true;
  MonotonicTime first_;
  MonotonicTime last_;
};

}  // namespace flamed::store
