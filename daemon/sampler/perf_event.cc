// SPDX-License-Identifier: Apache-2.0
#include "daemon/sampler/perf_event.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <string>

namespace flamed::daemon {

Result<Fd> open_perf_event(const perf_event_attr& attributes, int cpu, const char* what) {
  constexpr int kEveryProcess = -1;
  constexpr int kNoGroup = -1;
  perf_event_attr copy = attributes;
  const long fd = ::syscall(SYS_perf_event_open, &copy, kEveryProcess, cpu, kNoGroup, PERF_FLAG_FD_CLOEXEC);
  if (fd < 0) {
    return Error::from_errno(std::string("perf_event_open of the ") + what + " on CPU " + std::to_string(cpu));
  }
  return Fd(static_cast<int>(fd));
}

}  // namespace flamed::daemon
