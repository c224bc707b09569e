// SPDX-License-Identifier: Apache-2.0
#include "archive/reading/past_names.h"

#include <array>
#include <cstdio>
#include <utility>

namespace flamed::archive {
namespace {

std::shared_ptr<const InlineChain> unknown(const Frame& frame, const std::string& module) {
  std::array<char, 32> offset{};
  std::snprintf(offset.data(), offset.size(), "+0x%llx)", static_cast<unsigned long long>(frame.offset));
  return share({NamedFrame{"[unknown] (" + module + offset.data(), module, FrameKind::kUnknown,
                           "its name was not kept: flamed ended before it was known"}});
}

/// Of a row of the map of chains.
constexpr std::size_t kRowBytes = 64;

}  // namespace

std::size_t PastNames::HashOfChain::operator()(const std::shared_ptr<const InlineChain>& chain) const {
  std::uint64_t hash = chain->size();
  for (const NamedFrame& frame : *chain) hash = store::mix(hash ^ frame.hash ^ std::uint64_t{frame.line} << 32);
  return hash;
}

std::uint64_t PastNames::hash_of(const Frame& frame) {
  return store::mix(store::mix(frame.offset) ^ frame.module.value);
}

std::uint32_t PastNames::add(const Frame& frame, const std::shared_ptr<const std::string>& module) {
  const std::lock_guard lock(mutex_);
  const auto place = static_cast<std::uint32_t>(named_.size());
  named_.push_back({store::PackedFrame(frame)});
  modules_.push_back(module);
  static_cast<void>(index_.make_room([&](std::uint32_t other) { return hash_of(named_[other].frame); }));
  index_.insert(hash_of(frame), place);
  return place;
}

void PastNames::set(std::uint32_t place, std::shared_ptr<const InlineChain> chain) {
  const std::lock_guard lock(mutex_);
  const auto [known, is_new] = chain_numbers_.try_emplace(std::move(chain), chains_.size() + 1);
  if (is_new) {
    chain_bytes_ += memory_of(*known->first) + kRowBytes;
    chains_.push_back(known->first);
  }
  named_[place].chain = static_cast<std::uint32_t>(known->second);
}

void PastNames::name(std::span<const Frame> frames, std::span<std::shared_ptr<const InlineChain>> chains) const {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < frames.size(); ++i) {
    if (chains[i] != nullptr || !is_past(frames[i])) continue;
    const store::PackedFrame wanted(frames[i]);
    const std::uint32_t place =
        index_.find(hash_of(frames[i]), [&](std::uint32_t other) { return named_[other].frame == wanted; });
    if (place == store::IdIndex::kNone) continue;
    const std::uint32_t chain = named_[place].chain;
    chains[i] = chain != 0 ? chains_[chain - 1] : unknown(frames[i], *modules_[place]);
  }
}

std::size_t PastNames::bytes() const {
  const std::lock_guard lock(mutex_);
  return budget_.used_bytes() + named_.capacity() * sizeof(Named) + modules_.capacity() * sizeof(modules_.front()) +
         chains_.capacity() * sizeof(chains_.front()) + chain_bytes_;
}

}  // namespace flamed::archive
