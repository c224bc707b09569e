// SPDX-License-Identifier: Apache-2.0
//
// CachingSymbolizer: remembers what another Symbolizer answered, for all processes together: a page of libc that a
// hundred processes run is named once. Any thread; the locks are held for table look-ups only, never while the inner
// symbolizer works. The inner symbolizer and the clock must outlive it.
//
// Answers are kept by ModuleId, so an id must not be given to another module while this lives, or forget() be called.
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
    /// Of everything kept, its bookkeeping included. A chain that several addresses share is counted once.
    std::size_t budget_bytes = std::size_t{32} << 20;
    /// "Don't know" may be only "not yet": the kernel module was just loaded, a file could not be read for a moment.
    /// What is known to be on its way (Symbol::pending) is not kept at all. Names of JIT code are kept as long: its
    /// memory is used again for other functions.
    std::int64_t unknown_ttl_ns = 5 * kNsPerSecond;
  };

  CachingSymbolizer(Symbolizer& inner, const Clock& clock);
  CachingSymbolizer(Symbolizer& inner, const Clock& clock, Options options);

  std::vector<SymbolChainPtr> symbolise(std::span<const Frame> frames) override;
  std::vector<ModuleId> renewed(std::span<const ModuleId> modules) override { return inner_.renewed(modules); }
  std::uint64_t edition(std::span<const ModuleId> modules) override;

  /// Drops what is kept of one module, and doesn't keep what is just being answered.
  void forget(ModuleId module);

  struct Stats {
    std::uint64_t hits = 0;
    std::uint64_t misses = 0;     ///< frames that the inner symbolizer was asked for; expired answers too
    std::uint64_t evictions = 0;  ///< for the budget
    std::uint64_t renewals = 0;   ///< modules forgotten because more became known of them
    std::size_t entries = 0;
    std::size_t bytes = 0;
  };
  [[nodiscard]] Stats stats() const;

 private:
  /// Eviction is by clock (second chance): a hit sets `recently_used`, the hand clears it, and drops what it finds
  /// clear. Unlike a list in order of use, a hit moves nothing.
  struct Slot {
    Frame frame;
    SymbolChainPtr chain;  ///< null: the slot is free
    std::int64_t expires_ns = 0;
    bool recently_used = false;
  };
  /// A chain that slots have. Addresses of one function mostly have equal chains: they have one, and who gets the same
  /// again knows it without reading it.
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
  /// Of no more frames than are looked up under one hold of the lock. Leaves alone the chains that are not kept.
  void look_up_locked(std::span<const Frame> frames, std::int64_t now_ns, SymbolChainPtr* chains);
  void insert_locked(const Frame& frame, const SymbolChainPtr& chain, std::int64_t now_ns);
  void free_locked(std::uint32_t slot);

  /// Where in places_ the search for the frame begins.
  [[nodiscard]] std::size_t home_locked(const Frame& frame) const;
  /// Where in places_ its slot stands, or would.
  [[nodiscard]] std::size_t place_locked(const Frame& frame) const;
  void erase_place_locked(std::size_t place);
  void double_places_locked();
  void evict_locked();

  Symbolizer& inner_;
  const Clock& clock_;
  const Options options_;

  const std::uint64_t seed_;  ///< processes choose their addresses: they must not be able to choose collisions

  mutable std::mutex mutex_;  ///< guards what follows
  std::deque<Slot> slots_;
  std::vector<std::uint32_t> free_slots_;
  /// Slots by the hash of their frame: open addressing, linear probing, a power of two, at most half of them taken.
  std::vector<std::uint32_t> places_;
  std::size_t entries_ = 0;
  std::unordered_map<const SymbolChain*, Kept, HashOfContent, EqualContent> kept_;
  std::uint32_t hand_ = 0;
  std::uint64_t forgotten_ = 0;  ///< calls of forget()
  Stats stats_;
};

}  // namespace flamed::symbolizer
