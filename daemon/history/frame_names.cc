// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/frame_names.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

#include "symbolizer/model/module_reader.h"
#include "symbolizer/model/reading_purpose.h"

namespace flamed::daemon {
namespace {

constexpr std::size_t kAtOnce = 256;
/// Of those without a name, so many are asked for again with each minute.
constexpr std::size_t kAskedAgain = 256;
constexpr std::size_t kMostUnknown = std::size_t{1} << 16;
constexpr std::int64_t kLongestNs = 15 * kNsPerSecond;
constexpr std::int64_t kLongestAtEndNs = 3 * kNsPerSecond;

bool has_code(const Frame& frame) { return frame.module != kTruncatedModule && frame.module != kHiddenModule; }

bool is_settled(const InlineChain& chain) {
  return std::none_of(chain.begin(), chain.end(),
                      [](const NamedFrame& frame) { return frame.pending || !frame.reason.empty(); });
}

}  // namespace

void FrameNames::begin_session() {
  added_.clear();
  new_.clear();
  unknown_.clear();
}

void FrameNames::add(std::uint32_t first, std::span<const Frame> frames) {
  for (const Frame& frame : frames) {
    if (has_code(frame)) added_.push_back({first, frame});
    ++first;
  }
}

bool FrameNames::may_go_on(const std::stop_token& stop, MonotonicTime deadline) const {
  const MonotonicTime now = parts_.clock.monotonic();
  if (stop.stop_requested()) return now.ns < deadline.ns - kLongestNs + kLongestAtEndNs;
  return now < deadline && parts_.may_work();
}

std::vector<archive::Name> FrameNames::take(const std::stop_token& stop) {
  std::vector<archive::Name> names;
  const MonotonicTime deadline{parts_.clock.monotonic().ns + kLongestNs};
  std::size_t again = std::min(kAskedAgain, unknown_.size());
  name_at_hand(names);
  while (!new_.empty() && may_go_on(stop, deadline)) name(new_, kAtOnce, names);
  for (; again > 0 && may_go_on(stop, deadline); again -= std::min(again, kAtOnce)) {
    name(unknown_, std::min(again, kAtOnce), names);
  }
  return names;
}

void FrameNames::name(std::deque<Unnamed>& from, std::size_t count, std::vector<archive::Name>& names) {
  std::vector<Unnamed> asked;
  std::vector<Frame> frames;
  for (; !from.empty() && asked.size() < count; from.pop_front()) {
    frames.push_back(without_mark(from.front().frame));
    asked.push_back(std::move(from.front()));
  }
  const symbolizer::ReadingFor background(symbolizer::ReadingPurpose::kBackground);
  const std::vector<symbolizer::SymbolChainPtr> chains = parts_.symbolizer.symbolise(frames);
  for (std::size_t i = 0; i < std::min(asked.size(), chains.size()); ++i) {
    take_chain(std::move(asked[i]), chains[i], names);
  }
}

void FrameNames::name_at_hand(std::vector<archive::Name>& names) {
  std::vector<Unnamed> added = std::exchange(added_, {});
  std::vector<Frame> frames;
  frames.reserve(added.size());
  for (const Unnamed& unnamed : added) frames.push_back(without_mark(unnamed.frame));
  const std::vector<symbolizer::SymbolChainPtr> chains = parts_.symbolizer.known(frames);
  std::deque<Unnamed> of_kernel;
  for (std::size_t i = 0; i < added.size(); ++i) {
    if (chains[i] != nullptr) {
      take_chain(std::move(added[i]), chains[i], names);
    } else {
      (frames[i].module == kKernelModule ? of_kernel : new_).push_back(std::move(added[i]));
    }
  }
  while (!of_kernel.empty()) name(of_kernel, kAtOnce, names);
}

void FrameNames::take_chain(Unnamed frame, const symbolizer::SymbolChainPtr& chain, std::vector<archive::Name>& names) {
  if (chain == nullptr || chain->empty()) return;
  const bool is_new = frame.chain == nullptr || (frame.chain != chain && *frame.chain != *chain);
  if (is_new) names.push_back({frame.number, chain});
  if (is_settled(*chain) || unknown_.size() >= kMostUnknown) return;
  frame.chain = chain;
  unknown_.push_back(std::move(frame));
}

}  // namespace flamed::daemon
