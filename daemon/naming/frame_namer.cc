// SPDX-License-Identifier: Apache-2.0
#include "daemon/naming/frame_namer.h"

#include <optional>
#include <string>

#include "store/model/wait_reason.h"

namespace flamed::daemon {

std::vector<std::shared_ptr<const store::InlineChain>> FrameNamer::name(std::span<const Frame> frames) {
  std::vector<std::shared_ptr<const store::InlineChain>> chains(frames.size());
  std::vector<Frame> code;
  code.reserve(frames.size());
  for (std::size_t i = 0; i < frames.size(); ++i) {
    if (const std::optional<store::WaitReason> reason = store::wait_reason_in(frames[i])) {
      chains[i] = share({{"[" + std::string(store::name_of(*reason)) + "]", "", store::FrameKind::kKernel, ""}});
    } else {
      code.push_back(without_mark(frames[i]));
    }
  }
  std::vector<std::shared_ptr<const store::InlineChain>> named = symbolizer_.symbolise(code);
  if (code.size() == frames.size()) return named;
  std::size_t next = 0;
  for (std::size_t i = 0; i < frames.size() && next < named.size(); ++i) {
    if (chains[i] == nullptr) chains[i] = std::move(named[next++]);
  }
  return chains;
}

}  // namespace flamed::daemon
