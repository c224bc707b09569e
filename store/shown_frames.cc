// SPDX-License-Identifier: Apache-2.0
#include "store/shown_frames.h"

#include <memory>
#include <utility>

namespace flamed::store {
namespace {

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
  for (std::size_t i = 0; i < chains.size(); ++i) {
    fetch_ahead(chains, i);
    start_.push_back(static_cast<std::uint32_t>(frames_.size()));
    table_.append_chain(chains[i].get(), frames_);
  }
  start_.push_back(static_cast<std::uint32_t>(frames_.size()));
  table_.keep(std::move(chains));
}

}  // namespace flamed::store
