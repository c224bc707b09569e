// SPDX-License-Identifier: Apache-2.0
//
// IdIndex: finds the id of a value by the value's hash. The values stay where they are; the index holds 4 bytes for
// each place, open addressing with linear probing. Nothing is removed singly: after a sweep the index is rebuilt.
// Writer only; must not outlive its Budget.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "store/budget.h"

namespace flamed::store {

/// Spreads a 64-bit value over all bits (the finaliser of MurmurHash3).
inline std::uint64_t mix(std::uint64_t h) {
  h ^= h >> 33;
  h *= 0xff51afd7ed558ccdULL;
  h ^= h >> 33;
  h *= 0xc4ceb9fe1a85ec53ULL;
  return h ^ (h >> 33);
}

class IdIndex {
 public:
  static constexpr std::uint32_t kNone = 0xffffffffU;

  explicit IdIndex(Budget& budget) : budget_(budget) {}
  ~IdIndex() { budget_.give_back(places_.size() * sizeof(std::uint32_t)); }
  IdIndex(const IdIndex&) = delete;
  IdIndex& operator=(const IdIndex&) = delete;

  /// The id for which `equals(id)` holds, or kNone.
  template <typename Equals>
  [[nodiscard]] std::uint32_t find(std::uint64_t hash, Equals&& equals) const {
    if (places_.empty()) return kNone;
    for (std::size_t i = hash & mask_;; i = (i + 1) & mask_) {
      std::uint32_t id = places_[i];
      if (id == kNone || equals(id)) return id;
    }
  }

  /// Makes sure that `count` more ids fit. False when they do not and the budget has no room: nothing changed then.
  /// `hash_of(id)` must give the hash that each id was inserted with.
  template <typename HashOf>
  [[nodiscard]] bool make_room(HashOf&& hash_of, std::size_t count = 1) {
    if ((size_ + count - 1) * 4 < places_.size() * 3) return true;
    std::size_t grown = std::max(kFewest, places_.size() * 2);
    while ((size_ + count - 1) * 4 >= grown * 3) grown *= 2;
    if (!budget_.has_room(grown * sizeof(std::uint32_t))) {
      return (size_ + count - 1) * 8 < places_.size() * 7;  // slower probes are better than a lost stack
    }
    std::vector<std::uint32_t> old = resize(grown);
    for (std::uint32_t id : old) {
      if (id != kNone) place(hash_of(id), id);
    }
    budget_.give_back(old.size() * sizeof(std::uint32_t));
    return true;
  }

  /// After make_room() said yes, with a value that is not in the index yet.
  void insert(std::uint64_t hash, std::uint32_t id) {
    place(hash, id);
    ++size_;
  }

  /// Forgets everything and makes itself as small as `expected` ids allow, which must be no more than it held.
  void reset(std::size_t expected) {
    std::size_t wanted = places_.size();
    // Halving at a quarter full leaves it half full, so that the next few ids do not double it again.
    while (wanted > kFewest && expected * 4 < wanted) wanted /= 2;
    if (wanted != places_.size()) {
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

  std::vector<std::uint32_t> resize(std::size_t count) {
    std::vector<std::uint32_t> old(count, kNone);
    old.swap(places_);
    mask_ = count - 1;
    budget_.take(count * sizeof(std::uint32_t));
    return old;
  }
  void place(std::uint64_t hash, std::uint32_t id) {
    std::size_t i = hash & mask_;
    while (places_[i] != kNone) i = (i + 1) & mask_;
    places_[i] = id;
  }

  Budget& budget_;
  std::vector<std::uint32_t> places_;  ///< a power of two of them
  std::size_t mask_ = 0;
  std::size_t size_ = 0;
};

}  // namespace flamed::store
