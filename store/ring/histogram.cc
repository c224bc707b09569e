// SPDX-License-Identifier: Apache-2.0
#include "store/ring/histogram.h"

#include <algorithm>

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
  std::vector<std::uint8_t> bytes;
  bytes.reserve(entries.size() * 4 + 16);
  std::vector<std::uint8_t> group;
  std::uint32_t previous_thread = 0;
  for (std::size_t i = 0; i < order.size();) {
    const std::uint32_t thread = entries[order[i].entry].thread;
    std::uint32_t previous_stack = 0;
    group.clear();
    const std::size_t first = i;
    for (; i < order.size() && entries[order[i].entry].thread == thread; ++i) {
      const HistogramEntry& entry = entries[order[i].entry];
      StackRef ref = StackRef::from_key(entry.stack_key);
      bool more = ref.cut || entry.count != 1;
      append_leb128(group, (std::uint64_t{ref.stack.value - previous_stack} << 1) | (more ? 1U : 0U));
      if (more) append_leb128(group, (std::uint64_t{entry.count - 1} << 1) | (ref.cut ? 1U : 0U));
      previous_stack = ref.stack.value;
    }
    append_leb128(bytes, thread - previous_thread);
    append_leb128(bytes, i - first);
    append_leb128(bytes, group.size());
    bytes.insert(bytes.end(), group.begin(), group.end());
    previous_thread = thread;
  }
  bytes_.assign(bytes.begin(), bytes.end());  // exactly the needed size: it is kept for a day
}

}  // namespace flamed::store
