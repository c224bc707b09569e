// SPDX-License-Identifier: Apache-2.0
#include "daemon/machine/kernel_stack_limit.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "base/file.h"
#include "base/result.h"

namespace flamed::daemon {

std::uint32_t kernel_stack_limit(std::uint32_t most) {
  const Result<std::string> text = read_file("/proc/sys/kernel/perf_event_max_stack", 64);
  std::uint32_t configured = 0;
  if (!text) return most;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), configured);
  return error == std::errc{} && configured > 0 ? std::min(most, configured) : most;
}

}  // namespace flamed::daemon
