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
#include <utility>

#include "base/clock.h"
#include "symbolizer/ipc/deadline.h"
#include "symbolizer/ipc/fd_message.h"

namespace flamed::daemon {
namespace {

constexpr int kSocket = STDIN_FILENO;
/// Processes whose memory does not answer, and helpers that wait for it: a machine with more has other problems.
constexpr std::size_t kMostRefused = 16;

/// The memory that the daemon and the helper share.
struct Shared {
  std::array<std::array<std::byte, StackHelper::kStackBytes>, StackHelper::kMost> stacks;
  std::uint32_t current;  ///< the request that the helper reads now
};

// -- The helper's side ----------------------------------------------------------------------------------------------

/// How often the thread got a CPU: the third number of its schedstat.
std::optional<std::uint64_t> runs_of(const StackRequest& request) {
  std::array<char, 64> path{};
  std::snprintf(path.data(), path.size(), "/proc/%d/task/%d/schedstat", request.pid, request.tid);
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

/// As far as there is memory. By a file, not by process_vm_readv(), which the unit does not allow.
std::uint32_t read_stack(const StackRequest& request, std::span<std::byte> to) {
  std::array<char, 32> path{};
  std::snprintf(path.data(), path.size(), "/proc/%d/mem", request.pid);
  const Fd memory(::open(path.data(), O_RDONLY | O_CLOEXEC));
  if (!memory) return 0;
  const ssize_t read = ::pread(memory.get(), to.data(), to.size(), static_cast<off_t>(request.address));
  if (read <= 0) return 0;
  const std::optional<std::uint64_t> runs = runs_of(request);
  return runs && *runs == request.runs ? static_cast<std::uint32_t>(read) : 0;
}

int serve() {
  std::array<StackRequest, StackHelper::kMost> requests{};
  MappedMemory memory;
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
    std::array<std::uint32_t, StackHelper::kMost> sizes{};
    for (std::size_t i = 0; i < count; ++i) {
      __atomic_store_n(&shared.current, static_cast<std::uint32_t>(i), __ATOMIC_RELEASE);
      sizes[i] = read_stack(requests[i], shared.stacks[i]);
    }
    if (!symbolizer::send_message(kSocket, std::as_bytes(std::span(sizes).first(count)), {})) return 1;
  }
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
  std::array<std::uint32_t, kMost> unused{};
  static_cast<void>(symbolizer::receive_message(process->socket.get(), std::as_writable_bytes(std::span(unused))));
  process_ = std::move(process).value();
  start_cpu_ns_ += cpu_ns_of(process_->pid);
  return {};
}

std::vector<std::uint32_t> StackHelper::ask(std::span<const StackRequest> requests) {
  std::erase_if(abandoned_, [](const symbolizer::HelperProcess& helper) {
    return helper.ends_within(0) && ::waitpid(helper.pid, nullptr, WNOHANG) != 0;
  });
  if (requests.empty() || requests.size() > kMost || abandoned_.size() >= kMostRefused) return {};
  if (!process_ && !start()) return {};
  if (!symbolizer::send_message(process_->socket.get(), std::as_bytes(requests), {})) {
    abandon();
    return {};
  }
  const symbolizer::Deadline deadline = symbolizer::Deadline::after(options_.limit_ns);
  pollfd polled{process_->socket.get(), POLLIN, 0};
  int ready = 0;
  do {
    ready = ::poll(&polled, 1, deadline.left_ms());
  } while (ready < 0 && errno == EINTR);
  if (ready <= 0) {
    ++timeouts_;
    const std::uint32_t current = __atomic_load_n(&memory_.as<Shared>()[0].current, __ATOMIC_ACQUIRE);
    const StackRequest& blocked = requests[std::min<std::size_t>(current, requests.size() - 1)];
    refused_.insert(blocked.pid);
    ++hung_of_[blocked.user];
    abandon();
    return {};
  }
  std::vector<std::uint32_t> sizes(requests.size());
  const Result<symbolizer::ReceivedMessage> message =
      symbolizer::receive_message(process_->socket.get(), std::as_writable_bytes(std::span(sizes)));
  if (!message || message->bytes != sizes.size() * sizeof(std::uint32_t)) {
    abandon();
    return {};
  }
  for (std::uint32_t& size : sizes) size = std::min<std::uint32_t>(size, kStackBytes);
  return sizes;
}

void StackHelper::abandon() {
  ended_cpu_ns_ += cpu_ns_of(process_->pid);
  process_->socket.reset();
  ::syscall(SYS_pidfd_send_signal, process_->pidfd.get(), SIGKILL, nullptr, 0);
  abandoned_.push_back(std::move(*process_));
  process_.reset();
  memory_ = {};
}

void StackHelper::clear(std::span<const std::uint32_t> sizes) {
  for (std::size_t i = 0; i < sizes.size(); ++i) ::explicit_bzero(memory_.data() + i * kStackBytes, sizes[i]);
}

std::int64_t StackHelper::cpu_ns() const { return ended_cpu_ns_ + (process_ ? cpu_ns_of(process_->pid) : 0); }

}  // namespace flamed::daemon
