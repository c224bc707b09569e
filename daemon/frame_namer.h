// SPDX-License-Identifier: Apache-2.0
//
// FrameNamer: the bridge from the symbolizer's words to the store's, which know nothing of each other.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "store/profile.h"
#include "symbolizer/symbol.h"

namespace flamed::daemon {

/// Any thread. Must not outlive `symbolizer`.
class FrameNamer final : public store::FrameNamer {
 public:
  explicit FrameNamer(symbolizer::Symbolizer& symbolizer) : symbolizer_(symbolizer) {}
  std::vector<std::shared_ptr<const store::InlineChain>> name(std::span<const Frame> frames) override;
  std::uint64_t edition(std::span<const ModuleId> modules) override { return symbolizer_.edition(modules); }
  [[nodiscard]] bool keeps_names() const override { return symbolizer_.keeps_names(); }

 private:
  symbolizer::Symbolizer& symbolizer_;
};

}  // namespace flamed::daemon
