// SPDX-License-Identifier: Apache-2.0
//
// The code that a signal handler returns to, where nothing describes it: signal_frame_rule() applies to it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "unwinder/architecture.h"

namespace flamed::unwinder {

/// All of it on arm64.
inline constexpr std::size_t kSignalReturnBytes = 8;

/// Where it begins in `code`. On arm64 it is the vdso's __kernel_rt_sigreturn(), which has had no unwind information
/// since Linux 5.8, so that unwinders recognise these two instructions (arch/arm64/kernel/vdso/sigreturn.S). Empty
/// elsewhere.
inline std::optional<std::size_t> find_signal_return(Architecture architecture, std::span<const std::byte> code) {
  if (architecture != Architecture::kArm64) return std::nullopt;
  constexpr std::array<std::uint32_t, 2> kInstructions{0xd2801168, 0xd4000001};  // mov x8, #139; svc #0
  for (std::size_t at = 0; at + kSignalReturnBytes <= code.size(); at += sizeof(std::uint32_t)) {
    if (std::memcmp(&code[at], kInstructions.data(), kSignalReturnBytes) == 0) return at;
  }
  return std::nullopt;
}

}  // namespace flamed::unwinder
