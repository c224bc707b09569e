// SPDX-License-Identifier: Apache-2.0
#include "daemon/sampler/perf_event.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <string>

#include "base/file.h"

namespace flamed::daemon {
namespace {

constexpr const char* kParanoid = "/proc/sys/kernel/perf_event_paranoid";
/// The highest level that mainline kernels know. Above it Debian's and Ubuntu's ask for CAP_SYS_ADMIN.
constexpr int kMainlineParanoid = 2;

int paranoid() {
  int level = kMainlineParanoid;
  if (const Result<std::string> text = read_file(kParanoid, 64)) {
    std::from_chars(text->data(), text->data() + text->size(), level);
  }
  return level;
}

}  // namespace

std::string remedy_for_refused_event(int code, int paranoid) {
  switch (code) {
    case EPERM:
    case EACCES:
      if (paranoid > kMainlineParanoid) {
        const std::string level = std::to_string(paranoid);
        return "kernel.perf_event_paranoid is " + level + ", at which this kernel asks for CAP_SYS_ADMIN. Either run " +
               "`sysctl kernel.perf_event_paranoid=2`, as flamed's own file in sysctl.d does when the machine "
               "starts; " +
               "or leave it at " + level + " and give flamed that right: `systemctl edit flamed`, with the lines " +
               "[Service], AmbientCapabilities=CAP_SYS_ADMIN and CapabilityBoundingSet=CAP_SYS_ADMIN";
      }
      return "needs CAP_PERFMON: run as root or as the installed service";
    case ENOSYS:
      return "this kernel was built without CONFIG_PERF_EVENTS, or a seccomp filter forbids perf_event_open";
    case EMFILE:
      return "too many open files: raise LimitNOFILE";
    default:
      return "";
  }
}

Result<Fd> open_perf_event(const perf_event_attr& attributes, int cpu, const char* what) {
  constexpr int kEveryProcess = -1;
  constexpr int kNoGroup = -1;
  perf_event_attr copy = attributes;
  const long fd = ::syscall(SYS_perf_event_open, &copy, kEveryProcess, cpu, kNoGroup, PERF_FLAG_FD_CLOEXEC);
  if (fd < 0) {
    const int code = errno;
    const Error error =
        Error::from_errno(std::string("perf_event_open of the ") + what + " on CPU " + std::to_string(cpu), code);
    const std::string remedy = remedy_for_refused_event(code, paranoid());
    return remedy.empty() ? error : Error(error.message() + " (" + remedy + ")", code);
  }
  return Fd(static_cast<int>(fd));
}

}  // namespace flamed::daemon
