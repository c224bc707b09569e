// SPDX-License-Identifier: Apache-2.0
#include "store/ring/histogram.h"

#include <algorithm>
#include <array>

namespace flamed::store {

Histogram::Histogram(std::span<const HistogramEntry> entries, std::vector<std::uint32_t>* places)
    : entry_count_(entries.size()) {
  struct Place {
    std::uint64_t key = 0;
    std::uint32_t entry = 0;
  };
  std::vector<Place> order;
  order.reserve(entries.size());
  for (const HistogramEntry& entry : entries) {
    order.push_back({(std::uint64_t{entry.thread} << 32) | entry.stack_key, static_cast<std::uint32_t>(order.size())});
  }
  const auto is_before = [](const Place& a, const Place& b) { return a.key < b.key; };
  // As they come from disk.
  if (!std::is_sorted(order.begin(), order.end(), is_before)) std::sort(order.begin(), order.end(), is_before);
  if (places != nullptr) {
    places->resize(entries.size());
    for (std::size_t i = 0; i < order.size(); ++i) (*places)[order[i].entry] = static_cast<std::uint32_t>(i);
  }
  std::vector<std::uint8_t> bytes, group;
  bytes.reserve(entries.size() * 4 + 16);
  std::uint32_t previous_thread = 0;
  for (std::size_t i = 0; i < order.size();) {
    const std::uint32_t thread = entries[order[i].entry].thread;
    const std::size_t first = i;
    while (i < order.size() && entries[order[i].entry].thread == thread) ++i;
    group.resize(std::max(group.size(), (i - first) * 2 * kMostLeb128Bytes));
    std::uint8_t* end = group.data();
    std::uint32_t previous_stack = 0;
    for (std::size_t place = first; place < i; ++place) {
      const HistogramEntry& entry = entries[order[place].entry];
      const StackRef ref = StackRef::from_key(entry.stack_key);
      const bool more = ref.cut || entry.count != 1;
      end = write_leb128(end, (std::uint64_t{ref.stack.value - previous_stack} << 1) | (more ? 1U : 0U));
      if (more) end = write_leb128(end, (std::uint64_t{entry.count - 1} << 1) | (ref.cut ? 1U : 0U));
      previous_stack = ref.stack.value;
    }
    std::array<std::uint8_t, 3 * kMostLeb128Bytes> head;
    std::uint8_t* head_end = write_leb128(head.data(), thread - previous_thread);
    head_end = write_leb128(head_end, i - first);
    head_end = write_leb128(head_end, static_cast<std::uint64_t>(end - group.data()));
    bytes.insert(bytes.end(), head.data(), head_end);
    bytes.insert(bytes.end(), group.data(), end);
    previous_thread = thread;
  }
  bytes_.assign(bytes.begin(), bytes.end());  // exactly the needed size: it is kept for a day
}

}  // namespace flamed::store
