// SPDX-License-Identifier: Apache-2.0
//
// StrongId: a number whose type says what it counts, so that a stack can't be passed where a frame is meant.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace flamed {

template <typename Tag, typename Rep = std::uint32_t>
struct StrongId {
  Rep value{};

  friend constexpr auto operator<=>(StrongId, StrongId) = default;
};

}  // namespace flamed

template <typename Tag, typename Rep>
struct std::hash<flamed::StrongId<Tag, Rep>> {
  std::size_t operator()(flamed::StrongId<Tag, Rep> id) const noexcept { return std::hash<Rep>{}(id.value); }
};
