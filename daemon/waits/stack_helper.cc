// SPDX-License-Identifier: Apache-2.0
#include "daemon/waits/stack_helper.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "symbolizer/ipc/deadline.h"
#include "symbolizer/ipc/fd_message.h"

namespace flamed::daemon {
namespace {

constexpr int kSocket = STDIN_FILENO;
/// Helpers that wait for memory which does not answer: a machine with more has other problems.
constexpr std::size_t kMostAbandoned = 16;
/// After so long it may answer again, and so may that of the user's other processes.
constexpr std::int64_t kRefusedNs = 60 * kNsPerMinute;

/// The destructor waits for so long that helpers end, to reap them.
constexpr std::int64_t kLastWaitNs = 100 * kNsPerMs;

/// As long as the helper could run it gets so many times the time that an answer may take.
constexpr int kLimitsWhileItCouldRun = 8;

/// The memory that the daemon and the helper share.
struct Shared {
  std::array<std::array<std::byte, StackHelper::kStackBytes>, StackHelper::kMost> stacks;
  std::uint32_t current;  ///< the request whose process's memory the helper reads now, or kNone
};
constexpr std::uint32_t kNone = UINT32_MAX;

// -- The helper's side ----------------------------------------------------------------------------------------------

/// How often the thread got a CPU: the third number of its schedstat.
std::optional<std::uint64_t> runs_of(const StackRequest& request) {
  std::array<char, 64> path{};
  // Not by /proc/PID/task: two directories fewer to look up.
  std::snprintf(path.data(), path.size(), "/proc/%d/schedstat", request.tid);
  const Fd file(::open(path.data(), O_RDONLY | O_CLOEXEC));
  std::array<char, 96> text{};
  const ssize_t size = file ? ::read(file.get(), text.data(), text.size()) : -1;
  if (size <= 0) return std::nullopt;
  const char* at = text.data();
  const char* const end = at + size;
  for (int space = 0; space < 2; ++at) {
    if (at == end) return std::nullopt;
    if (*at == ' ') ++space;
  }
  std::uint64_t runs = 0;
  if (std::from_chars(at, end, runs).ec != std::errc{}) return std::nullopt;
  return runs;
}

/// A process's memory; threads of one process mostly come together. By a file, not by process_vm_readv(), which the
/// unit does not allow.
class Memory {
 public:
  /// -1: it has ended, say.
  int open(std::int32_t pid) {
    if (pid == pid_ && file_) return file_.get();
    std::array<char, 32> path{};
    std::snprintf(path.data(), path.size(), "/proc/%d/mem", pid);
    file_.reset(::open(path.data(), O_RDONLY | O_CLOEXEC));
    pid_ = pid;
    return file_.get();
  }

 private:
  Fd file_{};
  std::int32_t pid_ = 0;
};

std::string read_status(std::int32_t pid, std::uint32_t tid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/task/" + std::to_string(tid) + "/status";
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text(4096, '\0');
  const ssize_t size = file ? ::read(file.get(), text.data(), text.size()) : 0;
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  return text;
}

std::vector<std::uint32_t> threads_of(std::int32_t pid, std::size_t most) {
  std::vector<std::uint32_t> threads;
  std::error_code error;
  std::filesystem::directory_iterator entry("/proc/" + std::to_string(pid) + "/task", error);
  for (; !error && entry != std::filesystem::directory_iterator() && threads.size() < most; entry.increment(error)) {
    const std::string name = entry->path().filename();
    std::uint32_t tid = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), tid).ec == std::errc{}) threads.push_back(tid);
  }
  return threads;
}

/// What a process's memory has of a wait.
struct WaitMemory {
  std::uint32_t stack_bytes = 0;
  std::optional<std::uint32_t> owner;  ///< of the mutex
};

std::optional<std::uint32_t> read_owner(const FutexWait& futex, int memory) {
  std::array<std::byte, kMutexBytes> mutex{};
  const ssize_t read = ::pread(memory, mutex.data(), mutex.size(), static_cast<off_t>(futex.address));
  return read == static_cast<ssize_t>(mutex.size()) ? mutex_owner(mutex, futex) : std::nullopt;
}

/// The stack as far as there is memory.
WaitMemory read_memory(const StackRequest& request, Memory& memory, std::span<std::byte> to) {
  const int file = memory.open(request.pid);
  const ssize_t read = file < 0 ? -1 : ::pread(file, to.data(), to.size(), static_cast<off_t>(request.address));
  if (read <= 0) return {};
  return {static_cast<std::uint32_t>(read),
          request.futex.address != 0 ? read_owner(request.futex, file) : std::nullopt};
}

StackAnswer answer_of(const StackRequest& request, const WaitMemory& memory, HolderFinder& finder) {
  LockHolder holder;
  if (memory.owner) holder = finder.find(request.pid, *memory.owner, request.user);
  const std::optional<std::uint64_t> runs = runs_of(request);
  if (!runs || *runs != request.runs) return {0, FLAMED_STACK_RAN};
  if (memory.stack_bytes == 0) return {0, FLAMED_STACK_ABSENT};
  return {memory.stack_bytes, FLAMED_STACK_READ, holder};
}

int serve() {
  std::array<StackRequest, StackHelper::kMost> requests{};
  MappedMemory memory;
  HolderFinder finder(read_status, threads_of);
  for (;;) {
    const Result<symbolizer::ReceivedMessage> message =
        symbolizer::receive_message(kSocket, std::as_writable_bytes(std::span(requests)));
    if (!message || message->bytes == 0) return 0;
    if (!message->fds.empty()) {
      Result<MappedMemory> mapped = MappedMemory::map(message->fds.front().get(), sizeof(Shared),
                                                      MappedMemory::Access::kReadAndWrite, "the daemon's memory");
      if (!mapped) return 1;
      memory = std::move(mapped).value();
    }
    if (memory.data() == nullptr || message->bytes % sizeof(StackRequest) != 0) return 1;
    Shared& shared = memory.as<Shared>()[0];
    const std::size_t count = message->bytes / sizeof(StackRequest);
    std::array<StackAnswer, StackHelper::kMost> answers{};
    Memory of_process;
    finder.begin_batch();
    for (std::size_t i = 0; i < count; ++i) {
      __atomic_store_n(&shared.current, static_cast<std::uint32_t>(i), __ATOMIC_RELEASE);
      const WaitMemory memory_of_wait = read_memory(requests[i], of_process, shared.stacks[i]);
      __atomic_store_n(&shared.current, kNone, __ATOMIC_RELEASE);
      answers[i] = answer_of(requests[i], memory_of_wait, finder);
    }
    if (!symbolizer::send_message(kSocket, std::as_bytes(std::span(answers).first(count)), {})) return 1;
  }
}

/// It runs or waits for a CPU, so it is not some memory that does not answer.
bool could_run(pid_t pid) {
  const Result<std::string> stat = read_file("/proc/" + std::to_string(pid) + "/stat", 512);
  if (!stat) return false;
  const std::size_t name_end = stat->rfind(')');
  return name_end != std::string::npos && name_end + 2 < stat->size() && (*stat)[name_end + 2] == 'R';
}

std::int64_t cpu_ns_of(pid_t pid) {
  clockid_t clock{};
  timespec used{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &used) != 0) return 0;
  return used.tv_sec * kNsPerSecond + used.tv_nsec;
}

}  // namespace

std::optional<int> run_stack_helper_if_asked(int argc, char** argv) {
  if (argc != 2 || std::strcmp(argv[1], kStackHelperArgument) != 0) return std::nullopt;
  ::prctl(PR_SET_NAME, "stack-helper");
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  return serve();
}

// -- The daemon's side ------------------------------------------------------------------------------------------------

StackHelper::~StackHelper() {
  if (process_) abandon();
  // One that hangs in some memory ends later, if ever.
  const symbolizer::Deadline deadline = symbolizer::Deadline::after(kLastWaitNs);
  for (const symbolizer::HelperProcess& helper : abandoned_) {
    if (helper.ends_within(deadline.left_ns())) ::waitpid(helper.pid, nullptr, 0);
  }
}

Status StackHelper::start() {
  Result<symbolizer::HelperProcess> process =
      symbolizer::start_helper(options_.program, {"flamed: stack helper", kStackHelperArgument});
  if (!process) return std::move(process).error().with_context("cannot start the stack helper");
  const Fd file(::memfd_create("flamed-stacks", MFD_CLOEXEC));
  if (!file || ::ftruncate(file.get(), sizeof(Shared)) != 0) return Error::from_errno("memory for stacks");
  Result<MappedMemory> memory =
      MappedMemory::map(file.get(), sizeof(Shared), MappedMemory::Access::kReadAndWrite, "memory for stacks");
  if (!memory) return std::move(memory).error();
  memory_ = std::move(memory).value();
  // Other programs' secrets: in no core dump.
  ::madvise(memory_.data(), sizeof(Shared), MADV_DONTDUMP);
  const int fd = file.get();
  const StackRequest none{};
  Status sent = symbolizer::send_message(process->socket.get(), std::as_bytes(std::span(&none, 1)), {&fd, 1});
  if (!sent) return sent;
  std::array<StackAnswer, kMost> unused{};
  static_cast<void>(symbolizer::receive_message(process->socket.get(), std::as_writable_bytes(std::span(unused))));
  process_ = std::move(process).value();
  start_cpu_ns_ += cpu_ns_of(process_->pid);
  return {};
}

std::vector<StackAnswer> StackHelper::ask(std::span<const StackRequest> requests) {
  std::erase_if(abandoned_, [](const symbolizer::HelperProcess& helper) {
    return helper.ends_within(0) && ::waitpid(helper.pid, nullptr, WNOHANG) != 0;
  });
  if (abandoned_.empty()) hung_.forget_before({clock_.monotonic().ns - kRefusedNs});
  if (requests.empty() || requests.size() > kMost || abandoned_.size() >= kMostAbandoned) return {};
  if (!process_ && !start()) return {};
  if (!symbolizer::send_message(process_->socket.get(), std::as_bytes(requests), {})) {
    abandon();
    return {};
  }
  const bool is_ready = await_answer();
  if (!is_ready) {
    if (!could_run(process_->pid)) {
      ++timeouts_;
      const std::uint32_t current = __atomic_load_n(&memory_.as<Shared>()[0].current, __ATOMIC_ACQUIRE);
      if (current < requests.size()) hung_.add(process_of(requests[current]), clock_.monotonic());
    }
    abandon();
    return {};
  }
  std::vector<StackAnswer> answers(requests.size());
  const Result<symbolizer::ReceivedMessage> message =
      symbolizer::receive_message(process_->socket.get(), std::as_writable_bytes(std::span(answers)));
  if (!message || message->bytes != answers.size() * sizeof(StackAnswer)) {
    abandon();
    return {};
  }
  for (StackAnswer& answer : answers) answer.bytes = std::min<std::uint32_t>(answer.bytes, kStackBytes);
  return answers;
}

bool StackHelper::await_answer() const {
  pollfd polled{process_->socket.get(), POLLIN, 0};
  for (int i = 0; i < kLimitsWhileItCouldRun; ++i) {
    const symbolizer::Deadline deadline = symbolizer::Deadline::after(options_.limit_ns);
    int ready = 0;
    do {
      ready = ::poll(&polled, 1, deadline.left_ms());
    } while (ready < 0 && errno == EINTR);
    if (ready > 0) return true;
    if (!could_run(process_->pid)) return false;
  }
  return false;
}

void StackHelper::abandon() {
  ended_cpu_ns_ += cpu_ns_of(process_->pid);
  process_->socket.reset();
  ::syscall(SYS_pidfd_send_signal, process_->pidfd.get(), SIGKILL, nullptr, 0);
  abandoned_.push_back(std::move(*process_));
  process_.reset();
  memory_ = {};
}

void StackHelper::clear(std::span<const StackAnswer> answers) {
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (answers[i].bytes != 0) ::explicit_bzero(memory_.data() + i * kStackBytes, answers[i].bytes);
  }
}

std::int64_t StackHelper::cpu_ns() const { return ended_cpu_ns_ + (process_ ? cpu_ns_of(process_->pid) : 0); }

}  // namespace flamed::daemon
