// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/worker/sandbox.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <initializer_list>
#include <utility>

#include "base/handle.h"
#include "symbolizer/worker/landlock.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FLAMED_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define FLAMED_SANITIZED 1
#endif
#endif
#ifndef FLAMED_SANITIZED
#define FLAMED_SANITIZED 0
#endif

namespace flamed::symbolizer {
namespace {

/// demangle.cc needs 64 MiB of stack for long names.
constexpr rlim_t kStackBytes = rlim_t{72} << 20;

constexpr unsigned long kForkFlags = CLONE_PIDFD | SIGCHLD;

using FilterContext = Handle<scmp_filter_ctx, ::seccomp_release>;

/// Reading open files, memory, time; no calls that name another file, process or socket.
constexpr std::array kReadingCalls = {SCMP_SYS(read),          SCMP_SYS(pread64),
                                      SCMP_SYS(fstat),         SCMP_SYS(lseek),
                                      SCMP_SYS(close),         SCMP_SYS(brk),
                                      SCMP_SYS(munmap),        SCMP_SYS(mremap),
                                      SCMP_SYS(madvise),       SCMP_SYS(futex),
                                      SCMP_SYS(getpid),        SCMP_SYS(gettid),
                                      SCMP_SYS(getcpu),        SCMP_SYS(sched_getaffinity),
                                      SCMP_SYS(sched_yield),   SCMP_SYS(sysinfo),
                                      SCMP_SYS(getrandom),     SCMP_SYS(getrusage),
                                      SCMP_SYS(clock_gettime), SCMP_SYS(clock_getres),
                                      SCMP_SYS(gettimeofday),  SCMP_SYS(restart_syscall),
                                      SCMP_SYS(rt_sigreturn),  SCMP_SYS(exit),
                                      SCMP_SYS(exit_group)};

/// Calls for its own descriptors and children. Signals only by pidfd, and it has only its children's: by pid it could
/// signal the daemon, whose user it may share.
constexpr std::array kSpawningCalls = {
    SCMP_SYS(recvmsg),   SCMP_SYS(sendmsg),     SCMP_SYS(sendto),         SCMP_SYS(write),
    SCMP_SYS(poll),      SCMP_SYS(ppoll),       SCMP_SYS(wait4),          SCMP_SYS(dup3),
    SCMP_SYS(dup2),      SCMP_SYS(close_range), SCMP_SYS(rt_sigprocmask), SCMP_SYS(getppid),
    SCMP_SYS(setrlimit), SCMP_SYS(setitimer),   SCMP_SYS(getpriority),    SCMP_SYS(pidfd_send_signal),
    SCMP_SYS(seccomp)};

Status failed(const char* what, int negative_errno) { return Error::from_errno(what, -negative_errno); }

template <typename Calls>
Status allow(scmp_filter_ctx filter, const Calls& calls) {
  for (const int call : calls) {
    if (const int error = ::seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 0); error != 0) {
      return failed("seccomp_rule_add", error);
    }
  }
  return {};
}

Status allow_when(scmp_filter_ctx filter, int call, std::initializer_list<scmp_arg_cmp> arguments) {
  const int error = ::seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, call, static_cast<unsigned>(arguments.size()),
                                             arguments.begin());
  if (error != 0) return failed("seccomp_rule_add_array", error);
  return {};
}

scmp_arg_cmp equals(unsigned argument, std::uint64_t value) { return {argument, SCMP_CMP_EQ, value, 0}; }
scmp_arg_cmp masked(unsigned argument, std::uint64_t mask, std::uint64_t value) {
  return {argument, SCMP_CMP_MASKED_EQ, mask, value};
}

Status allow_reading(scmp_filter_ctx filter) {
  if (Status status = allow(filter, kReadingCalls); !status.ok()) return status;
  // Only anonymous memory: a mapped file could be truncated (SIGBUS), or contain code.
  Status status =
      allow_when(filter, SCMP_SYS(mmap), {masked(2, PROT_EXEC, 0), masked(3, MAP_ANONYMOUS, MAP_ANONYMOUS)});
  // glibc's fstat(). With a path that isn't empty it would reveal attributes of that file.
  if (status.ok()) status = allow_when(filter, SCMP_SYS(newfstatat), {equals(3, AT_EMPTY_PATH)});
  // libelf checks whether a descriptor is valid.
  if (status.ok()) status = allow_when(filter, SCMP_SYS(fcntl), {equals(1, F_GETFD)});
  if (status.ok()) status = allow_when(filter, SCMP_SYS(fcntl), {equals(1, F_GETFL)});
  // Only reading its own limits.
  if (status.ok()) status = allow_when(filter, SCMP_SYS(prlimit64), {equals(0, 0), equals(2, 0)});
  // The answer.
  if (status.ok()) status = allow_when(filter, SCMP_SYS(sendmsg), {equals(0, 0)});
  return status;
}

Status allow_spawning(scmp_filter_ctx filter) {
  Status status = allow(filter, kSpawningCalls);
  // Only a process like fork()'s: no thread, no namespace.
  if (status.ok()) status = allow_when(filter, SCMP_SYS(clone), {equals(0, kForkFlags)});
  // Its own limits, priority and parent's death, not the daemon's.
  if (status.ok()) status = allow_when(filter, SCMP_SYS(prlimit64), {equals(0, 0)});
  if (status.ok()) status = allow_when(filter, SCMP_SYS(setpriority), {equals(0, PRIO_PROCESS), equals(1, 0)});
  if (status.ok()) status = allow_when(filter, SCMP_SYS(prctl), {equals(0, PR_SET_PDEATHSIG)});
  return status;
}

Result<std::vector<sock_filter>> export_program(scmp_filter_ctx filter) {
  const Fd file(::memfd_create("seccomp", MFD_CLOEXEC));
  if (!file) return Error::from_errno("memfd_create");
  if (const int error = ::seccomp_export_bpf(filter, file.get()); error != 0) {
    return Error::from_errno("seccomp_export_bpf", -error);
  }
  const off_t size = ::lseek(file.get(), 0, SEEK_END);
  if (size <= 0 || size % static_cast<off_t>(sizeof(sock_filter)) != 0) return Error("the filter has no size");
  std::vector<sock_filter> program(static_cast<std::size_t>(size) / sizeof(sock_filter));
  if (::pread(file.get(), program.data(), static_cast<std::size_t>(size), 0) != size) return Error::from_errno("pread");
  return program;
}

/// Uid 0 may read root's files even without a capability. Other users have nothing to drop, and no right to change.
int leave_root(uid_t user, gid_t group) {
  if (::getuid() != 0) return 0;
  if (::setgroups(0, nullptr) != 0) return errno;
  if (::setresgid(group, group, group) != 0) return errno;
  return ::setresuid(user, user, user) == 0 ? 0 : errno;
}

int drop_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> none{};
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  return ::syscall(SYS_capset, &header, none.data()) == 0 ? 0 : errno;
}

/// The kernel's OOM killer kills the worker before the daemon.
void offer_to_oom_killer() {
  const Fd file(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  if (file && ::write(file.get(), "1000", 4) != 4) return;  // then it keeps the daemon's score
}

Status set_limit(int resource, rlim_t soft, rlim_t hard) {
  const rlimit limit{soft, hard};
  if (::setrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) return Error::from_errno("setrlimit");
  return {};
}

}  // namespace

Result<SystemCallFilter> SystemCallFilter::build(Role role) {
  const FilterContext filter(::seccomp_init(SCMP_ACT_KILL_PROCESS));
  if (!filter) return Error("seccomp_init failed");
  ::seccomp_attr_set(filter.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
  Status status = allow_reading(filter.get());
  if (status.ok() && role == Role::kServes) status = allow_when(filter.get(), SCMP_SYS(recvmsg), {equals(0, 0)});
  if (status.ok() && role == Role::kSpawns) status = allow_spawning(filter.get());
  if (!status.ok()) return status.error();
  Result<std::vector<sock_filter>> program = export_program(filter.get());
  if (!program) return program.error();
  return SystemCallFilter(std::move(program).value());
}

Result<SystemCallFilter> SystemCallFilter::for_reading() { return build(Role::kReads); }
Result<SystemCallFilter> SystemCallFilter::for_serving() { return build(Role::kServes); }
Result<SystemCallFilter> SystemCallFilter::for_spawning() { return build(Role::kSpawns); }

Status SystemCallFilter::enforce() const {
  // The sanitizers' run time makes calls that the filter does not allow.
  if (FLAMED_SANITIZED != 0) return Error("built with a sanitizer", ENOTSUP);
  const sock_fprog program{static_cast<unsigned short>(program_.size()), const_cast<sock_filter*>(program_.data())};
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) return Error::from_errno("seccomp");
  return {};
}

pid_t fork_with_pidfd(Fd& pidfd) {
  int fd = -1;
  const auto pid = static_cast<pid_t>(::syscall(SYS_clone, kForkFlags, nullptr, &fd, nullptr, nullptr));
  if (pid > 0) pidfd.reset(fd);
  return pid;
}

Hello give_up_rights(uid_t user, gid_t group) {
  Hello hello;
  offer_to_oom_killer();
  // If allowed. After no_new_privs the rest of the bounding set can't be gained any more.
  for (unsigned long capability = 0; ::prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; ++capability) {
    ::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
  }
  hello.own_user_error = leave_root(user, group);
  hello.no_capabilities_error = drop_capabilities();
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 && hello.no_capabilities_error == 0) {
    hello.no_capabilities_error = errno;
  }
  if (const Status forbidden = forbid_outside_world(); !forbidden) hello.outside_world_error = forbidden.error().code();
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  hello.uid = ::getuid();
  hello.pid = ::getpid();
  return hello;
}

Status limit_request(const RequestLimits& limits, unsigned descriptors) {
  // Never to a higher priority, which needs a right. A service manager may forbid the call (@resources); then it
  // controls the daemon's CPU share.
  if (limits.nice > ::getpriority(PRIO_PROCESS, 0)) static_cast<void>(::setpriority(PRIO_PROCESS, 0, limits.nice));
  Status status = set_limit(RLIMIT_CPU, limits.cpu_seconds, limits.cpu_seconds + 1);
  if (status.ok()) status = set_limit(RLIMIT_NOFILE, descriptors, descriptors);
  if (status.ok()) status = set_limit(RLIMIT_FSIZE, 0, 0);
  if (status.ok()) status = set_limit(RLIMIT_CORE, 0, 0);
  // If the inherited hard limit is smaller, long names stay mangled.
  if (status.ok()) static_cast<void>(set_limit(RLIMIT_STACK, kStackBytes, kStackBytes).ok());
  // A sanitizer's shadow memory alone is larger.
  if (status.ok() && FLAMED_SANITIZED == 0) status = set_limit(RLIMIT_AS, limits.memory_bytes, limits.memory_bytes);
  if (!status.ok()) return status;
  itimerval timer{};
  timer.it_value.tv_sec = limits.wall_ns / kNsPerSecond;
  timer.it_value.tv_usec = limits.wall_ns % kNsPerSecond / kNsPerUs;
  if (::setitimer(ITIMER_REAL, &timer, nullptr) != 0) return Error::from_errno("setitimer");
  return {};
}

}  // namespace flamed::symbolizer
