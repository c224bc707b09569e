// SPDX-License-Identifier: Apache-2.0
#include "archive/codec/minute.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <utility>

#include "archive/codec/block.h"

namespace flamed::archive {
namespace {

constexpr std::uint8_t kVersion = 1;
/// Room for so many is taken before they were read.
constexpr std::uint64_t kTrustedPairs = 1U << 16;

// The columns. Most pairs have one sample, so `kStacks` is all that they take.
enum : std::size_t {
  kHead,     // see encode()
  kThreads,  // for each thread: thread - the thread before (the first: thread), number of its stacks - 1
  kStacks,   // for each of its stacks: (stack - the stack before) << 1 | more (the first: stack << 1 | more)
  kCounts,   // for each with `more`: (count - 1) << 1 | is_cut; without it the count is 1 and the stack is not cut
  kColumns
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

Result<std::vector<std::byte>> encode(const Minute& minute) {
  std::array<Column, kColumns> columns;
  Column& head = columns[kHead];
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
  std::uint32_t previous_thread = 0;
  for (std::size_t i = 0; i < minute.pairs.size();) {
    const std::uint32_t thread = minute.pairs[i].thread;
    const std::size_t first = i;
    std::uint32_t previous_stack = 0;
    for (; i < minute.pairs.size() && minute.pairs[i].thread == thread; ++i) {
      const Pair& pair = minute.pairs[i];
      const bool more = pair.is_cut || pair.count != 1;
      columns[kStacks].put(std::uint64_t{pair.stack - previous_stack} << 1 | (more ? 1U : 0U));
      if (more) columns[kCounts].put((std::uint64_t{pair.count} - 1) << 1 | (pair.is_cut ? 1U : 0U));
      previous_stack = pair.stack;
    }
    columns[kThreads].put(thread - previous_thread);
    columns[kThreads].put(i - first - 1);
    previous_thread = thread;
  }
  return pack_block(kVersion, columns);
}

Result<Minute> decode_minute(std::span<const std::byte> block, const DictionarySize& dictionary) {
  Result<BlockReader> opened = BlockReader::open(block, kVersion, kColumns);
  if (!opened) return std::move(opened).error();
  BlockReader& columns = *opened;
  ByteReader& head = columns[kHead];
  const auto take_signed = [&] { return unzigzag(head.uleb()); };
  Minute minute;
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
  if (!take_counts(head, minute.quality.truncated) || !take_counts(head, minute.quality.lost)) return damaged();
  const std::uint64_t pairs = head.uleb();
  if (head.left() != 0) {
    const std::uint64_t first = head.uleb();
    if (first > minute.sequence) return damaged();
    minute.first = static_cast<std::uint32_t>(first);
  }
  constexpr std::int64_t kMostNs = std::numeric_limits<std::int64_t>::max() / 4;
  const auto is_time = [&](std::int64_t ns) { return -kMostNs <= ns && ns <= kMostNs; };
  if (!head.ok() || !is_time(minute.start.ns) || !is_time(minute.wall_offset_ns) || length <= 0 || length > kMostNs ||
      minute.period_ns <= 0) {
    return damaged();
  }
  minute.end.ns = minute.start.ns + length;
  if (pairs > columns[kStacks].left()) return damaged();
  minute.pairs.reserve(std::min<std::uint64_t>(pairs, kTrustedPairs));
  std::uint64_t thread = 0;
  while (minute.pairs.size() < pairs) {
    const std::uint64_t step = columns[kThreads].uleb();
    const std::uint64_t stacks = columns[kThreads].uleb();
    if (step > dictionary.threads || (step == 0 && !minute.pairs.empty()) || stacks >= pairs - minute.pairs.size()) {
      return damaged();
    }
    thread += step;
    if (thread >= dictionary.threads) return damaged();
    std::uint64_t stack = 0;
    for (std::uint64_t i = 0; i <= stacks; ++i) {
      const std::uint64_t row = columns[kStacks].uleb();
      const std::uint64_t more = (row & 1) != 0 ? columns[kCounts].uleb() : 0;
      if (row >> 1 > dictionary.stacks || more >> 1 >= std::numeric_limits<std::uint32_t>::max()) return damaged();
      stack += row >> 1;
      if (stack >= dictionary.stacks) return damaged();
      const Pair pair{static_cast<std::uint32_t>(thread), static_cast<std::uint32_t>(stack), (more & 1) != 0,
                      static_cast<std::uint32_t>((more >> 1) + 1)};
      // The same stack twice only as whole, then cut.
      if (i != 0 && row >> 1 == 0 && (minute.pairs.back().is_cut || !pair.is_cut)) return damaged();
      minute.pairs.push_back(pair);
    }
  }
  if (!columns.ok()) return damaged();
  return minute;
}

}  // namespace flamed::archive
