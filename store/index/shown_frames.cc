// SPDX-License-Identifier: Apache-2.0
#include "store/index/shown_frames.h"

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <utility>

namespace flamed::store {
namespace {

/// A cache of recently looked up chains and their frames. Addresses of one function mostly share a chain, which is then
/// read only once. The four possible places of a chain are in one cache line.
class LatelyLookedUp {
 public:
  struct Place {
    const InlineChain* chain = nullptr;
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
  };

  explicit LatelyLookedUp(std::size_t chains)
      : sets_(std::bit_ceil(std::clamp<std::size_t>(chains / 16, 16, std::size_t{1} << 15))),
        shift_(64 - std::countr_zero(sets_.size())) {}

  /// The chain's place, or one that it may take.
  Place& at(const InlineChain* chain) {
    Set& set = sets_[(reinterpret_cast<std::uintptr_t>(chain) * 0x9e3779b97f4a7c15ULL) >> shift_];
    for (Place& place : set) {
      if (place.chain == chain || place.chain == nullptr) return place;
    }
    std::rotate(set.begin(), set.end() - 1, set.end());
    return set.front();
  }

 private:
  using Set = std::array<Place, 4>;

  std::vector<Set> sets_;
  int shift_;
};

/// A name is three pointers away, none of them in the processor's cache: the chain, its frames, their texts. Prefetches
/// the next ones while one is processed.
void fetch_ahead(const std::vector<std::shared_ptr<const InlineChain>>& chains, std::size_t at) {
  constexpr std::size_t kChain = 24, kFrames = 16, kTexts = 8;
  const auto known = [&](std::size_t i) { return i < chains.size() && chains[i] != nullptr && !chains[i]->empty(); };
  if (at + kChain < chains.size()) __builtin_prefetch(chains[at + kChain].get());
  if (known(at + kFrames)) {
    const NamedFrame& frame = chains[at + kFrames]->front();
    __builtin_prefetch(&frame.name);
    __builtin_prefetch(&frame.reason);
    __builtin_prefetch(&frame.inlined);
  }
  if (known(at + kTexts)) __builtin_prefetch(chains[at + kTexts]->front().name.data());
}

}  // namespace

bool ShownFrames::shows_same(std::span<const std::uint32_t> a, std::span<const std::uint32_t> b) const {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](std::uint32_t x, std::uint32_t y) {
    return functions_.variant(x).function == functions_.variant(y).function;
  });
}

std::uint32_t ShownFrames::number_of(std::uint64_t edition) {
  if (editions_ == 0 || edition != edition_) ++editions_;
  edition_ = edition;
  return editions_;
}

bool ShownFrames::name(std::span<const std::uint32_t> ids, const CallTree::Frames::View& frames, FrameNamer& namer,
                       std::uint64_t edition) {
  at_.resize(std::max<std::size_t>(at_.size(), frames.limit()));
  const std::uint32_t now = number_of(edition);
  std::vector<std::uint32_t> asked;
  std::vector<Frame> addresses;
  for (const std::uint32_t id : ids) {
    if (!interpreter_ && is_interpreter(frames[id])) continue;
    const bool is_known = at_[id] != 0;
    if (is_known) {
      const Place& place = places_[at_[id] - 1];
      if (place.edition == now && !place.may_change) continue;
    }
    asked.push_back(id);
    addresses.push_back(frames[id]);
    if (!is_known && (modules_.empty() || modules_.back() != addresses.back().module) &&
        known_modules_.insert(addresses.back().module).second) {
      modules_.push_back(addresses.back().module);
    }
  }
  if (asked.empty()) return false;
  std::vector<std::shared_ptr<const InlineChain>> chains = namer.name(addresses);
  chains.resize(asked.size());
  if (functions_.size() == 0) functions_.reserve(asked.size() / 2);
  LatelyLookedUp lately(chains.size());
  bool changed = false;
  for (std::size_t i = 0; i < chains.size(); ++i) {
    const bool was_known = at_[asked[i]] != 0;
    if (!was_known) {
      if (places_.size() == places_.capacity())
        places_.reserve(places_.size() + places_.size() / 4 + chains.size() - i);
      places_.emplace_back();
      at_[asked[i]] = static_cast<std::uint32_t>(places_.size());
    }
    Place& place = places_[at_[asked[i]] - 1];
    if (place.may_change) {
      const auto changeable = changeable_.find(asked[i]);
      if (chains[i] != nullptr && chains[i] == changeable->second) {
        place.edition = now;
        continue;
      }
      changeable_.erase(changeable);
    }
    fetch_ahead(chains, i);
    const InlineChain* chain = chains[i].get();
    LatelyLookedUp::Place& found = lately.at(chain);
    const bool appended = found.chain == nullptr || found.chain != chain;
    if (appended) {
      const auto begin = static_cast<std::uint32_t>(variants_.size());
      functions_.append_chain(chains[i], variants_);
      found = {chain, begin, static_cast<std::uint32_t>(variants_.size())};
    }
    const auto shown = [&](std::uint32_t begin, std::uint32_t size) {
      return std::span(variants_).subspan(begin, size);
    };
    if (was_known) {
      const auto before = shown(place.begin, place.size);
      const auto after = shown(found.begin, found.end - found.begin);
      changed = changed || !shows_same(before, after);
      // Repeated look-ups must not use more memory each time.
      if (appended && std::equal(before.begin(), before.end(), after.begin(), after.end())) {
        variants_.resize(found.begin);
        found = {chain, place.begin, place.begin + place.size};
      }
    }
    place = {found.begin, found.end - found.begin, now, chain == nullptr || may_change(*chain)};
    if (place.may_change) changeable_.emplace(asked[i], chains[i]);
  }
  return changed;
}

}  // namespace flamed::store
