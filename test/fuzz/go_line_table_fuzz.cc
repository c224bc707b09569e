// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as the tables of a Go program: functions ascend, chains are bounded, and nothing outside is read.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "symbolizer/go/go_frames.h"
#include "symbolizer/go/go_line_table.h"
#include "test/unit/symbolizer/go/go_recording.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using flamed::symbolizer::GoLineTable;
  const auto table =
      GoLineTable::parse(flamed::symbolizer::go_recording(std::string_view(reinterpret_cast<const char*>(data), size)));
  if (!table) {
    if (table.error().message().empty()) std::abort();
    return 0;
  }
  for (std::size_t i = 0; i < table->size() && i < 200; ++i) {
    const GoLineTable::Function function = table->function(i);
    if (function.entry > function.end) std::abort();
    for (std::uint64_t step = 0; step < 64 && function.entry + step < function.end; ++step) {
      const auto chain = table->locate(function.entry + step);
      if (chain.size() > 200) std::abort();
      for (std::size_t frame = 0; frame < chain.size(); ++frame) {
        if (chain[frame].inlined != (frame != 0)) std::abort();
      }
    }
  }
  constexpr std::size_t kMostBytes = 1 << 20;
  if (flamed::symbolizer::go_frames(*table, kMostBytes).size() > kMostBytes) std::abort();
  static_cast<void>(table->locate(0));
  static_cast<void>(table->locate(UINT64_MAX));
  return 0;
}
