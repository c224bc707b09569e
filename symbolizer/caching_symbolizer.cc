// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/caching_symbolizer.h"

#include <algorithm>
#include <array>
#include <limits>

namespace flamed::symbolizer {
namespace {

/// How many frames are looked up or stored under one hold of the lock: some tens of microseconds.
constexpr std::size_t kFramesPerLock = 256;

/// Chains that are looked through for an equal one. 1 MiB, so that tens of thousands of functions find their places.
constexpr std::size_t kLately = 1U << 16;

/// What an entry costs besides its Slot: a node and a bucket of the hash table, the control block of the chain.
constexpr std::size_t kBookkeepingBytes = 96;

std::size_t heap_bytes(const std::string& text) {
  // Short strings live inside the object.
  return text.capacity() > std::string().capacity() ? text.capacity() + 1 : 0;
}

std::size_t hash_of_chain(const SymbolChain& chain) {
  std::size_t hash = chain.size();
  for (const Symbol& symbol : chain) {
    // Most chains come with the hashes of their names.
    const std::uint64_t name = symbol.hash != 0 ? symbol.hash : hash_of(symbol.name, symbol.module);
    hash = (hash * 31 + name) * 31 + symbol.line;
  }
  return hash;
}

bool is_pending(const SymbolChain& chain) {
  return std::any_of(chain.begin(), chain.end(), [](const Symbol& symbol) { return symbol.pending; });
}

/// "Don't know" may be only "not yet", and just-in-time compilers use their memory again for other functions.
bool is_short_lived(const SymbolChain& chain) {
  return std::any_of(chain.begin(), chain.end(),
                     [](const Symbol& symbol) { return !symbol.reason.empty() || symbol.kind == SymbolKind::kJit; });
}

}  // namespace

CachingSymbolizer::CachingSymbolizer(Symbolizer& inner, const Clock& clock)
    : CachingSymbolizer(inner, clock, Options()) {}

CachingSymbolizer::CachingSymbolizer(Symbolizer& inner, const Clock& clock, Options options)
    : inner_(inner), clock_(clock), options_(options) {}

std::vector<SymbolChainPtr> CachingSymbolizer::symbolise(std::span<const Frame> frames) {
  forget_renewed(frames);
  std::vector<SymbolChainPtr> chains(frames.size());
  std::vector<std::size_t> missing;
  std::uint64_t forgotten_before = 0;
  {
    std::lock_guard lock(mutex_);
    forgotten_before = forgotten_;
  }
  const std::int64_t asked_ns = clock_.monotonic().ns;
  for (std::size_t first = 0; first < frames.size(); first += kFramesPerLock) {
    const std::size_t end = std::min(first + kFramesPerLock, frames.size());
    const std::size_t missing_before = missing.size();
    std::lock_guard lock(mutex_);
    look_up_locked(frames.subspan(first, end - first), asked_ns, &chains[first]);
    for (std::size_t i = first; i < end; ++i) {
      if (chains[i] == nullptr) missing.push_back(i);
    }
    const std::size_t missed = missing.size() - missing_before;
    stats_.hits += end - first - missed;
    stats_.misses += missed;
  }
  if (missing.empty()) return chains;

  std::sort(missing.begin(), missing.end(), [&](std::size_t a, std::size_t b) { return frames[a] < frames[b]; });
  std::vector<Frame> asked;
  for (const std::size_t i : missing) {
    if (asked.empty() || asked.back() != frames[i]) asked.push_back(frames[i]);
  }
  const std::vector<SymbolChainPtr> answers = inner_.symbolise(asked);
  std::size_t answer = 0;
  for (const std::size_t i : missing) {
    while (asked[answer] != frames[i]) ++answer;
    chains[i] = answers[answer];
  }

  const std::int64_t answered_ns = clock_.monotonic().ns;
  for (std::size_t first = 0; first < asked.size(); first += kFramesPerLock) {
    const std::size_t end = std::min(first + kFramesPerLock, asked.size());
    std::lock_guard lock(mutex_);
    // These may be the answers of before: rather asked for once more than kept for good.
    if (forgotten_ != forgotten_before) break;
    for (std::size_t i = first; i < end; ++i) insert_locked(asked[i], answers[i], answered_ns);
  }
  return chains;
}

void CachingSymbolizer::forget_renewed(std::span<const Frame> frames) {
  std::vector<ModuleId> modules;
  for (const Frame& frame : frames) {
    if (modules.empty() || modules.back() != frame.module) modules.push_back(frame.module);
  }
  std::sort(modules.begin(), modules.end());
  modules.erase(std::unique(modules.begin(), modules.end()), modules.end());
  for (const ModuleId module : inner_.renewed(modules)) {
    forget(module);
    std::lock_guard lock(mutex_);
    ++stats_.renewals;
  }
}

void CachingSymbolizer::look_up_locked(std::span<const Frame> frames, std::int64_t now_ns, SymbolChainPtr* chains) {
  // Slots lie anywhere: all are on their way into the processor's cache before the first is looked at.
  std::array<Slot*, kFramesPerLock> found{};
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const auto entry = slot_of_.find(frames[i]);
    if (entry == slot_of_.end()) continue;
    found[i] = &slots_[entry->second];
    __builtin_prefetch(found[i]);
  }
  for (std::size_t i = 0; i < frames.size(); ++i) {
    if (found[i] == nullptr || now_ns >= found[i]->expires_ns) continue;
    found[i]->recently_used = true;
    chains[i] = found[i]->chain;
  }
}

void CachingSymbolizer::insert_locked(const Frame& frame, const SymbolChainPtr& chain, std::int64_t now_ns) {
  if (is_pending(*chain)) return;
  const bool short_lived = is_short_lived(*chain);
  if (short_lived && options_.unknown_ttl_ns <= 0) return;
  Slot slot;
  slot.frame = frame;
  slot.chain = shared_locked(chain);
  slot.expires_ns = short_lived ? now_ns + options_.unknown_ttl_ns : std::numeric_limits<std::int64_t>::max();
  slot.bytes = sizeof(Slot) + kBookkeepingBytes + sizeof(SymbolChain) + chain->capacity() * sizeof(Symbol);
  for (const Symbol& symbol : *chain) {
    for (const std::string* text :
         {&symbol.name, &symbol.module, &symbol.reason, &symbol.full_name, &symbol.build_id, &symbol.file}) {
      slot.bytes += heap_bytes(*text);
    }
  }
  if (slot.bytes > options_.budget_bytes) return;

  if (const auto known = slot_of_.find(frame); known != slot_of_.end()) free_locked(known->second);
  stats_.bytes += slot.bytes;
  evict_locked();
  std::size_t place = slots_.size();
  if (free_slots_.empty()) {
    slots_.push_back(std::move(slot));
  } else {
    place = free_slots_.back();
    free_slots_.pop_back();
    slots_[place] = std::move(slot);
  }
  slot_of_[frame] = place;
}

SymbolChainPtr CachingSymbolizer::shared_locked(const SymbolChainPtr& chain) {
  if (lately_.empty()) lately_.resize(kLately);
  std::weak_ptr<const SymbolChain>& place = lately_[hash_of_chain(*chain) % kLately];
  if (SymbolChainPtr known = place.lock(); known != nullptr && *known == *chain) return known;
  place = chain;
  return chain;
}

void CachingSymbolizer::free_locked(std::size_t slot) {
  stats_.bytes -= slots_[slot].bytes;
  slot_of_.erase(slots_[slot].frame);
  slots_[slot] = Slot();
  free_slots_.push_back(slot);
}

void CachingSymbolizer::evict_locked() {
  while (stats_.bytes > options_.budget_bytes) {
    if (hand_ >= slots_.size()) hand_ = 0;
    Slot& slot = slots_[hand_];
    if (slot.chain != nullptr) {
      if (slot.recently_used) {
        slot.recently_used = false;
      } else {
        free_locked(hand_);
        ++stats_.evictions;
      }
    }
    ++hand_;
  }
}

void CachingSymbolizer::forget(ModuleId module) {
  std::lock_guard lock(mutex_);
  ++forgotten_;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].chain != nullptr && slots_[i].frame.module == module) free_locked(i);
  }
}

CachingSymbolizer::Stats CachingSymbolizer::stats() const {
  std::lock_guard lock(mutex_);
  Stats stats = stats_;
  stats.entries = slot_of_.size();
  return stats;
}

}  // namespace flamed::symbolizer
