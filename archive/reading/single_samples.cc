// SPDX-License-Identifier: Apache-2.0
#include "archive/reading/single_samples.h"

#include <cstddef>
#include <span>
#include <utility>

namespace flamed::archive {

std::optional<std::vector<Sample>> read_samples(PeriodReader& reader, std::int64_t row, const Minute& minute) {
  std::optional<std::vector<Sample>> samples;
  const Status read = reader.samples_of(row, [&](std::int64_t, std::span<const std::byte> block) -> Status {
    Result<std::vector<Sample>> decoded = decode_samples(block, minute);
    if (!decoded) return std::move(decoded).error();
    samples = std::move(*decoded);
    return {};
  });
  if (!read) return std::nullopt;
  return samples;
}

}  // namespace flamed::archive
