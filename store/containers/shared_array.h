// SPDX-License-Identifier: Apache-2.0
//
// SharedArray: values with small numeric ids, in chunks. One writer adds, changes and releases values; a View is an
// immutable copy of the array, for any thread, and may outlive the array.
//
// A view shares the chunks. The writer copies a chunk before the first change after a view was taken, so an id can be
// reused at once while views still hold its former value, and readers need neither a lock nor registration. Copies that
// only views hold are not in the budget: they live as long as a query.
//
// The array itself, with view(), belongs to the writer, or is called under the writer's lock.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "store/containers/budget.h"

namespace flamed::store {

/// For arrays without stamps.
struct NoStamp {};

/// `Stamp` is an unsigned number, or NoStamp.
template <typename T, std::size_t kPerChunk, typename Stamp = std::uint32_t>
class SharedArray {
  static_assert(kPerChunk % 64 == 0 && std::has_single_bit(kPerChunk));

 public:
  /// Ids stay below this so that their owner has one bit of a 32-bit word left.
  static constexpr std::uint32_t kMaxIds = 1U << 31;

  struct Chunk {
    std::array<T, kPerChunk> items{};
  };

  class View {
   public:
    /// Only for ids that were in use when the view was taken.
    const T& operator[](std::uint32_t id) const { return chunks_[id / kPerChunk]->items[id % kPerChunk]; }
    /// Null if the view has no place with that id.
    [[nodiscard]] const T* find(std::uint32_t id) const {
      const std::size_t c = id / kPerChunk;
      return c < chunks_.size() && chunks_[c] != nullptr ? &chunks_[c]->items[id % kPerChunk] : nullptr;
    }
    /// Every id is below this.
    [[nodiscard]] std::uint32_t limit() const { return static_cast<std::uint32_t>(chunks_.size() * kPerChunk); }
    /// Also visits unused places; T must be able to tell them.
    template <typename F>
    void for_each_place(F&& visit) const {
      for (std::size_t c = 0; c < chunks_.size(); ++c) {
        if (chunks_[c] == nullptr) continue;
        for (std::size_t i = 0; i < kPerChunk; ++i) {
          visit(static_cast<std::uint32_t>(c * kPerChunk + i), chunks_[c]->items[i]);
        }
      }
    }

    /// visit(id, const T&) for the places below `end`, all of which were in use when the view was taken.
    template <typename F>
    void for_each_below(std::uint32_t end, F&& visit) const {
      for (std::uint32_t id = 0; id < end;) {
        const Chunk& chunk = *chunks_[id / kPerChunk];
        const auto after = static_cast<std::uint32_t>(std::min<std::size_t>(end, id + kPerChunk));
        for (const T* item = chunk.items.data(); id < after; ++id, ++item) visit(id, *item);
      }
    }

    /// visit(id, const T* before, const T* now) for all places of chunks that two views do not share; null if a view
    /// has no place with that id.
    template <typename F>
    static void for_each_unshared(const View& before, const View& now, F&& visit) {
      const auto chunk_of = [](const View& view, std::size_t c) {
        return c < view.chunks_.size() ? view.chunks_[c].get() : nullptr;
      };
      for (std::size_t c = 0; c < std::max(before.chunks_.size(), now.chunks_.size()); ++c) {
        const Chunk* was = chunk_of(before, c);
        const Chunk* is = chunk_of(now, c);
        if (was == is) continue;
        for (std::size_t i = 0; i < kPerChunk; ++i) {
          visit(static_cast<std::uint32_t>(c * kPerChunk + i), was != nullptr ? &was->items[i] : nullptr,
                is != nullptr ? &is->items[i] : nullptr);
        }
      }
    }

    /// All places of `low`, and those of `high` from id `base` on, which is a multiple of kPerChunk and no less than
    /// low.limit().
    [[nodiscard]] static View joined(const View& low, std::uint32_t base, const View& high) {
      View view = low;
      view.chunks_.resize(base / kPerChunk);
      view.chunks_.insert(view.chunks_.end(), high.chunks_.begin(), high.chunks_.end());
      return view;
    }
    /// For an id that is in use. Other views keep the former value.
    void set(std::uint32_t id, const T& value) {
      auto chunk = std::make_shared<Chunk>(*chunks_[id / kPerChunk]);
      chunk->items[id % kPerChunk] = value;
      chunks_[id / kPerChunk] = std::move(chunk);
    }

   private:
    friend class SharedArray;
    std::vector<std::shared_ptr<const Chunk>> chunks_;
  };

  explicit SharedArray(Budget& budget) : budget_(budget) {}
  ~SharedArray() { budget_.give_back(chunk_count_ * kChunkBytes); }
  SharedArray(const SharedArray&) = delete;
  SharedArray& operator=(const SharedArray&) = delete;

  /// The lowest free id, so that high chunks become empty after a peak. Its value is T{} or its former value; its stamp
  /// is 0. Empty if the budget has no room for another chunk.
  std::optional<std::uint32_t> allocate() {
    while (first_free_ < cells_.size() && (!cells_[first_free_].chunk || cells_[first_free_].used == kPerChunk)) {
      ++first_free_;
    }
    if (first_free_ == cells_.size() && !add_chunk()) return std::nullopt;
    Cell& cell = cells_[first_free_];
    for (std::size_t w = 0; w < kWords; ++w) {
      std::uint64_t& word = cell.side->in_use[w];
      if (~word == 0) continue;
      auto bit = static_cast<std::size_t>(std::countr_one(word));
      word |= std::uint64_t{1} << bit;
      ++cell.used;
      ++size_;
      std::size_t place = w * 64 + bit;
      if constexpr (kHasStamps) cell.side->stamps[place] = 0;
      return static_cast<std::uint32_t>(first_free_ * kPerChunk + place);
    }
    return std::nullopt;
  }

  const T& operator[](std::uint32_t id) const { return cells_[id / kPerChunk].chunk->items[id % kPerChunk]; }

  T& writable(std::uint32_t id) {
    Cell& cell = cells_[id / kPerChunk];
    if (cell.private_since != views_taken_) {
      cell.chunk = std::make_shared<Chunk>(*cell.chunk);
      cell.private_since = views_taken_;
    }
    return cell.chunk->items[id % kPerChunk];
  }

  /// A number per value, visible only to the writer; the owner defines its meaning.
  [[nodiscard]] Stamp stamp(std::uint32_t id) const { return cells_[id / kPerChunk].side->stamps[id % kPerChunk]; }
  void set_stamp(std::uint32_t id, Stamp stamp) { cells_[id / kPerChunk].side->stamps[id % kPerChunk] = stamp; }

  void release(std::uint32_t id) {
    if constexpr (!std::is_trivially_destructible_v<T>) writable(id) = T{};
    Cell& cell = cells_[id / kPerChunk];
    std::size_t place = id % kPerChunk;
    cell.side->in_use[place / 64] &= ~(std::uint64_t{1} << (place % 64));
    --cell.used;
    --size_;
    if (id / kPerChunk < first_free_) first_free_ = id / kPerChunk;
  }

  /// Frees empty chunks.
  void trim() {
    for (std::size_t c = 0; c < cells_.size(); ++c) {
      if (!cells_[c].chunk || cells_[c].used != 0) continue;
      cells_[c].chunk.reset();
      cells_[c].side.reset();
      --chunk_count_;
      budget_.give_back(kChunkBytes);
    }
    while (!cells_.empty() && !cells_.back().chunk) cells_.pop_back();
    vacant_.clear();
    for (std::size_t c = cells_.size(); c-- > 0;) {
      if (!cells_[c].chunk) vacant_.push_back(c);
    }
    first_free_ = 0;
  }

  /// Visits the used ids, ascending. `visit` may release its id.
  template <typename F>
  void for_each(F&& visit) {
    for (std::size_t c = 0; c < cells_.size(); ++c) {
      if (!cells_[c].chunk) continue;
      for (std::size_t w = 0; w < kWords; ++w) {
        for (std::uint64_t word = cells_[c].side->in_use[w]; word != 0; word &= word - 1) {
          visit(static_cast<std::uint32_t>(c * kPerChunk + w * 64 + static_cast<std::size_t>(std::countr_zero(word))));
        }
      }
    }
  }

  [[nodiscard]] View view() {
    ++views_taken_;
    View view;
    view.chunks_.reserve(cells_.size());
    for (const Cell& cell : cells_) view.chunks_.push_back(cell.chunk);
    return view;
  }

  [[nodiscard]] std::size_t size() const { return size_; }
  /// Every id is below this.
  [[nodiscard]] std::uint32_t limit() const { return static_cast<std::uint32_t>(cells_.size() * kPerChunk); }
  /// Whether `count` allocations, no more than a chunk's worth, would succeed.
  [[nodiscard]] bool has_room(std::size_t count) const {
    return chunk_count_ * kPerChunk - size_ >= count || budget_.has_room(kChunkBytes);
  }

 private:
  static constexpr std::size_t kWords = kPerChunk / 64;
  static constexpr bool kHasStamps = !std::is_same_v<Stamp, NoStamp>;

  struct Side {
    std::array<Stamp, kHasStamps ? kPerChunk : 0> stamps{};
    std::array<std::uint64_t, kWords> in_use{};
  };
  struct Cell {
    std::shared_ptr<Chunk> chunk;
    std::unique_ptr<Side> side;
    std::uint64_t private_since = 0;  ///< views_taken_ when the chunk was created: no view has it while they are equal
    std::size_t used = 0;
  };
  static constexpr std::size_t kChunkBytes = sizeof(Chunk) + sizeof(Side) + sizeof(Cell);

  bool add_chunk() {
    if (!budget_.has_room(kChunkBytes)) return false;
    std::size_t at = cells_.size();
    if (!vacant_.empty()) {
      at = vacant_.back();
      vacant_.pop_back();
    } else {
      if ((cells_.size() + 1) * kPerChunk > kMaxIds) return false;
      cells_.emplace_back();
    }
    Cell& cell = cells_[at];
    cell.chunk = std::make_shared<Chunk>();
    cell.side = std::make_unique<Side>();
    cell.private_since = views_taken_;
    cell.used = 0;
    budget_.take(kChunkBytes);
    ++chunk_count_;
    first_free_ = at;
    return true;
  }

  Budget& budget_;
  std::vector<Cell> cells_;
  std::vector<std::size_t> vacant_;  ///< cells without a chunk, lowest last
  std::size_t first_free_ = 0;       ///< no cell below has a free place
  std::size_t chunk_count_ = 0;
  std::size_t size_ = 0;
  std::uint64_t views_taken_ = 0;
};

}  // namespace flamed::store
