// SPDX-License-Identifier: Apache-2.0
//
// Names: what frames of a session's dictionary are called. A plain value, and its bytes. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/named_frame.h"
#include "base/result.h"

namespace flamed::archive {

/// A later name of the same frame replaces an earlier one.
struct Name {
  std::uint32_t frame = 0;
  std::shared_ptr<const InlineChain> chain;  ///< never null, not empty; NamedFrame::pending is not kept
};

/// The block says behind its end which is the lowest of its frames, so that a reader who looks for others need not
/// unpack it.
Result<std::vector<std::byte>> encode(std::span<const Name> names);

/// That frame. Empty: flamed's first versions did not say it.
[[nodiscard]] std::optional<std::uint32_t> lowest_frame_in(std::span<const std::byte> block);

/// Whether a frame's name is wanted.
using WantsName = std::function<bool(std::uint32_t frame)>;
/// The names that are wanted; without `wants`, all. `frames` is the number of frames in the dictionary. Names with the
/// same chain share it. An Error says what is wrong with the bytes; with code ENOTSUP they have another version.
Result<std::vector<Name>> decode_names(std::span<const std::byte> block, std::uint32_t frames,
                                       const WantsName& wants = {});

}  // namespace flamed::archive
