// SPDX-License-Identifier: Apache-2.0
#include "daemon/sampler/perf_event.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <string>

namespace flamed::daemon {
namespace {

const char* remedy(int code) {
  switch (code) {
    case EPERM:
    case EACCES:
      return " (needs CAP_PERFMON, or CAP_SYS_ADMIN where kernel.perf_event_paranoid is above 2: run as root or as the "
             "installed service)";
    case ENOSYS:
      return " (this kernel was built without CONFIG_PERF_EVENTS, or a seccomp filter forbids perf_event_open)";
    case EMFILE:
      return " (too many open files: raise LimitNOFILE)";
    default:
      return "";
  }
}

}  // namespace

Result<Fd> open_perf_event(const perf_event_attr& attributes, int cpu, const char* what) {
  constexpr int kEveryProcess = -1;
  constexpr int kNoGroup = -1;
  perf_event_attr copy = attributes;
  const long fd = ::syscall(SYS_perf_event_open, &copy, kEveryProcess, cpu, kNoGroup, PERF_FLAG_FD_CLOEXEC);
  if (fd < 0) {
    const int code = errno;
    const Error error =
        Error::from_errno(std::string("perf_event_open of the ") + what + " on CPU " + std::to_string(cpu), code);
    return Error(error.message() + remedy(code), code);
  }
  return Fd(static_cast<int>(fd));
}

}  // namespace flamed::daemon
