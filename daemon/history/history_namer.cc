// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/history_namer.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "archive/reading/past_names.h"

namespace flamed::daemon {

std::vector<std::shared_ptr<const store::InlineChain>> HistoryNamer::name(std::span<const Frame> frames) {
  if (past_ == nullptr || std::none_of(frames.begin(), frames.end(), archive::is_past)) return recent_.name(frames);
  std::vector<std::shared_ptr<const store::InlineChain>> chains(frames.size());
  past_->name(frames, chains);
  std::vector<Frame> others;
  for (const Frame& frame : frames) {
    if (!archive::is_past(frame)) others.push_back(frame);
  }
  auto named = recent_.name(others);
  named.resize(others.size());
  for (std::size_t i = 0, other = 0; i < frames.size(); ++i) {
    if (!archive::is_past(frames[i])) chains[i] = std::move(named[other++]);
  }
  return chains;
}

std::uint64_t HistoryNamer::edition(std::span<const ModuleId> modules) {
  if (past_ == nullptr) return recent_.edition(modules);
  std::vector<ModuleId> recent;
  for (const ModuleId module : modules) {
    if (module.value < archive::kFirstPastModule) recent.push_back(module);
  }
  return recent_.edition(recent);
}

}  // namespace flamed::daemon
