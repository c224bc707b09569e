// SPDX-License-Identifier: Apache-2.0
#include "daemon/naming/frame_namer.h"

namespace flamed::daemon {

std::vector<std::shared_ptr<const store::InlineChain>> FrameNamer::name(std::span<const Frame> frames) {
  return symbolizer_.symbolise(frames);
}

}  // namespace flamed::daemon
