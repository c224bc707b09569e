// SPDX-License-Identifier: Apache-2.0
#include "archive/codec/minute.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "archive/codec/block.h"
#include "archive/codec/stack_places.h"

namespace flamed::archive {
namespace {

/// With the numbers of stacks, and with their places.
constexpr std::uint8_t kNumbers = 1;
constexpr std::uint8_t kPlaces = 2;
/// Room for so many is taken before they were read.
constexpr std::uint64_t kTrustedPairs = 1U << 16;

// The columns. Most pairs have one sample, so `kStacks` is all that they take. A stack is its number, or its rank in
// its group, see stack_places.h.
enum : std::size_t {
  kHead,     // see put_head()
  kThreads,  // for each thread: thread - the thread before (the first: thread), number of its stacks - 1
  kStacks,   // for each of its stacks: (stack - the stack before) << 1 | more (the first: stack << 1 | more)
  kCounts,   // for each with `more`: (count - 1) << 1 | is_cut; without it the count is 1 and the stack is not cut
  kColumnsOfNumbers,
  // For each group of a thread's stacks: group - the group before (the first: group), number of its stacks - 1. Its
  // first stack has none before.
  kGroups = kColumnsOfNumbers,
  kColumnsOfPlaces
};

template <std::size_t kCount>
void put_counts(Column& column, const std::array<std::uint64_t, kCount>& counts) {
  column.put(kCount);
  for (const std::uint64_t count : counts) column.put(count);
}

/// Reasons that this flamed does not know are an error: a sample must not vanish.
template <std::size_t kCount>
bool take_counts(ByteReader& column, std::array<std::uint64_t, kCount>& counts) {
  const std::uint64_t count = column.uleb();
  if (count > kCount) return false;
  for (std::size_t i = 0; i < count; ++i) counts[i] = column.uleb();
  return true;
}

Error damaged() { return Error("damaged minute"); }

}  // namespace

std::vector<std::uint32_t> sort_pairs(std::vector<Pair>& pairs) {
  std::vector<std::uint32_t> order(pairs.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return pairs[a] < pairs[b]; });
  std::vector<std::uint32_t> places(pairs.size());
  std::vector<Pair> sorted;
  sorted.reserve(pairs.size());
  for (const std::uint32_t number : order) {
    places[number] = static_cast<std::uint32_t>(sorted.size());
    sorted.push_back(pairs[number]);
  }
  pairs = std::move(sorted);
  return places;
}

namespace {

void put_head(const Minute& minute, Column& head) {
  head.put_signed(minute.start.ns);
  head.put_signed(minute.end.ns - minute.start.ns);
  head.put_signed(minute.wall_offset_ns);
  head.put_signed(minute.period_ns);
  head.put(minute.sequence);
  head.put(minute.cpus);
  head.put(minute.cpu_ns_accounted ? 1 : 0);
  head.put(minute.cpu_ns_accounted.value_or(0));
  head.put(minute.quality.whole);
  put_counts(head, minute.quality.truncated);
  put_counts(head, minute.quality.lost);
  head.put(minute.pairs.size());
  // Of a stretch alone; readers that don't know of stretches leave it unread.
  if (minute.first) head.put(*minute.first);
}

/// The number of pairs. Empty: it is damaged.
std::optional<std::uint64_t> take_head(ByteReader& head, Minute& minute) {
  const auto take_signed = [&] { return unzigzag(head.uleb()); };
  minute.start.ns = take_signed();
  const std::int64_t length = take_signed();
  minute.wall_offset_ns = take_signed();
  minute.period_ns = take_signed();
  minute.sequence = static_cast<std::uint32_t>(head.uleb());
  minute.cpus = static_cast<std::uint32_t>(head.uleb());
  const bool is_accounted = head.uleb() != 0;
  const std::uint64_t accounted = head.uleb();
  if (is_accounted) minute.cpu_ns_accounted = accounted;
  minute.quality.whole = head.uleb();
  if (!take_counts(head, minute.quality.truncated) || !take_counts(head, minute.quality.lost)) return std::nullopt;
  const std::uint64_t pairs = head.uleb();
  if (head.left() != 0) {
    const std::uint64_t first = head.uleb();
    if (first > minute.sequence) return std::nullopt;
    minute.first = static_cast<std::uint32_t>(first);
  }
  constexpr std::int64_t kMostNs = std::numeric_limits<std::int64_t>::max() / 4;
  const auto is_time = [&](std::int64_t ns) { return -kMostNs <= ns && ns <= kMostNs; };
  if (!head.ok() || !is_time(minute.start.ns) || !is_time(minute.wall_offset_ns) || length <= 0 || length > kMostNs ||
      minute.period_ns <= 0) {
    return std::nullopt;
  }
  minute.end.ns = minute.start.ns + length;
  return pairs;
}

/// A pair of a thread, and where its stack is: with numbers, all are in one group.
struct Placed {
  StackPlaces::Place place;
  const Pair* pair = nullptr;
};

Result<std::vector<std::byte>> encode(const Minute& minute, const StackPlaces* places) {
  std::array<Column, kColumnsOfPlaces> columns;
  put_head(minute, columns[kHead]);
  std::vector<Placed> placed;
  std::uint32_t previous_thread = 0;
  for (auto pair = minute.pairs.begin(); pair != minute.pairs.end();) {
    const std::uint32_t thread = pair->thread;
    placed.clear();
    for (; pair != minute.pairs.end() && pair->thread == thread; ++pair) {
      const auto place = places != nullptr ? places->of(pair->stack) : StackPlaces::Place{0, pair->stack};
      placed.push_back({place, &*pair});
    }
    // Ranks ascend with the numbers of stacks.
    std::stable_sort(placed.begin(), placed.end(),
                     [](const Placed& a, const Placed& b) { return a.place.group < b.place.group; });
    std::uint32_t previous_group = 0;
    for (std::size_t i = 0; i < placed.size();) {
      const std::uint32_t group = placed[i].place.group;
      const std::size_t first = i;
      std::uint32_t previous = 0;
      for (; i < placed.size() && placed[i].place.group == group; ++i) {
        const Pair& pair_of = *placed[i].pair;
        const bool more = pair_of.is_cut || pair_of.count != 1;
        columns[kStacks].put(std::uint64_t{placed[i].place.rank - previous} << 1 | (more ? 1U : 0U));
        if (more) columns[kCounts].put((std::uint64_t{pair_of.count} - 1) << 1 | (pair_of.is_cut ? 1U : 0U));
        previous = placed[i].place.rank;
      }
      columns[kGroups].put(group - previous_group);
      columns[kGroups].put(i - first - 1);
      previous_group = group;
    }
    columns[kThreads].put(thread - previous_thread);
    columns[kThreads].put(placed.size() - 1);
    previous_thread = thread;
  }
  if (places != nullptr) return pack_block(kPlaces, columns);
  return pack_block(kNumbers, std::span(columns).first(kColumnsOfNumbers));
}

/// Sorts runs of pairs of one thread, each of which ascends and begins at one of `begins`. No stack is in two of them.
void merge_runs(std::vector<Pair>& pairs, std::vector<std::size_t>& begins, std::vector<Pair>& scratch) {
  const auto at = [&](std::size_t run) { return pairs.data() + (run < begins.size() ? begins[run] : pairs.size()); };
  while (begins.size() > 1) {
    std::size_t runs = 0;
    for (std::size_t run = 0; run < begins.size(); run += 2) {
      begins[runs++] = begins[run];
      if (run + 1 == begins.size()) continue;
      Pair* into = at(run);
      const Pair* second = at(run + 1);
      const Pair* const end = at(run + 2);
      scratch.assign(into, at(run + 1));
      const Pair* first = scratch.data();
      const Pair* const first_end = first + scratch.size();
      // Without a branch: the processor would guess it wrong half the time.
      while (first != first_end && second != end) {
        const bool is_second = second->stack < first->stack;
        *into++ = *(is_second ? second : first);
        second += is_second ? 1 : 0;
        first += is_second ? 0 : 1;
      }
      std::copy(first, first_end, into);
    }
    begins.resize(runs);
  }
}

class Decoder {
 public:
  /// Without `places`, stacks are numbers.
  Decoder(BlockReader& columns, const DictionarySize& dictionary, const StackPlaces* places)
      : columns_(columns), dictionary_(dictionary), places_(places) {}

  Result<Minute> decode() {
    const std::optional<std::uint64_t> pairs = take_head(columns_[kHead], minute_);
    if (!pairs || *pairs > columns_[kStacks].left()) return damaged();
    minute_.pairs.reserve(std::min(*pairs, kTrustedPairs));
    std::uint64_t thread = 0;
    while (minute_.pairs.size() < *pairs) {
      const std::uint64_t step = columns_[kThreads].uleb();
      const std::uint64_t stacks = columns_[kThreads].uleb();
      if (step > dictionary_.threads || (step == 0 && !minute_.pairs.empty()) ||
          stacks >= *pairs - minute_.pairs.size()) {
        return damaged();
      }
      thread += step;
      if (thread >= dictionary_.threads) return damaged();
      if (!take_thread(static_cast<std::uint32_t>(thread), stacks + 1)) return damaged();
    }
    if (!columns_.ok()) return damaged();
    return std::move(minute_);
  }

 private:
  bool take_thread(std::uint32_t thread, std::uint64_t stacks) {
    if (places_ == nullptr) {
      return take_stacks(thread, stacks, dictionary_.stacks, [](std::uint64_t number) { return number; });
    }
    begins_.clear();
    std::uint64_t number = 0;
    while (stacks > 0) {
      const std::uint64_t step = columns_[kGroups].uleb();
      const std::uint64_t count = columns_[kGroups].uleb();
      if (step >= places_->groups() || (step == 0 && !begins_.empty()) || count >= stacks) return false;
      number += step;
      if (number >= places_->groups()) return false;
      const std::span<const std::uint32_t> group = places_->group(number);
      begins_.push_back(minute_.pairs.size());
      if (!take_stacks(thread, count + 1, group.size(), [&](std::uint64_t rank) { return group[rank]; })) return false;
      stacks -= count + 1;
    }
    merge_runs(minute_.pairs, begins_, scratch_);
    return true;
  }

  /// `limit`: of places, of which each is a stack.
  template <typename StackAt>
  bool take_stacks(std::uint32_t thread, std::uint64_t count, std::uint64_t limit, const StackAt& stack_at) {
    std::uint64_t place = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t row = columns_[kStacks].uleb();
      const std::uint64_t more = (row & 1) != 0 ? columns_[kCounts].uleb() : 0;
      if (row >> 1 > limit || more >> 1 >= std::numeric_limits<std::uint32_t>::max()) return false;
      place += row >> 1;
      if (place >= limit) return false;
      const Pair pair{thread, static_cast<std::uint32_t>(stack_at(place)), (more & 1) != 0,
                      static_cast<std::uint32_t>((more >> 1) + 1)};
      // The same stack twice only as whole, then cut.
      if (i != 0 && row >> 1 == 0 && (minute_.pairs.back().is_cut || !pair.is_cut)) return false;
      minute_.pairs.push_back(pair);
    }
    return true;
  }

  BlockReader& columns_;
  const DictionarySize& dictionary_;
  const StackPlaces* places_;
  Minute minute_;
  std::vector<std::size_t> begins_;  ///< of the groups of a thread, in minute_.pairs
  std::vector<Pair> scratch_;
};

/// True: it has numbers. Of another version, opening it as one with places says so.
bool has_numbers(std::span<const std::byte> block) { return !block.empty() && block[0] == std::byte{kNumbers}; }

}  // namespace

Result<std::vector<std::byte>> encode(const Minute& minute) { return encode(minute, nullptr); }

Result<std::vector<std::byte>> encode(const Minute& minute, const StackPlaces& places) {
  return encode(minute, &places);
}

Result<Minute> decode_minute(std::span<const std::byte> block, const StackPlaces& dictionary) {
  if (has_numbers(block)) return decode_minute(block, dictionary.size());
  Result<BlockReader> columns = BlockReader::open(block, kPlaces, kColumnsOfPlaces);
  if (!columns) return std::move(columns).error();
  return Decoder(*columns, dictionary.size(), &dictionary).decode();
}

Result<Minute> decode_minute(std::span<const std::byte> block, const DictionarySize& dictionary) {
  Result<BlockReader> columns = BlockReader::open(block, kNumbers, kColumnsOfNumbers);
  if (!columns) return std::move(columns).error();
  return Decoder(*columns, dictionary, nullptr).decode();
}

Result<Minute> decode_head(std::span<const std::byte> block) {
  Result<BlockReader> columns = BlockReader::open(block, has_numbers(block) ? kNumbers : kPlaces, kColumnsOfNumbers);
  if (!columns) return std::move(columns).error();
  Minute minute;
  if (!take_head((*columns)[kHead], minute)) return damaged();
  return minute;
}

}  // namespace flamed::archive
