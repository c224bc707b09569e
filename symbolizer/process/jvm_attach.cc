// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/process/jvm_attach.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

#include "base/file.h"
#include "base/handle.h"
#include "symbolizer/model/clean_name.h"
#include "symbolizer/process/executable_lines.h"
#include "symbolizer/process/proc_folder.h"
#include "symbolizer/process/proc_text.h"
#include "symbolizer/process/process_status.h"

namespace flamed::symbolizer {
namespace {

constexpr std::size_t kStatusLimitBytes = 16'384;
constexpr std::size_t kArgumentsLimitBytes = 8U << 20;
constexpr std::size_t kAnswerLimitBytes = 4096;
constexpr long kLookEveryNs = 20'000'000;

/// The attach protocol, version 1: a command and three arguments, each ending in NUL (HotSpot's attachListener.hpp).
constexpr char kRequest[] = "1\0jcmd\0Compiler.perfmap\0\0";
constexpr std::size_t kRequestBytes = sizeof kRequest;  // with the NUL of the last argument
static_assert(kRequestBytes == 2 + 5 + 17 + 1 + 1);

/// The child's last stage; sent with the errno, or 0.
enum class Stage : std::uint8_t {
  kAnswered,
  kUser,
  kFolder,
  kAttachFile,
  kSignal,
  kNoSocket,
  kSocket,
  kConnect,
  kPeer,
  kTalk
};

struct Report {
  Stage stage = Stage::kAnswered;
  int error = 0;
};

/// Everything that the child needs: after fork() of a program with threads it may use little more than system calls.
struct Plan {
  std::uint32_t uid = 0, gid = 0;
  bool becomes_other = false;
  int root = -1;
  int pidfd = -1;
  std::string attach_file;
  std::string socket_name;
  std::int64_t deadline_ns = 0;
};

bool has_libjvm(const ProcessId& process, const std::string& proc) {
  const Result<std::string> maps = read_executable_lines(proc_path(proc, process.pid, "maps"));
  if (!maps) return false;
  const std::vector<MapsLine> lines = parse_executable_maps(*maps);
  return std::any_of(lines.begin(), lines.end(), [](const MapsLine& line) {
    return line.path.substr(line.path.find_last_of('/') + 1) == "libjvm.so";
  });
}

bool forbids_attaching(const ProcessId& process, const std::string& proc) {
  constexpr std::string_view kOption = "+DisableAttachMechanism";
  for (const char* file : {"cmdline", "environ"}) {
    const Result<std::string> text = read_file(proc_path(proc, process.pid, file), kArgumentsLimitBytes);
    if (!text || text->find(kOption) != std::string::npos) return true;
  }
  return false;
}

std::int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

// -- In the child ----------------------------------------------------------------------------------------------------

/// Only for this thread, the only one; the library's functions would look for others. Leaving root drops the
/// capabilities, but any other user keeps them. They are dropped here, since the process controls the folder's content.
bool become(const Plan& plan) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> none{};
  const bool is_user = !plan.becomes_other || (::syscall(SYS_setgroups, 0, nullptr) == 0 &&
                                               ::syscall(SYS_setresgid, plan.gid, plan.gid, plan.gid) == 0 &&
                                               ::syscall(SYS_setresuid, plan.uid, plan.uid, plan.uid) == 0);
  return is_user && ::syscall(SYS_capset, &header, none.data()) == 0;
}

/// Opens `name` with O_PATH, so that it can't be replaced, if it has that type (S_IFSOCK) and belongs to the process;
/// otherwise -1 with the errno, 0 for another type or owner.
int find_own(const Plan& plan, const std::string& name, mode_t type, int* error) {
  const int found = ::open(name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
  struct stat status {};
  *error = found < 0 || ::fstat(found, &status) != 0 ? errno : 0;
  if (*error == 0 && (status.st_mode & S_IFMT) == type && status.st_uid == plan.uid) return found;
  if (found >= 0) ::close(found);
  return -1;
}

/// `socket` is the result of find_own().
Report start_listener(const Plan& plan, int* socket) {
  int file = ::open(plan.attach_file.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0 && errno == EEXIST) {
    // A file left by an earlier request is fine. Anything else may have effects when opened.
    int error = 0;
    file = find_own(plan, plan.attach_file, S_IFREG, &error);
    errno = error != 0 ? error : EEXIST;
  }
  if (file < 0) return {Stage::kAttachFile, errno};
  ::close(file);
  Report report{Stage::kNoSocket, 0};
  if (::syscall(SYS_pidfd_send_signal, plan.pidfd, SIGQUIT, nullptr, 0) != 0) {
    report = {Stage::kSignal, errno};
  } else {
    while (now_ns() < plan.deadline_ns) {
      int error = 0;
      *socket = find_own(plan, plan.socket_name, S_IFSOCK, &error);
      if (*socket >= 0) {
        report = {};
        break;
      }
      if (error != ENOENT) {
        report = {Stage::kSocket, error};
        break;
      }
      const timespec pause{0, kLookEveryNs};
      ::nanosleep(&pause, nullptr);
    }
  }
  ::unlink(plan.attach_file.c_str());
  return report;
}

/// `socket` is the one in the file system.
Report talk(const Plan& plan, int socket, int to_parent) {
  const int connection = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connection < 0) return {Stage::kConnect, errno};
  const std::int64_t left_us = std::max<std::int64_t>((plan.deadline_ns - now_ns()) / 1000, 1);
  const timeval limit{static_cast<time_t>(left_us / 1'000'000), static_cast<suseconds_t>(left_us % 1'000'000)};
  ::setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d", socket);
  if (::connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return {Stage::kConnect, errno};
  }
  ucred peer{};
  socklen_t peer_bytes = sizeof peer;
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &peer_bytes) != 0 || peer.uid != plan.uid) {
    return {Stage::kPeer, 0};
  }
  if (::send(connection, kRequest, kRequestBytes, MSG_NOSIGNAL) != static_cast<ssize_t>(kRequestBytes)) {
    return {Stage::kTalk, errno};
  }
  const Report report;
  char answer[kAnswerLimitBytes];
  std::size_t got = 0;
  for (;;) {
    const ssize_t more = ::read(connection, answer + got, sizeof answer - got);
    if (more < 0 && errno == EINTR) continue;
    if (more < 0) return {Stage::kTalk, errno};
    got += static_cast<std::size_t>(more);
    if (more == 0 || got == sizeof answer) break;
  }
  static_cast<void>(::write(to_parent, &report, sizeof report) == sizeof report &&
                    ::write(to_parent, answer, got) == static_cast<ssize_t>(got));
  return report;
}

/// The error; none if the answer was passed on.
Report ask(const Plan& plan, int to_parent) {
  if (!become(plan)) return {Stage::kUser, errno};
  open_how how{};
  how.flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  const auto folder = static_cast<int>(::syscall(SYS_openat2, plan.root, "/tmp", &how, sizeof how));
  if (folder < 0 || ::fchdir(folder) != 0) return {Stage::kFolder, errno};
  int error = 0;
  int socket = find_own(plan, plan.socket_name, S_IFSOCK, &error);
  if (socket < 0) {
    if (error != ENOENT) return {Stage::kSocket, error};
    if (const Report report = start_listener(plan, &socket); report.stage != Stage::kAnswered) return report;
  }
  return talk(plan, socket, to_parent);
}

// -- In the daemon ---------------------------------------------------------------------------------------------------

Error error_of(const Report& report, const Plan& plan) {
  const auto failed = [&](const std::string& what) { return Error::from_errno(what, report.error); };
  switch (report.stage) {
    case Stage::kUser:
      return Error("flamed may not become the JVM's user, uid " + std::to_string(plan.uid) +
                       ", the only user whom it answers (needs CAP_SETUID and CAP_SETGID)",
                   report.error);
    case Stage::kFolder:
      return failed("cannot enter the JVM's /tmp");
    case Stage::kAttachFile:
      return failed("cannot make /tmp/" + plan.attach_file);
    case Stage::kSignal:
      return failed("cannot send SIGQUIT");
    case Stage::kNoSocket:
      return Error("the JVM did not begin to listen in time");
    case Stage::kSocket:
      if (report.error == 0) return Error("/tmp/" + plan.socket_name + " is not the JVM's socket");
      return failed("cannot look at /tmp/" + plan.socket_name);
    case Stage::kConnect:
      return failed("cannot connect to /tmp/" + plan.socket_name);
    case Stage::kPeer:
      return Error("another user listens at /tmp/" + plan.socket_name);
    case Stage::kTalk:
      return failed("the JVM did not answer");
    case Stage::kAnswered:
      break;
  }
  return Error("the JVM did not answer in time");
}

/// Everything that the child writes until it closes its end, or the deadline has passed.
std::string read_until(int fd, std::int64_t deadline_ns) {
  std::string bytes;
  std::array<char, kAnswerLimitBytes> buffer{};
  for (;;) {
    const std::int64_t left_ms = (deadline_ns - now_ns()) / 1'000'000;
    pollfd ready{fd, POLLIN, 0};
    if (left_ms <= 0 || ::poll(&ready, 1, static_cast<int>(left_ms)) <= 0) return bytes;
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got <= 0) return bytes;
    bytes.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

Status run(const Plan& plan) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Error::from_errno("pipe");
  const Fd from_child(ends[0]);
  Fd to_parent(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return Error::from_errno("fork");
  if (child == 0) {
    const Report report = ask(plan, to_parent.get());
    if (report.stage != Stage::kAnswered) static_cast<void>(::write(to_parent.get(), &report, sizeof report) == 0);
    ::_exit(0);
  }
  to_parent.reset();
  constexpr std::int64_t kGraceNs = 500'000'000;
  const std::string bytes = read_until(from_child.get(), plan.deadline_ns + kGraceNs);
  ::kill(child, SIGKILL);
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) continue;
  Report report{Stage::kTalk, ETIMEDOUT};
  if (bytes.size() < sizeof report) return error_of(report, plan);
  std::memcpy(&report, bytes.data(), sizeof report);
  if (report.stage != Stage::kAnswered) return error_of(report, plan);
  return parse_jvm_answer(std::string_view(bytes).substr(sizeof report));
}

}  // namespace

Status parse_jvm_answer(std::string_view answer) {
  constexpr std::size_t kShownBytes = 200;
  const std::size_t line = std::min(answer.find('\n'), answer.size());
  if (answer.substr(0, line) == "0") return {};
  std::string_view words = answer.substr(std::min(line + 1, answer.size()));
  if (words.find("Unknown diagnostic command") != std::string_view::npos) {
    return Error("the JVM can't write a perf map: JDK 17 or later is needed");
  }
  words = words.substr(0, words.find('\n'));
  if (words.empty()) return Error("the JVM refused");
  return Error("the JVM refused: " + clean_name(words, kShownBytes));
}

Status ask_for_perf_map(const ProcessId& jvm, const std::string& proc, std::chrono::milliseconds limit) {
  Plan plan;
  plan.deadline_ns = now_ns() + std::chrono::nanoseconds(limit).count();
  const Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, jvm.pid, 0)));
  if (!pidfd) return Error::from_errno("pidfd_open");
  const Result<std::string> text = read_file(proc_path(proc, jvm.pid, "status"), kStatusLimitBytes);
  const std::optional<ProcessStatus> status = text ? parse_process_status(*text) : std::nullopt;
  if (!status) return Error("the process has ended");
  if (!has_libjvm(jvm, proc)) return Error("it has no JVM in it");
  if (!status->catches(SIGQUIT))
    return Error("the JVM does not handle SIGQUIT (is it just starting, or started with -Xrs?)");
  if (forbids_attaching(jvm, proc)) return Error("the JVM was started with -XX:+DisableAttachMechanism");
  const std::string root_path = proc_path(proc, jvm.pid, "root");
  const Fd root(::open(root_path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root) return Error::from_errno("open " + root_path);
  // From here on the descriptors refer to this process, even if its pid is reused.
  if (!is_alive(proc, jvm)) return Error("the process has ended");

  plan.uid = status->uid.effective;
  plan.gid = status->gid.effective;
  plan.becomes_other = plan.uid != ::geteuid() || plan.gid != ::getegid();
  plan.root = root.get();
  plan.pidfd = pidfd.get();
  plan.attach_file = ".attach_pid" + std::to_string(status->innermost_pid);
  plan.socket_name = ".java_pid" + std::to_string(status->innermost_pid);
  return run(plan);
}

}  // namespace flamed::symbolizer
