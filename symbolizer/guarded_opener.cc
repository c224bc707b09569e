// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/guarded_opener.h"

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "symbolizer/module_opener.h"
#include "symbolizer/mount_info.h"
#include "symbolizer/proc_folder.h"
#include "symbolizer/worker/deadline.h"
#include "symbolizer/worker/fd_message.h"

namespace flamed::symbolizer {
namespace {

constexpr int kSocket = STDIN_FILENO;
constexpr std::size_t kMountInfoLimitBytes = 4U << 20;
/// Of one device there is at most one; so many file systems that hang at once are a machine with other worries.
constexpr std::size_t kMostHung = 16;
constexpr const char* kHung = "its file system does not answer";

/// What the daemon sends. Both ends are the same program.
struct Question {
  std::int32_t pid = 0;
  std::int32_t parent_pid = 0;
  std::uint64_t start = 0, end = 0;
  FileKey file;
  std::uint32_t proc_bytes = 0;
  std::uint32_t path_bytes = 0;
  std::array<char, 256> proc{};
  std::array<char, PATH_MAX> path{};
};

/// What comes back, with the descriptor where there is no error.
struct Answer {
  std::int32_t failed = 0;
  std::int32_t code = 0;
  std::uint32_t bytes = 0;
  std::array<char, 512> message{};
};

template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

template <std::size_t kSize>
std::uint32_t put(std::array<char, kSize>& to, std::string_view text) {
  const std::size_t size = std::min(text.size(), to.size());
  std::copy_n(text.begin(), size, to.begin());
  return static_cast<std::uint32_t>(size);
}

Answer answer_of(const Error& error) {
  Answer answer;
  answer.failed = 1;
  answer.code = error.code();
  answer.bytes = put(answer.message, error.message());
  return answer;
}

void serve(const Question& question) {
  OpenRequest request;
  request.pid = question.pid;
  request.parent_pid = question.parent_pid;
  request.start = question.start;
  request.end = question.end;
  request.file = question.file;
  request.path.assign(question.path.data(), std::min<std::size_t>(question.path_bytes, question.path.size()));
  const std::string proc(question.proc.data(), std::min<std::size_t>(question.proc_bytes, question.proc.size()));
  const Result<Fd> file = open_module(request, proc);
  if (!file) {
    static_cast<void>(send_message(kSocket, bytes_of(answer_of(file.error())), {}).ok());
    return;
  }
  // To be opened is not to be readable: who reads it next must not be the first to find out.
  char first = 0;
  if (::pread(file->get(), &first, sizeof(first), 0) < 0) {
    static_cast<void>(send_message(kSocket, bytes_of(answer_of(Error::from_errno("read " + request.path))), {}).ok());
    return;
  }
  const int fd = file->get();
  static_cast<void>(send_message(kSocket, bytes_of(Answer{}), std::span(&fd, 1)).ok());
}

bool wait_readable(int fd, const Deadline& deadline) {
  pollfd polled{fd, POLLIN, 0};
  int ready = 0;
  do {
    ready = ::poll(&polled, 1, deadline.left_ms());
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

bool has_ended(const Fd& pidfd) {
  pollfd polled{pidfd.get(), POLLIN, 0};
  return ::poll(&polled, 1, 0) > 0;
}

/// No environment, no descriptor but `control` as 0, signals as at first.
int spawn(const std::string& program, int control, pid_t& pid) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  sigset_t all;
  sigset_t none;
  ::sigfillset(&all);
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
  ::posix_spawn_file_actions_adddup2(&actions, control, kSocket);
  ::posix_spawn_file_actions_addclosefrom_np(&actions, kSocket + 1);
  std::string name = "flamed: open helper";
  std::string argument = kOpenHelperArgument;
  const std::array<char*, 3> arguments = {name.data(), argument.data(), nullptr};
  const std::array<char*, 1> environment = {nullptr};
  const int error = ::posix_spawn(&pid, program.c_str(), &actions, &attributes, arguments.data(), environment.data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  return error;
}

}  // namespace

std::optional<int> run_open_helper_if_asked(int argc, char** argv) {
  if (argc != 2 || std::strcmp(argv[1], kOpenHelperArgument) != 0) return std::nullopt;
  ::prctl(PR_SET_NAME, "open-helper");
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  for (;;) {
    Question question;
    const Result<ReceivedMessage> message = receive_message(kSocket, std::as_writable_bytes(std::span(&question, 1)));
    if (!message || message->bytes != sizeof(question)) return 0;
    serve(question);
  }
}

GuardedOpener::~GuardedOpener() {
  // The one without work ends by itself when its socket closes. Those that hang end when their file system does; nobody
  // waits for them.
  for (const Hung& hung : hung_) ::kill(hung.helper.pid, SIGKILL);
  if (!helper_) return;
  helper_->socket.reset();
  if (!wait_readable(helper_->pidfd.get(), Deadline::after(kNsPerSecond))) ::kill(helper_->pid, SIGKILL);
  ::waitpid(helper_->pid, nullptr, WNOHANG);
}

Result<Fd> GuardedOpener::open(const OpenRequest& request) {
  forget_ended();
  if (is_hung(request.file)) return Error(request.path + ": " + kHung, ETIMEDOUT);
  if (!may_hang_at(request)) return open_module(request, options_.proc);
  if (hung_.size() >= kMostHung) return Error(request.path + ": too many file systems do not answer", ETIMEDOUT);
  return open_by_helper(request);
}

bool GuardedOpener::sees_hung(std::int32_t pid) {
  forget_ended();
  if (hung_.empty()) return false;
  const Result<std::string> mounts = read_file(proc_path(options_.proc, pid, "mountinfo"), kMountInfoLimitBytes);
  if (!mounts) return false;
  return std::any_of(hung_.begin(), hung_.end(),
                     [&](const Hung& hung) { return !file_system_of(*mounts, hung.device).empty(); });
}

bool GuardedOpener::is_hung(const FileKey& file) const {
  return std::any_of(hung_.begin(), hung_.end(), [&](const Hung& hung) {
    return hung.device.device_major == file.device_major && hung.device.device_minor == file.device_minor;
  });
}

bool GuardedOpener::may_hang_at(const OpenRequest& request) const {
  for (const std::string& process : {std::to_string(request.pid), std::string("self")}) {
    const Result<std::string> mounts = read_file(options_.proc + "/" + process + "/mountinfo", kMountInfoLimitBytes);
    if (!mounts) continue;
    const std::string_view type = file_system_of(*mounts, request.file);
    if (!type.empty()) return may_hang(type);
  }
  // Devices with a number of their own are disks. The others are told in mappings otherwise than in mounts by some file
  // systems, or are mounted nowhere any more.
  return request.file.device_major == 0;
}

Result<Fd> GuardedOpener::open_by_helper(const OpenRequest& request) {
  if (!helper_) {
    if (Status started = start_helper(); !started) return started.error();
  }
  Question question;
  question.pid = request.pid;
  question.parent_pid = request.parent_pid;
  question.start = request.start;
  question.end = request.end;
  question.file = request.file;
  question.proc_bytes = put(question.proc, options_.proc);
  question.path_bytes = put(question.path, request.path);
  Status sent = send_message(helper_->socket.get(), bytes_of(question), {});
  if (sent && !wait_readable(helper_->socket.get(), Deadline::after(options_.limit_ns))) {
    ++timeouts_;
    helper_->socket.reset();
    ::kill(helper_->pid, SIGKILL);
    hung_.push_back({std::move(*helper_), {request.file.device_major, request.file.device_minor, 0}});
    helper_.reset();
    hung_count_ = hung_.size();
    return Error(request.path + ": " + kHung, ETIMEDOUT);
  }
  Answer answer;
  Result<ReceivedMessage> message =
      sent ? receive_message(helper_->socket.get(), std::as_writable_bytes(std::span(&answer, 1)))
           : Result<ReceivedMessage>(sent.error());
  if (!message || message->bytes != sizeof(answer)) {
    ended_.push_back(std::move(*helper_));
    helper_.reset();  // the next request starts another one
    return Error("the helper that opens files has ended", EAGAIN);
  }
  if (answer.failed != 0) {
    const std::size_t size = std::min<std::size_t>(answer.bytes, answer.message.size());
    return Error(std::string(answer.message.data(), size), answer.code);
  }
  if (message->fds.size() != 1) return Error("the helper that opens files sent none");
  return std::move(message->fds.front());
}

Status GuardedOpener::start_helper() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return Error::from_errno("cannot start the helper that opens files: socketpair");
  }
  Helper helper;
  helper.socket.reset(ends[0]);
  const Fd theirs(ends[1]);
  if (const int error = spawn(options_.program, theirs.get(), helper.pid); error != 0) {
    return Error::from_errno("cannot start the helper that opens files", error);
  }
  helper.pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, helper.pid, 0)));
  if (!helper.pidfd) return Error::from_errno("cannot watch the helper that opens files: pidfd_open");
  helper_ = std::move(helper);
  return {};
}

void GuardedOpener::forget_ended() {
  const auto reap = [](const Helper& helper) {
    if (!has_ended(helper.pidfd)) return false;
    ::waitpid(helper.pid, nullptr, WNOHANG);
    return true;
  };
  std::erase_if(ended_, reap);
  std::erase_if(hung_, [&](const Hung& hung) { return reap(hung.helper); });
  hung_count_ = hung_.size();
}

}  // namespace flamed::symbolizer
