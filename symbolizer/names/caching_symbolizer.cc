// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/names/caching_symbolizer.h"

#include <algorithm>
#include <array>
#include <limits>
#include <random>

namespace flamed::symbolizer {
namespace {

/// Frames looked up or stored under one hold of the lock: some tens of microseconds.
constexpr std::size_t kFramesPerLock = 256;

/// A free place.
constexpr std::uint32_t kNone = 0xffffffffU;
constexpr std::size_t kFewestPlaces = 64;
/// Memory of an entry besides its Slot: two to four places.
constexpr std::size_t kPlaceBytes = 4 * sizeof(std::uint32_t);
/// Memory of a chain besides itself: its control block, a node and a bucket of the table of chains.
constexpr std::size_t kChainBytes = 96;

std::uint64_t random_seed() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

bool is_pending(const SymbolChain& chain) {
  return std::any_of(chain.begin(), chain.end(), [](const Symbol& symbol) { return symbol.pending; });
}

/// The distinct modules, sorted.
std::vector<ModuleId> modules_of(std::span<const Frame> frames) {
  std::vector<ModuleId> modules;
  for (const Frame& frame : frames) {
    if (modules.empty() || modules.back() != frame.module) modules.push_back(frame.module);
  }
  std::sort(modules.begin(), modules.end());
  modules.erase(std::unique(modules.begin(), modules.end()), modules.end());
  return modules;
}

}  // namespace

std::size_t CachingSymbolizer::HashOfContent::operator()(const SymbolChain* chain) const {
  std::size_t hash = chain->size();
  for (const Symbol& symbol : *chain) {
    // Most chains already have the hashes of their names.
    const std::uint64_t name = symbol.hash != 0 ? symbol.hash : hash_of(symbol.name, symbol.module);
    hash = (hash * 31 + name) * 31 + symbol.line;
  }
  return hash;
}

CachingSymbolizer::CachingSymbolizer(Symbolizer& inner, const Clock& clock)
    : CachingSymbolizer(inner, clock, Options()) {}

CachingSymbolizer::CachingSymbolizer(Symbolizer& inner, const Clock& clock, Options options)
    : inner_(inner), clock_(clock), options_(options), seed_(random_seed()) {}

std::vector<SymbolChainPtr> CachingSymbolizer::symbolise(std::span<const Frame> frames) {
  forget_renewed(modules_of(frames));
  const std::uint64_t forgotten_before = forgotten();
  std::vector<std::size_t> missing;
  std::vector<SymbolChainPtr> chains = look_up(frames, missing);
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
    // These may be outdated answers: better to look them up once more than to keep them.
    if (forgotten_ != forgotten_before) break;
    for (std::size_t i = first; i < end; ++i) insert_locked(asked[i], answers[i], answered_ns);
  }
  return chains;
}

std::vector<SymbolChainPtr> CachingSymbolizer::known(std::span<const Frame> frames) {
  std::vector<std::size_t> missing;
  return look_up(frames, missing);
}

std::vector<SymbolChainPtr> CachingSymbolizer::look_up(std::span<const Frame> frames,
                                                       std::vector<std::size_t>& missing) {
  std::vector<SymbolChainPtr> chains(frames.size());
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
  return chains;
}

void CachingSymbolizer::forget_renewed(std::span<const ModuleId> modules) {
  for (const ModuleId module : inner_.renewed(modules)) {
    forget(module);
    std::lock_guard lock(mutex_);
    ++stats_.renewals;
  }
}

void CachingSymbolizer::look_up_locked(std::span<const Frame> frames, std::int64_t now_ns, SymbolChainPtr* chains) {
  if (places_.empty()) return;
  // Places, slots and chains are scattered in memory: all of one kind are prefetched before the first is read.
  std::array<std::size_t, kFramesPerLock> home{};
  for (std::size_t i = 0; i < frames.size(); ++i) {
    home[i] = home_locked(frames[i]);
    __builtin_prefetch(&places_[home[i]]);
  }
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const std::uint32_t first = places_[home[i]];
    if (first != kNone) __builtin_prefetch(&slots_[first]);
  }
  std::array<Slot*, kFramesPerLock> found{};
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const std::uint32_t place = places_[place_locked(frames[i])];
    if (place == kNone || now_ns >= slots_[place].expires_ns) continue;
    found[i] = &slots_[place];
    found[i]->recently_used = true;
    __builtin_prefetch(found[i]->chain.get());
  }
  for (std::size_t i = 0; i < frames.size(); ++i) {
    if (found[i] != nullptr) chains[i] = found[i]->chain;
  }
}

void CachingSymbolizer::insert_locked(const Frame& frame, const SymbolChainPtr& chain, std::int64_t now_ns) {
  if (is_pending(*chain)) return;
  const bool short_lived = may_change(*chain);
  if (short_lived && options_.unknown_ttl_ns <= 0) return;
  Slot slot;
  slot.frame = frame;
  slot.expires_ns = short_lived ? now_ns + options_.unknown_ttl_ns : std::numeric_limits<std::int64_t>::max();
  const std::size_t chain_bytes = kChainBytes + memory_of(*chain);
  if (sizeof(Slot) + kPlaceBytes + chain_bytes > options_.budget_bytes) return;

  if (2 * (entries_ + 1) > places_.size()) double_places_locked();
  if (const std::uint32_t known = places_[place_locked(frame)]; known != kNone) free_locked(known);
  const auto [kept, fresh] = kept_.try_emplace(chain.get(), Kept{chain, 0, chain_bytes});
  if (fresh) stats_.bytes += chain_bytes;
  ++kept->second.slots;
  slot.chain = kept->second.chain;
  stats_.bytes += sizeof(Slot) + kPlaceBytes;
  evict_locked();
  auto place = static_cast<std::uint32_t>(slots_.size());
  if (free_slots_.empty()) {
    slots_.push_back(std::move(slot));
  } else {
    place = free_slots_.back();
    free_slots_.pop_back();
    slots_[place] = std::move(slot);
  }
  places_[place_locked(frame)] = place;
  ++entries_;
}

void CachingSymbolizer::free_locked(std::uint32_t slot) {
  const auto kept = kept_.find(slots_[slot].chain.get());
  if (--kept->second.slots == 0) {
    stats_.bytes -= kept->second.bytes;
    kept_.erase(kept);
  }
  stats_.bytes -= sizeof(Slot) + kPlaceBytes;
  erase_place_locked(place_locked(slots_[slot].frame));
  --entries_;
  slots_[slot] = Slot();
  free_slots_.push_back(slot);
}

std::size_t CachingSymbolizer::home_locked(const Frame& frame) const {
  std::uint64_t hash = (frame.offset ^ seed_) * 0x9e3779b97f4a7c15ULL + frame.module.value;
  hash = (hash ^ (hash >> 32)) * 0xff51afd7ed558ccdULL;
  return static_cast<std::size_t>(hash ^ (hash >> 32)) & (places_.size() - 1);
}

std::size_t CachingSymbolizer::place_locked(const Frame& frame) const {
  std::size_t place = home_locked(frame);
  while (places_[place] != kNone && slots_[places_[place]].frame != frame) place = (place + 1) & (places_.size() - 1);
  return place;
}

/// Moves later entries into the gap where possible, so that no search ends at a gap too early.
void CachingSymbolizer::erase_place_locked(std::size_t place) {
  const std::size_t mask = places_.size() - 1;
  std::size_t gap = place;
  for (std::size_t next = (gap + 1) & mask; places_[next] != kNone; next = (next + 1) & mask) {
    const std::size_t home = home_locked(slots_[places_[next]].frame);
    if (((next - home) & mask) < ((next - gap) & mask)) continue;
    places_[gap] = places_[next];
    gap = next;
  }
  places_[gap] = kNone;
}

void CachingSymbolizer::double_places_locked() {
  places_.assign(std::max(kFewestPlaces, 2 * places_.size()), kNone);
  for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
    if (slots_[slot].chain != nullptr) places_[place_locked(slots_[slot].frame)] = slot;
  }
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

std::uint64_t CachingSymbolizer::edition(std::span<const ModuleId> modules) {
  forget_renewed(modules);
  std::lock_guard lock(mutex_);
  return forgotten_;
}

void CachingSymbolizer::forget(ModuleId module) {
  std::lock_guard lock(mutex_);
  ++forgotten_;
  for (std::uint32_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].chain != nullptr && slots_[i].frame.module == module) free_locked(i);
  }
}

void CachingSymbolizer::forget_all() {
  std::lock_guard lock(mutex_);
  ++forgotten_;
  for (std::uint32_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].chain != nullptr) free_locked(i);
  }
}

std::uint64_t CachingSymbolizer::forgotten() const {
  std::lock_guard lock(mutex_);
  return forgotten_;
}

CachingSymbolizer::Stats CachingSymbolizer::stats() const {
  std::lock_guard lock(mutex_);
  Stats stats = stats_;
  stats.entries = entries_;
  return stats;
}

}  // namespace flamed::symbolizer
