// SPDX-License-Identifier: Apache-2.0
#include "store/shown_frames.h"

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <utility>

namespace flamed::store {
namespace {

/// Where chains that were looked up lately have their frames. Addresses of one function mostly share a chain: who has
/// seen it need not read it again. The four that a chain may stand in lie in one line of the processor's cache.
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

  /// The chain's, or one that it may have.
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

/// Each name is three pointers away, and none of them in the processor's cache: the chain, its frames, their texts. The
/// way to those that come next is walked while one is looked at.
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

void ShownFrames::name(FrameNamer& namer) {
  std::vector<std::shared_ptr<const InlineChain>> chains;
  if (!seen_.empty()) chains = namer.name(seen_);
  chains.resize(seen_.size());
  start_.reserve(seen_.size() + 1);
  frames_.reserve(seen_.size());
  table_.reserve(seen_.size() / 2);
  LatelyLookedUp lately(chains.size());
  for (std::size_t i = 0; i < chains.size(); ++i) {
    fetch_ahead(chains, i);
    const auto begin = static_cast<std::uint32_t>(frames_.size());
    start_.push_back(begin);
    LatelyLookedUp::Place& place = lately.at(chains[i].get());
    if (place.chain != nullptr && place.chain == chains[i].get()) {
      for (std::uint32_t frame = place.begin; frame < place.end; ++frame) frames_.push_back(frames_[frame]);
      continue;
    }
    table_.append_chain(chains[i].get(), frames_);
    place = {chains[i].get(), begin, static_cast<std::uint32_t>(frames_.size())};
  }
  start_.push_back(static_cast<std::uint32_t>(frames_.size()));
  table_.keep(std::move(chains));
}

}  // namespace flamed::store
