// SPDX-License-Identifier: Apache-2.0
//
// IdIndex: finds the id of a value by the value's hash. The values stay where they are; the index holds 4 bytes for
// each place, open addressing with linear probing. The bits of a place that ids do not need hold bits of the hash, so
// that a probe skips other entries without reading their values. So the index can be 85 % full and grow by a quarter
// instead of doubling: 5.2 bytes per id on average. Entries are not removed one by one: the index is rebuilt after a
// sweep. Writer only; must not outlive its Budget.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "store/containers/budget.h"

namespace flamed::store {

/// Spreads a 64-bit value over all bits (the finaliser of MurmurHash3).
inline std::uint64_t mix(std::uint64_t h) {
  h ^= h >> 33;
  h *= 0xff51afd7ed558ccdULL;
  h ^= h >> 33;
  h *= 0xc4ceb9fe1a85ec53ULL;
  return h ^ (h >> 33);
}

/// Ids are below 2^31, hashes use all their bits.
class IdIndex {
 public:
  static constexpr std::uint32_t kNone = 0xffffffffU;

  explicit IdIndex(Budget& budget) : budget_(budget) {}
  ~IdIndex() { budget_.give_back(places_.size() * sizeof(std::uint32_t)); }
  IdIndex(const IdIndex&) = delete;
  IdIndex& operator=(const IdIndex&) = delete;

  /// The id for which `equals(id)` holds, or kNone. `equals` is called for few other ids.
  template <typename Equals>
  [[nodiscard]] std::uint32_t find(std::uint64_t hash, Equals&& equals) const {
    if (places_.empty()) return kNone;
    const std::uint32_t tag = tag_of(hash);
    for (std::size_t i = first_place(hash);; i = next(i)) {
      const std::uint32_t place = places_[i];
      if (place == kNone) return kNone;
      if ((place & ~id_mask_) == tag && equals(place & id_mask_)) return place & id_mask_;
    }
  }

  /// Makes room for `count` more ids. False if the budget has no room for them: then nothing has changed. `hash_of(id)`
  /// must give the hash that each id was inserted with.
  template <typename HashOf>
  [[nodiscard]] bool make_room(HashOf&& hash_of, std::size_t count = 1) {
    const std::size_t needed = size_ + count;
    if (needed * 20 <= places_.size() * 17) return true;
    const std::size_t grown = std::max({kFewest, places_.size() + places_.size() / 4, needed * 20 / 17 + 1});
    if (!budget_.has_room(grown * sizeof(std::uint32_t))) {
      // Slower probes are better than a lost stack. While the budget holds bytes back, the last of these places stay
      // free, too.
      return budget_.holds_back() ? needed * 10 <= places_.size() * 9 : needed * 16 <= places_.size() * 15;
    }
    const std::vector<std::uint32_t> old = resize(grown);
    std::array<std::uint32_t, kAtOnce> ids;
    std::size_t count_of_ids = 0;
    for (const std::uint32_t place : old) {
      if (place == kNone) continue;
      ids[count_of_ids++] = place & id_mask_;
      if (count_of_ids == kAtOnce) put_all(ids, std::exchange(count_of_ids, 0), hash_of);
    }
    put_all(ids, count_of_ids, hash_of);
    budget_.give_back(old.size() * sizeof(std::uint32_t));
    return true;
  }

  /// It is so full that it must have failed to grow: few places are left.
  [[nodiscard]] bool is_tight() const { return size_ * 20 > places_.size() * 17; }

  /// Only after make_room() returned true, and for a value that is not in the index yet.
  void insert(std::uint64_t hash, std::uint32_t id) {
    while (id >= id_mask_) widen_ids();
    put(hash, id);
    ++size_;
  }

  /// Clears the index and shrinks it for `expected` ids, at most as many as it had.
  void reset(std::size_t expected) {
    // Two thirds full, so that it does not grow again for the next few ids.
    const std::size_t wanted = std::max(kFewest, expected + expected / 2);
    if (wanted + wanted / 4 < places_.size()) {
      budget_.give_back(places_.size() * sizeof(std::uint32_t));
      places_ = {};
      static_cast<void>(resize(wanted));
    } else {
      places_.assign(places_.size(), kNone);
    }
    size_ = 0;
  }

 private:
  static constexpr std::size_t kFewest = 64;
  static constexpr std::size_t kAtOnce = 32;

  /// The upper half of the hash gives the place, the upper bits of the lower half are stored with the id.
  [[nodiscard]] std::size_t first_place(std::uint64_t hash) const { return ((hash >> 32) * places_.size()) >> 32; }
  [[nodiscard]] std::uint32_t tag_of(std::uint64_t hash) const { return static_cast<std::uint32_t>(hash) & ~id_mask_; }
  [[nodiscard]] std::size_t next(std::size_t i) const { return i + 1 == places_.size() ? 0 : i + 1; }

  std::vector<std::uint32_t> resize(std::size_t count) {
    std::vector<std::uint32_t> old(count, kNone);
    old.swap(places_);
    budget_.take(count * sizeof(std::uint32_t));
    return old;
  }
  /// One bit less for the hash, one more for the id. The bit is 0 in all present ids.
  void widen_ids() {
    const std::uint32_t bit = id_mask_ + 1;
    id_mask_ |= bit;
    for (std::uint32_t& place : places_) {
      if (place != kNone) place &= ~bit;
    }
  }
  void put(std::uint64_t hash, std::uint32_t id) {
    std::size_t i = first_place(hash);
    while (places_[i] != kNone) i = next(i);
    places_[i] = tag_of(hash) | id;
  }

  /// The values are scattered in memory: so many are prefetched together.
  template <typename HashOf>
  void put_all(const std::array<std::uint32_t, kAtOnce>& ids, std::size_t count, HashOf&& hash_of) {
    std::array<std::uint64_t, kAtOnce> hashes;
    for (std::size_t i = 0; i < count; ++i) hashes[i] = hash_of(ids[i]);
    for (std::size_t i = 0; i < count; ++i) put(hashes[i], ids[i]);
  }

  Budget& budget_;
  std::vector<std::uint32_t> places_;
  std::uint32_t id_mask_ = 0xffff;  ///< the id's bits of a place; every id is smaller, so that no used place looks free
  std::size_t size_ = 0;
};

}  // namespace flamed::store
