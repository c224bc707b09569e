// SPDX-License-Identifier: Apache-2.0
#include "daemon/naming/frame_namer.h"

#include <algorithm>

namespace flamed::daemon {

std::vector<std::shared_ptr<const store::InlineChain>> FrameNamer::name(std::span<const Frame> frames) {
  std::vector<Frame> places(frames.begin(), frames.end());
  std::transform(places.begin(), places.end(), places.begin(), without_mark);
  return symbolizer_.symbolise(places);
}

}  // namespace flamed::daemon
