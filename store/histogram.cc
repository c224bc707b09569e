// SPDX-License-Identifier: Apache-2.0
#include "store/histogram.h"

#include <algorithm>
#include <tuple>

namespace flamed::store {
namespace {

void append(std::vector<std::uint8_t>& bytes, std::uint64_t value) {
  while (value >= 0x80) {
    bytes.push_back(static_cast<std::uint8_t>(value | 0x80));
    value >>= 7;
  }
  bytes.push_back(static_cast<std::uint8_t>(value));
}

}  // namespace

Histogram::Histogram(std::vector<HistogramEntry> entries) : entry_count_(entries.size()) {
  std::sort(entries.begin(), entries.end(), [](const HistogramEntry& a, const HistogramEntry& b) {
    return std::tie(a.thread, a.stack_key) < std::tie(b.thread, b.stack_key);
  });
  std::vector<std::uint8_t> bytes;
  bytes.reserve(entries.size() * 4 + 16);
  std::vector<std::uint8_t> group;
  std::uint32_t previous_thread = 0;
  for (std::size_t i = 0; i < entries.size();) {
    std::uint32_t thread = entries[i].thread;
    std::uint32_t previous_stack = 0;
    group.clear();
    for (; i < entries.size() && entries[i].thread == thread; ++i) {
      StackRef ref = StackRef::from_key(entries[i].stack_key);
      bool more = ref.cut || entries[i].count != 1;
      append(group, (std::uint64_t{ref.stack.value - previous_stack} << 1) | (more ? 1U : 0U));
      if (more) append(group, (std::uint64_t{entries[i].count - 1} << 1) | (ref.cut ? 1U : 0U));
      previous_stack = ref.stack.value;
    }
    append(bytes, thread - previous_thread);
    append(bytes, group.size());
    bytes.insert(bytes.end(), group.begin(), group.end());
    previous_thread = thread;
  }
  bytes_.assign(bytes.begin(), bytes.end());  // exactly as large as needed: it stays for a day
}

}  // namespace flamed::store
