// SPDX-License-Identifier: Apache-2.0
//
// Any answers of a file to the detection of V8 (test/unit/runtimes/recorded_image.h): a layout has offsets within
// objects and frames, or there is a reason.
#include "runtimes/v8/detect.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "test/unit/runtimes/recorded_image.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace flamed::runtimes;
  RecordedImage image(std::string(reinterpret_cast<const char*>(data), size));
  const flamed::Result<std::optional<V8Layout>> found = detect_v8(image);
  if (!found) {
    if (found.error().message().empty()) std::abort();
    return 0;
  }
  if (!*found) return 0;
  const FrameSlots& frames = (*found)->frames;
  for (const unsigned words : {frames.mark, frames.function, frames.instruction, frames.guard}) {
    if (words > 16) std::abort();
  }
  if (frames.guard != 0 && (frames.guard_register > 16 || frames.instruction_register > 16)) std::abort();
  if (frames.check.words == 0 || frames.check.words > 4 || frames.code >= 1024 || frames.check.at >= 1024) std::abort();
  return 0;
}
