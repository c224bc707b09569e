// SPDX-License-Identifier: Apache-2.0
//
// Any answers of a file to the detection of Python (test/unit/runtimes/recorded_image.h): a layout has offsets within
// objects and places of thread states, or there is a reason.
#include "runtimes/python/detect.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "test/unit/runtimes/recorded_image.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace flamed::runtimes;
  RecordedImage image(std::string(reinterpret_cast<const char*>(data), size));
  const flamed::Result<std::optional<PythonLayout>> found = detect_python(image);
  if (!found) {
    if (found.error().message().empty()) std::abort();
    return 0;
  }
  if (!*found) return 0;
  const PythonLayout& layout = **found;
  const LinkedFrames& frames = layout.frames;
  const PythonObjects& objects = layout.objects;
  if (frames.thread_states.empty() || frames.thread_states.size() > 2 || frames.innermost.empty()) std::abort();
  for (const unsigned offset : {frames.code, frames.previous, frames.instruction, frames.boundary, objects.name,
                                objects.file, objects.first_line, objects.lines, objects.string_length}) {
    if (offset >= 1024) std::abort();
  }
  return 0;
}
