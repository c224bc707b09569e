// SPDX-License-Identifier: Apache-2.0
//
// CachingSymbolizer: caches the answers of another Symbolizer for all processes together: an address of libc that a
// hundred processes run is named once. Any thread; locks are held only for table look-ups, never while the inner
// symbolizer works. The inner symbolizer and the clock must outlive it.
//
// Answers are kept by ModuleId. If an id is reused for another module, forget() must be called.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/identity.h"
#include "symbolizer/model/symbol.h"

namespace flamed::symbolizer {

class CachingSymbolizer final : public Symbolizer {
 public:
  struct Options {
    /// For all cached data and its bookkeeping. A chain shared by several addresses is counted once.
    std::size_t budget_bytes = std::size_t{32} << 20;
    /// Missing names may appear: a kernel module was just loaded, a file could not be read for a moment. Pending
    /// answers (Symbol::pending) are not kept at all. Names of JIT code are kept as long: its memory is reused for
    /// other functions.
    std::int64_t unknown_ttl_ns = 5 * kNsPerSecond;
  };

  CachingSymbolizer(Symbolizer& inner, const Clock& clock);
  CachingSymbolizer(Symbolizer& inner, const Clock& clock, Options options);

  std::vector<SymbolChainPtr> symbolise(std::span<const Frame> frames) override;
  std::vector<ModuleId> renewed(std::span<const ModuleId> modules) override { return inner_.renewed(modules); }
  std::uint64_t edition(std::span<const ModuleId> modules) override;
  /// The kept answers alone; null: there is none. The inner symbolizer is not asked for anything.
  std::vector<SymbolChainPtr> known(std::span<const Frame> frames) override;
  /// How often answers were dropped because there may be better ones.
  [[nodiscard]] std::uint64_t forgotten() const;

  /// Drops the answers of one module, and does not keep those that are just being computed.
  void forget(ModuleId module);
  /// The same of all modules.
  void forget_all();

  struct Stats {
    std::uint64_t hits = 0;
    std::uint64_t misses = 0;     ///< frames looked up in the inner symbolizer, including expired ones
    std::uint64_t evictions = 0;  ///< for the budget
    std::uint64_t renewals = 0;   ///< modules forgotten because their names have improved
    std::size_t entries = 0;
    std::size_t bytes = 0;
  };
  [[nodiscard]] Stats stats() const;

 private:
  /// Eviction by the clock algorithm (second chance): a hit sets `recently_used`, the hand clears it, and evicts slots
  /// where it is clear. Unlike in an LRU list, a hit moves nothing.
  struct Slot {
    Frame frame;
    SymbolChainPtr chain;  ///< null: the slot is free
    std::int64_t expires_ns = 0;
    bool recently_used = false;
  };
  /// A chain of slots. Addresses of one function mostly have equal chains: they share one, so that equal chains can be
  /// recognised by their pointer.
  struct Kept {
    SymbolChainPtr chain{};
    std::size_t slots = 0;
    std::size_t bytes = 0;
  };
  struct HashOfContent {
    std::size_t operator()(const SymbolChain* chain) const;
  };
  struct EqualContent {
    bool operator()(const SymbolChain* a, const SymbolChain* b) const { return a == b || *a == *b; }
  };

  void forget_renewed(std::span<const ModuleId> modules);
  /// Appends the indexes of frames without an answer to `missing`.
  std::vector<SymbolChainPtr> look_up(std::span<const Frame> frames, std::vector<std::size_t>& missing);
  /// Looks up a batch of frames under one hold of the lock. Does not change the chains of missing ones.
  void look_up_locked(std::span<const Frame> frames, std::int64_t now_ns, SymbolChainPtr* chains);
  void insert_locked(const Frame& frame, const SymbolChainPtr& chain, std::int64_t now_ns);
  void free_locked(std::uint32_t slot);

  /// The index in places_ at which the search for the frame begins.
  [[nodiscard]] std::size_t home_locked(const Frame& frame) const;
  /// The index in places_ of its slot, or of the free place for it.
  [[nodiscard]] std::size_t place_locked(const Frame& frame) const;
  void erase_place_locked(std::size_t place);
  void double_places_locked();
  void evict_locked();

  Symbolizer& inner_;
  const Clock& clock_;
  const Options options_;

  const std::uint64_t seed_;  ///< processes choose their addresses, but must not be able to choose collisions

  mutable std::mutex mutex_;  ///< guards the members below
  std::deque<Slot> slots_;
  std::vector<std::uint32_t> free_slots_;
  /// Slots by the hash of their frame: open addressing, linear probing, a power of two in size, at most half full.
  std::vector<std::uint32_t> places_;
  std::size_t entries_ = 0;
  std::unordered_map<const SymbolChain*, Kept, HashOfContent, EqualContent> kept_;
  std::uint32_t hand_ = 0;
  std::uint64_t forgotten_ = 0;  ///< calls of forget()
  Stats stats_;
};

}  // namespace flamed::symbolizer
