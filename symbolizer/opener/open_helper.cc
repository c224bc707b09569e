// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/opener/open_helper.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "symbolizer/ipc/deadline.h"
#include "symbolizer/ipc/fd_message.h"
#include "symbolizer/opener/engine_opener.h"
#include "symbolizer/opener/jit_file_opener.h"
#include "symbolizer/opener/memory_opener.h"
#include "symbolizer/process/direct_root_files.h"

namespace flamed::symbolizer {
namespace {

constexpr int kSocket = STDIN_FILENO;
constexpr std::size_t kMaxTextBytes = PATH_MAX;
/// More than all texts of a message together.
constexpr std::size_t kMaxMessageBytes = 8 * kMaxTextBytes;
static_assert(RootFiles::kMostPaths <= kMaxMessageFds);
static_assert(kMostContainerFiles <= kMaxMessageFds);
static_assert(kMostSourceGroups * sizeof(std::uint32_t) + 2 * kMaxTextBytes < kMaxMessageBytes);

/// Follows an answer after the last call that a file system could block.
constexpr char kDone = 'd';

enum class Question : std::uint8_t { kModule, kJitFiles, kRootFiles, kMemory, kContainer, kSource, kEngine };

std::string_view short_text(std::string_view text) { return text.substr(0, kMaxTextBytes); }

// -- Requests and answers on the wire ------------------------------------------------------------------------

void write(WireWriter& to, const OpenRequest& request) {
  to.number(request.pid);
  to.number(request.parent_pid);
  to.number(request.start);
  to.number(request.end);
  to.number(request.file.device_major);
  to.number(request.file.device_minor);
  to.number(request.file.inode);
  to.text(short_text(request.path));
}

bool read(WireReader& from, OpenRequest& request) {
  return from.number(request.pid) && from.number(request.parent_pid) && from.number(request.start) &&
         from.number(request.end) && from.number(request.file.device_major) && from.number(request.file.device_minor) &&
         from.number(request.file.inode) && from.text(request.path, kMaxTextBytes);
}

void write(WireWriter& to, const SourceRequest& request) {
  to.number(request.process.pid);
  to.number(request.process.start_ticks);
  to.number(request.viewer);
  to.text(short_text(request.path));
  to.number(static_cast<std::uint32_t>(request.groups.size()));
  for (const std::uint32_t group : request.groups) to.number(group);
}

bool read(WireReader& from, SourceRequest& request) {
  std::uint32_t count = 0;
  if (!from.number(request.process.pid) || !from.number(request.process.start_ticks) || !from.number(request.viewer) ||
      !from.text(request.path, kMaxTextBytes) || !from.number(count) || count > kMostSourceGroups) {
    return false;
  }
  request.groups.resize(count);
  return std::all_of(request.groups.begin(), request.groups.end(),
                     [&](std::uint32_t& group) { return from.number(group); });
}

/// Everything but the descriptor.
void write(WireWriter& to, const JitFile& file) {
  to.number(file.format);
  to.number(file.device);
  to.number(file.inode);
  to.text(short_text(file.path));
}

bool read(WireReader& from, JitFile& file) {
  std::uint8_t format = 0;
  if (!from.number(format) || !from.number(file.device) || !from.number(file.inode) ||
      !from.text(file.path, kMaxTextBytes)) {
    return false;
  }
  file.format = JitFormat{format};
  return true;
}

// -- The helper's side ----------------------------------------------------------------------------------------------

/// An open file may still not be readable, and file systems may block at each close, too: finds out here instead of in
/// the daemon.
Status try_out(const Fd& file) {
  char first = 0;
  if (::pread(file.get(), &first, sizeof(first), 0) < 0) return Error::from_errno("read");
  Fd(::fcntl(file.get(), F_DUPFD_CLOEXEC, 0)).reset();
  return {};
}

/// Without an answer the helper is useless.
void answer(const WireWriter& words, std::span<const int> files) {
  if (!send_message(kSocket, words.bytes(), files)) ::_exit(1);
}

void answer(const Error& error) {
  WireWriter words;
  words.number(std::uint8_t{0});
  words.number(error.code());
  words.text(short_text(error.message()));
  answer(words, {});
}

WireWriter good_answer() {
  WireWriter words;
  words.number(std::uint8_t{1});
  return words;
}

void answer_module(const OpenRequest& request, const std::string& proc, ModuleSearch search) {
  const Result<Fd> file = open_module(request, proc, search);
  if (!file) return answer(file.error());
  if (Status usable = try_out(*file); !usable) return answer(usable.error());
  const int fd = file->get();
  answer(good_answer(), std::span(&fd, 1));
}

void answer_jit_files(const ProcessId& owner, const std::string& proc) {
  Result<JitFiles> found = find_jit_files(owner, proc);
  if (!found) return answer(found.error());
  WireWriter words = good_answer();
  words.text(short_text(found->why_none));
  words.number(static_cast<std::uint8_t>(found->files.size()));
  std::vector<int> fds;
  for (const JitFilePtr& file : found->files) {
    static_cast<void>(try_out(file->file).ok());  // its reader reports the error
    write(words, *file);
    fds.push_back(file->file.get());
  }
  answer(words, fds);
}

void answer_root_files(std::int32_t pid, std::span<const std::string> paths, const FileOwner& owner,
                       const std::string& proc) {
  std::vector<RootFile> files = DirectRootFiles({.proc = proc}).open(pid, paths, owner);
  WireWriter words = good_answer();
  std::vector<int> fds;
  for (const RootFile& file : files) {
    const bool there = file.file && try_out(file.file).ok();
    words.number(static_cast<std::uint8_t>(there));
    words.number(static_cast<std::uint8_t>(file.is_local));
    words.number(static_cast<std::uint8_t>(file.is_foreign));
    if (there) fds.push_back(file.file.get());
  }
  answer(words, fds);
}

/// Of a descriptor whose reading may block.
void answer_open(const Result<Fd>& opened) {
  if (!opened) return answer(opened.error());
  const int fd = opened->get();
  answer(good_answer(), std::span(&fd, 1));
}

void answer_container(const std::string& id) {
  const ContainerFiles found = find_container_files(id);
  WireWriter words = good_answer();
  words.text(short_text(found.log_name));
  words.number(static_cast<std::uint8_t>(found.files.size()));
  std::vector<int> fds;
  for (const auto& [format, file] : found.files) {
    static_cast<void>(try_out(file).ok());  // its reader reports the error
    words.number(format);
    fds.push_back(file.get());
  }
  answer(words, fds);
}

void answer_source(const SourceRequest& request, const std::string& proc) {
  const Result<SourceCopy> copied = copy_source(request, proc);
  if (!copied) return answer(copied.error());
  WireWriter words = good_answer();
  words.number(copied->modified_ns);
  const int fd = copied->text.get();
  answer(words, std::span(&fd, 1));
}

/// False: invalid request.
bool serve(std::span<const std::byte> bytes) {
  MemorySource source(bytes);
  WireReader from(source, bytes.size());
  std::string proc;
  std::uint8_t question = 0;
  if (!from.text(proc, kMaxTextBytes) || !from.number(question)) return false;
  switch (Question{question}) {
    case Question::kModule: {
      OpenRequest request;
      std::uint8_t search = 0;
      if (!from.number(search) || !read(from, request) || !from.finished()) return false;
      answer_module(request, proc, ModuleSearch{search});
      return true;
    }
    case Question::kJitFiles: {
      ProcessId owner;
      if (!from.number(owner.pid) || !from.number(owner.start_ticks) || !from.finished()) return false;
      answer_jit_files(owner, proc);
      return true;
    }
    case Question::kRootFiles: {
      std::int32_t pid = 0;
      FileOwner owner;
      std::uint8_t count = 0;
      if (!from.number(pid) || !from.number(owner.user) || !from.number(owner.device) || !from.number(count) ||
          count > RootFiles::kMostPaths) {
        return false;
      }
      std::vector<std::string> paths(count);
      for (std::string& path : paths) {
        if (!from.text(path, kMaxTextBytes)) return false;
      }
      if (!from.finished()) return false;
      answer_root_files(pid, paths, owner, proc);
      return true;
    }
    case Question::kMemory: {
      ProcessId process;
      if (!from.number(process.pid) || !from.number(process.start_ticks) || !from.finished()) return false;
      answer_open(open_memory(process, proc));
      return true;
    }
    case Question::kContainer: {
      std::string id;
      if (!from.text(id, kMaxTextBytes) || !from.finished()) return false;
      answer_container(id);
      return true;
    }
    case Question::kEngine: {
      std::string path;
      std::string asked;
      if (!from.text(path, kMaxTextBytes) || !from.text(asked, kMaxTextBytes) || !from.finished()) return false;
      answer_open(connect_engine(path, asked));
      return true;
    }
    case Question::kSource: {
      SourceRequest request;
      if (!read(from, request) || !from.finished()) return false;
      answer_source(request, proc);
      return true;
    }
  }
  return false;
}

// -- The daemon's side ----------------------------------------------------------------------------------------------

enum class Waited : std::uint8_t { kReadable, kCancelled, kTooLong };

/// `cancel` may be -1.
Waited wait_for(const Fd& fd, int cancel, const Deadline& deadline) {
  std::array<pollfd, 2> polled{{{fd.get(), POLLIN, 0}, {cancel, POLLIN, 0}}};
  int ready = 0;
  do {
    ready = ::poll(polled.data(), polled.size(), deadline.left_ms());
  } while (ready < 0 && errno == EINTR);
  if (polled[0].revents != 0) return Waited::kReadable;
  return polled[1].revents != 0 ? Waited::kCancelled : Waited::kTooLong;
}

const Error& nonsense() {
  static const Error error("the open helper sent an invalid answer", EPROTO);
  return error;
}

}  // namespace

std::optional<int> run_open_helper_if_asked(int argc, char** argv) {
  if (argc != 2 || std::strcmp(argv[1], kOpenHelperArgument) != 0) return std::nullopt;
  ::prctl(PR_SET_NAME, "open-helper");
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  std::vector<std::byte> question(kMaxMessageBytes);
  for (;;) {
    const Result<ReceivedMessage> message = receive_message(kSocket, question);
    if (!message || message->bytes == 0) return 0;
    if (!serve(std::span(question).first(message->bytes))) return 1;
    // All opened files are closed by now.
    if (!send_message(kSocket, std::as_bytes(std::span(&kDone, 1)), {})) return 1;
  }
}

Result<OpenHelper> OpenHelper::start(const std::string& program, const std::string& proc, int cancel) {
  Result<HelperProcess> process = start_helper(program, {"flamed: open helper", kOpenHelperArgument});
  if (!process) return std::move(process).error().with_context("cannot start the open helper");
  OpenHelper helper;
  helper.process_ = std::move(*process);
  helper.proc_ = proc;
  helper.cancel_ = cancel;
  return helper;
}

Result<Fd> OpenHelper::open_module(const OpenRequest& request, ModuleSearch search) {
  WireWriter question;
  question.text(proc_);
  question.number(Question::kModule);
  question.number(search);
  write(question, request);
  Result<Answer> answer = ask(question);
  if (!answer) return std::move(answer).error();
  if (answer->files.size() != 1) return nonsense();
  return std::move(answer->files.front());
}

Result<JitFiles> OpenHelper::find_jit_files(const ProcessId& owner) {
  WireWriter question;
  question.text(proc_);
  question.number(Question::kJitFiles);
  question.number(owner.pid);
  question.number(owner.start_ticks);
  Result<Answer> answer = ask(question);
  if (!answer) return std::move(answer).error();
  MemorySource source(answer->bytes);
  WireReader from(source, answer->bytes.size());
  JitFiles found;
  std::uint8_t count = 0;
  if (!from.text(found.why_none, kMaxTextBytes) || !from.number(count) || count != answer->files.size()) {
    return nonsense();
  }
  for (Fd& fd : answer->files) {
    const auto file = std::make_shared<JitFile>();
    if (!read(from, *file)) return nonsense();
    file->file = std::move(fd);
    found.files.push_back(file);
  }
  if (!from.finished()) return nonsense();
  return found;
}

Result<std::vector<RootFile>> OpenHelper::open_in_root(std::int32_t pid, std::span<const std::string> paths,
                                                       const FileOwner& owner) {
  WireWriter question;
  question.text(proc_);
  question.number(Question::kRootFiles);
  question.number(pid);
  question.number(owner.user);
  question.number(owner.device);
  question.number(static_cast<std::uint8_t>(paths.size()));
  for (const std::string& path : paths) question.text(short_text(path));
  Result<Answer> answer = ask(question);
  if (!answer) return std::move(answer).error();
  MemorySource source(answer->bytes);
  WireReader from(source, answer->bytes.size());
  std::vector<RootFile> files(paths.size());
  auto next = answer->files.begin();
  for (RootFile& file : files) {
    bool there = false;
    if (!from.flag(there) || !from.flag(file.is_local) || !from.flag(file.is_foreign) ||
        (there && next == answer->files.end())) {
      return nonsense();
    }
    if (there) file.file = std::move(*next++);
  }
  if (!from.finished() || next != answer->files.end()) return nonsense();
  return files;
}

Result<Fd> OpenHelper::open_memory(const ProcessId& process) {
  WireWriter question;
  question.text(proc_);
  question.number(Question::kMemory);
  question.number(process.pid);
  question.number(process.start_ticks);
  Result<Answer> answer = ask(question);
  if (!answer) return std::move(answer).error();
  if (answer->files.size() != 1) return nonsense();
  return std::move(answer->files.front());
}

Result<ContainerFiles> OpenHelper::find_container_files(const std::string& id) {
  WireWriter question;
  question.text(proc_);
  question.number(Question::kContainer);
  question.text(short_text(id));
  Result<Answer> answer = ask(question);
  if (!answer) return std::move(answer).error();
  MemorySource source(answer->bytes);
  WireReader from(source, answer->bytes.size());
  ContainerFiles found;
  std::uint8_t count = 0;
  if (!from.text(found.log_name, kMaxTextBytes) || !from.number(count) || count != answer->files.size()) {
    return nonsense();
  }
  for (Fd& file : answer->files) {
    std::uint8_t format = 0;
    if (!from.number(format) || format >= kContainerFormats) return nonsense();
    found.files.push_back({ContainerFormat{format}, std::move(file)});
  }
  if (!from.finished()) return nonsense();
  return found;
}

Result<Fd> OpenHelper::connect_engine(const std::string& path, std::string_view asked) {
  WireWriter question;
  question.text(proc_);
  question.number(Question::kEngine);
  question.text(short_text(path));
  question.text(short_text(asked));
  Result<Answer> answer = ask(question);
  if (!answer) return std::move(answer).error();
  if (answer->files.size() != 1) return nonsense();
  return std::move(answer->files.front());
}

Result<SourceCopy> OpenHelper::copy_source(const SourceRequest& request) {
  WireWriter question;
  question.text(proc_);
  question.number(Question::kSource);
  write(question, request);
  Result<Answer> answer = ask(question);
  if (!answer) return std::move(answer).error();
  MemorySource source(answer->bytes);
  WireReader from(source, answer->bytes.size());
  SourceCopy copied;
  if (!from.number(copied.modified_ns) || !from.finished() || answer->files.size() != 1) return nonsense();
  copied.text = std::move(answer->files.front());
  return copied;
}

Result<OpenHelper::Answer> OpenHelper::ask(const WireWriter& question) {
  const Error ended("the open helper has exited", EAGAIN);
  const Deadline deadline = Deadline::after(limit_ns_);
  const auto wait = [&] { return wait_for(process_.socket, cancel_, deadline); };
  const auto give_up = [&](Waited why) {
    return why == Waited::kCancelled ? leave(State::kCancelled, Error("flamed is ending", ECANCELED))
                                     : leave(State::kHangs, Error("a file system does not answer", ETIMEDOUT));
  };
  if (!send_message(process_.socket.get(), question.bytes(), {})) return leave(State::kEnded, ended);
  if (const Waited waited = wait(); waited != Waited::kReadable) return give_up(waited);
  std::array<std::byte, kMaxMessageBytes> buffer;
  Result<ReceivedMessage> message = receive_message(process_.socket.get(), buffer);
  if (!message || message->bytes == 0) return leave(State::kEnded, ended);
  if (const Waited waited = wait(); waited != Waited::kReadable) {
    // The thread that closes them would wait as the helper does now.
    for (Fd& file : message->fds) static_cast<void>(file.release());
    return give_up(waited);
  }
  std::byte done{};
  if (!receive_message(process_.socket.get(), {&done, 1})) return leave(State::kEnded, ended);

  const std::span<const std::byte> bytes(buffer.data(), message->bytes);
  MemorySource source(bytes);
  WireReader from(source, bytes.size());
  bool good = false;
  if (!from.flag(good)) return nonsense();
  if (good) {
    const std::span<const std::byte> words = bytes.last(from.left());
    return Answer{{words.begin(), words.end()}, std::move(message->fds)};
  }
  int code = 0;
  std::string words;
  if (!from.number(code) || !from.text(words, kMaxTextBytes)) return nonsense();
  return Error(std::move(words), code);
}

Error OpenHelper::leave(State state, Error why) {
  state_ = state;
  process_.socket.reset();
  ::syscall(SYS_pidfd_send_signal, process_.pidfd.get(), SIGKILL, nullptr, 0);
  return why;
}

std::int64_t OpenHelper::cpu_ns() const {
  clockid_t clock{};
  timespec used{};
  if (::clock_getcpuclockid(process_.pid, &clock) != 0 || ::clock_gettime(clock, &used) != 0) return 0;
  return used.tv_sec * kNsPerSecond + used.tv_nsec;
}

bool OpenHelper::reap() {
  if (process_.pid < 0) return true;
  if (!process_.ends_within(0)) return false;
  ::waitpid(process_.pid, nullptr, WNOHANG);
  process_.pid = -1;
  return true;
}

void OpenHelper::end() {
  if (process_.pid < 0) return;
  // An idle helper exits when its socket is closed, a blocked one when its file system answers.
  process_.socket.reset();
  if (state_ == State::kReady && !process_.ends_within(kNsPerSecond)) {
    ::syscall(SYS_pidfd_send_signal, process_.pidfd.get(), SIGKILL, nullptr, 0);
  }
  reap();
}

}  // namespace flamed::symbolizer
