// SPDX-License-Identifier: Apache-2.0
//
// HistoryNamer: names frames of the archive as they were called, and all others by another namer, which must outlive
// it. Any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "archive/reading/past.h"
#include "store/model/profile.h"

namespace flamed::daemon {

class HistoryNamer final : public store::FrameNamer {
 public:
  /// `past`: null if there is no archive.
  HistoryNamer(store::FrameNamer& recent, const archive::Past* past) : recent_(recent), past_(past) {}

  std::vector<std::shared_ptr<const store::InlineChain>> name(std::span<const Frame> frames) override;
  std::uint64_t edition(std::span<const ModuleId> modules) override;
  [[nodiscard]] store::KeptIndex* kept_index() override { return recent_.kept_index(); }

 private:
  store::FrameNamer& recent_;
  const archive::Past* const past_;
};

}  // namespace flamed::daemon
