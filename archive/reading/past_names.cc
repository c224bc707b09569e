// SPDX-License-Identifier: Apache-2.0
#include "archive/reading/past_names.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <utility>

#include "archive/codec/names.h"
#include "base/result.h"

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

std::uint32_t PastNames::add_dictionary() {
  const std::lock_guard lock(mutex_);
  blocks_.emplace_back();
  return static_cast<std::uint32_t>(blocks_.size() - 1);
}

void PastNames::add(std::uint32_t dictionary, std::span<const NewFrame> frames) {
  const std::lock_guard lock(mutex_);
  for (const NewFrame& added : frames) {
    const auto place = static_cast<std::uint32_t>(named_.size());
    named_.push_back({store::PackedFrame(added.frame), dictionary, added.number});
    Module& module = modules_[added.frame.module.value];
    module.name = added.module;
    module.places.push_back(place);
  }
}

void PastNames::add_block(std::uint32_t dictionary, std::span<const std::byte> block, std::uint32_t frames) {
  const std::lock_guard lock(mutex_);
  blocks_[dictionary].push_back({{block.begin(), block.end()}, lowest_frame_in(block).value_or(0), frames});
  block_bytes_ += sizeof(Block) + block.size();
}

void PastNames::look_up(std::span<const std::uint32_t> places) const {
  const auto number_of = [&](std::uint32_t place) { return named_[place].number; };
  const auto has_less = [&](std::uint32_t a, std::uint32_t b) { return number_of(a) < number_of(b); };
  const auto [least, most] = std::minmax_element(places.begin(), places.end(), has_less);
  const std::uint32_t first = number_of(*least);
  std::vector<std::uint32_t> place_of(number_of(*most) - first + 1, kNone);  // by number, from `first` on
  for (const std::uint32_t place : places) place_of[number_of(place) - first] = place;
  const auto end = static_cast<std::uint32_t>(first + place_of.size());
  std::vector<Block>& blocks = blocks_[named_[places.front()].dictionary];
  for (std::uint32_t i = 0; i < blocks.size(); ++i) {
    Block& block = blocks[i];
    const auto is_open = [&](std::uint32_t number) {
      if (number < first || number >= end) return false;
      const std::uint32_t place = place_of[number - first];
      return place != kNone && named_[place].looked <= i;
    };
    std::uint32_t next = std::max(block.lowest, first);
    while (next < std::min(block.frames, end) && !is_open(next)) ++next;
    if (next >= std::min(block.frames, end)) continue;
    std::uint32_t lowest = block.frames;
    const auto is_wanted = [&](std::uint32_t number) {
      lowest = std::min(lowest, number);
      return is_open(number);
    };
    const Result<std::vector<Name>> names = decode_names(block.bytes, block.frames, is_wanted);
    block.lowest = names ? lowest : block.frames;
    if (!names) continue;  // these frames have no names; what was sampled is known all the same
    for (const Name& name : *names) set(named_[place_of[name.frame - first]], name.chain);
  }
  for (const std::uint32_t place : places) named_[place].looked = static_cast<std::uint32_t>(blocks.size());
}

void PastNames::set(Named& named, std::shared_ptr<const InlineChain> chain) const {
  const auto [known, is_new] = chain_numbers_.try_emplace(std::move(chain), chains_.size() + 1);
  if (is_new) {
    chain_bytes_ += memory_of(*known->first) + kRowBytes;
    chains_.push_back(known->first);
  }
  named.chain = static_cast<std::uint32_t>(known->second);
}

std::vector<std::uint32_t> PastNames::places_of(std::span<const Frame> frames,
                                                std::span<const std::shared_ptr<const InlineChain>> chains) const {
  std::vector<std::uint32_t> places(frames.size(), kNone);
  std::vector<std::pair<Frame, std::uint32_t>> wanted;  // with its place in `frames`
  for (std::uint32_t i = 0; i < frames.size(); ++i) {
    if (chains[i] == nullptr && is_past(frames[i])) wanted.emplace_back(frames[i], i);
  }
  std::sort(wanted.begin(), wanted.end());
  for (auto first = wanted.begin(); first != wanted.end();) {
    const ModuleId module = first->first.module;
    const auto end = std::find_if(first, wanted.end(), [&](const auto& other) { return other.first.module != module; });
    const auto known = modules_.find(module.value);
    if (known != modules_.end()) {
      for (const std::uint32_t place : known->second.places) {
        const Frame frame = named_[place].frame;
        for (auto at = std::lower_bound(first, end, std::pair(frame, 0U)); at != end && at->first == frame; ++at) {
          places[at->second] = place;
        }
      }
    }
    first = end;
  }
  return places;
}

void PastNames::name(std::span<const Frame> frames, std::span<std::shared_ptr<const InlineChain>> chains) const {
  const std::lock_guard lock(mutex_);
  const std::vector<std::uint32_t> places = places_of(frames, chains);
  std::map<std::uint32_t, std::vector<std::uint32_t>> to_look_up;  // by dictionary
  for (const std::uint32_t place : places) {
    if (place == kNone) continue;
    const Named& named = named_[place];
    if (named.looked < blocks_[named.dictionary].size()) to_look_up[named.dictionary].push_back(place);
  }
  for (auto& [dictionary, of_it] : to_look_up) look_up(of_it);
  for (std::size_t i = 0; i < frames.size(); ++i) {
    if (places[i] == kNone) continue;
    const std::uint32_t chain = named_[places[i]].chain;
    chains[i] = chain != 0 ? chains_[chain - 1] : unknown(frames[i], *modules_.at(frames[i].module.value).name);
  }
}

std::size_t PastNames::bytes() const {
  const std::lock_guard lock(mutex_);
  constexpr std::size_t kBytesOfModule = 128;
  return block_bytes_ + modules_.size() * kBytesOfModule + named_.size() * sizeof(std::uint32_t) +
         named_.capacity() * sizeof(Named) + chains_.capacity() * sizeof(chains_.front()) + chain_bytes_;
}

}  // namespace flamed::archive
