// SPDX-License-Identifier: Apache-2.0
//
// FrameNamer: adapts the symbolizer to the store's interface; neither knows the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "store/index/kept_index.h"
#include "store/model/profile.h"
#include "symbolizer/model/symbol.h"

namespace flamed::daemon {

/// Any thread. Must not outlive `symbolizer`, which keeps names: a cache.
class FrameNamer final : public store::FrameNamer {
 public:
  /// Queries may cache `kept_bytes` for the next ones.
  FrameNamer(symbolizer::Symbolizer& symbolizer, std::size_t kept_bytes)
      : symbolizer_(symbolizer), index_(kept_bytes) {}
  std::vector<std::shared_ptr<const store::InlineChain>> name(std::span<const Frame> frames) override;
  std::uint64_t edition(std::span<const ModuleId> modules) override { return symbolizer_.edition(modules); }
  [[nodiscard]] store::KeptIndex* kept_index() override { return &index_; }

 private:
  symbolizer::Symbolizer& symbolizer_;
  store::KeptIndex index_;
};

}  // namespace flamed::daemon
