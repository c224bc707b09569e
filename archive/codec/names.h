// SPDX-License-Identifier: Apache-2.0
//
// Names: what frames of a session's dictionary are called. A plain value, and its bytes. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
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

Result<std::vector<std::byte>> encode(std::span<const Name> names);

/// `frames` is the number of frames in the dictionary. Names with the same chain share it. An Error says what is wrong
/// with the bytes; with code ENOTSUP they have another version.
Result<std::vector<Name>> decode_names(std::span<const std::byte> block, std::uint32_t frames);

}  // namespace flamed::archive
