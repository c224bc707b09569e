// SPDX-License-Identifier: Apache-2.0
#include "archive/codec/sum.h"

#include <utility>

namespace flamed::archive {

Result<SumBlocks> encode(const Sum& sum) {
  SumBlocks blocks{sum.first, sum.minute.sequence, sum.minute.wall_start(), sum.minute.wall_end(), {}, {}};
  Status packed;
  const auto pack = [&](const auto& value, std::vector<std::byte>& into) {
    if (!packed) return;
    Result<std::vector<std::byte>> block = encode(value);
    if (block) {
      into = std::move(*block);
    } else {
      packed = std::move(block).error();
    }
  };
  pack(sum.additions, blocks.additions);
  pack(sum.minute, blocks.pairs);
  if (sum.short_processes) {
    pack(sum.short_processes->additions, blocks.short_additions);
    pack(sum.short_processes->minute, blocks.short_pairs);
  }
  if (!packed) return packed.error();
  return blocks;
}

}  // namespace flamed::archive
