// SPDX-License-Identifier: Apache-2.0
//
// StrongId: a number with a type of its own, so that a stack's id can't be passed as a frame's.
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
