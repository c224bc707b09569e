// SPDX-License-Identifier: Apache-2.0
#include "runtimes/v8/positions.h"

#include <algorithm>
#include <optional>

namespace flamed::runtimes {
namespace {

class Numbers {
 public:
  explicit Numbers(std::span<const std::byte> bytes) : rest_(bytes) {}

  /// Seven bits a byte, the lowest first; the lowest bit of all is the sign.
  std::optional<std::int64_t> next() {
    std::uint64_t bits = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = std::to_integer<std::uint64_t>(rest_.front());
      rest_ = rest_.subspan(1);
      bits |= (byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return static_cast<std::int64_t>(bits >> 1 ^ (0 - (bits & 1)));
    }
    return std::nullopt;
  }

 private:
  std::span<const std::byte> rest_;
};

/// A position is a bit, the character plus 1 in 30 bits, and the number of an inlined call.
constexpr std::uint64_t kCharacterMask = (std::uint64_t{1} << 30) - 1;

}  // namespace

std::vector<V8Position> read_v8_positions(std::span<const std::byte> bytes, std::size_t most) {
  std::vector<V8Position> positions;
  Numbers numbers(bytes);
  std::int64_t instruction = -1;  // where a function is entered, before its first one
  std::int64_t source = 0;
  while (positions.size() < most) {
    const std::optional<std::int64_t> step = numbers.next();
    const std::optional<std::int64_t> source_step = numbers.next();
    if (!step || !source_step) break;
    // The sign says whether a statement begins there.
    const std::int64_t forward = *step >= 0 ? *step : -(*step + 1);
    if (__builtin_add_overflow(instruction, forward, &instruction) ||
        __builtin_add_overflow(source, *source_step, &source) || instruction > UINT32_MAX) {
      break;
    }
    const auto bits = static_cast<std::uint64_t>(source);
    const std::uint64_t character = bits >> 1 & kCharacterMask;
    const bool is_in_script = (bits & 1) == 0 && character != 0;
    if (!is_in_script) continue;
    positions.push_back({static_cast<std::uint32_t>(std::max<std::int64_t>(instruction, 0)),
                         static_cast<std::uint32_t>(character - 1)});
  }
  return positions;
}

}  // namespace flamed::runtimes
