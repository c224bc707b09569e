// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/worker/spawner.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstring>
#include <exception>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/handle.h"
#include "symbolizer/ipc/fd_message.h"
#include "symbolizer/ipc/wire.h"
#include "symbolizer/model/reading_purpose.h"
#include "symbolizer/model/sourced_rows.h"
#include "symbolizer/worker/kept_rows.h"
#include "symbolizer/worker/sandbox.h"
#include "symbolizer/worker/value_codec.h"

namespace flamed::symbolizer {
namespace {

/// The spawner's control socket, and a child's request socket: the only descriptor that the seccomp filter allows it to
/// write to.
constexpr int kSocket = 0;
/// More than the daemon's simultaneous requests: children blocked in a file system stay, and count.
constexpr std::size_t kMaxChildren = 24;
constexpr int kExitNoDaemon = 1;
constexpr int kExitBadRequest = 2;
constexpr int kExitNoSandbox = 3;

template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

std::int64_t ns_of(const timeval& time) { return time.tv_sec * kNsPerSecond + time.tv_usec * kNsPerUs; }
std::int64_t cpu_ns_of(const rusage& usage) { return ns_of(usage.ru_utime) + ns_of(usage.ru_stime); }

// ---- A child ----

class RequestSocket final : public ByteSource {
 public:
  Status read(std::span<std::byte> to) override {
    while (!to.empty()) {
      const ssize_t size = ::read(kSocket, to.data(), to.size());
      if (size < 0 && errno == EINTR) continue;
      if (size < 0) return Error::from_errno("read");
      if (size == 0) return Error("the daemon hung up");
      to = to.subspan(static_cast<std::size_t>(size));
    }
    return {};
  }
  static void write(std::vector<iovec> pieces) {
    std::span<iovec> left(pieces);
    while (!left.empty()) {
      msghdr message{};
      message.msg_iov = left.data();
      message.msg_iovlen = std::min<std::size_t>(left.size(), IOV_MAX);
      ssize_t sent = ::sendmsg(kSocket, &message, MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0) ::_exit(kExitNoDaemon);
      while (!left.empty() && static_cast<std::size_t>(sent) >= left.front().iov_len) {
        sent -= static_cast<ssize_t>(left.front().iov_len);
        left = left.subspan(1);
      }
      if (!left.empty()) {
        left.front().iov_base = static_cast<std::byte*>(left.front().iov_base) + sent;
        left.front().iov_len -= static_cast<std::size_t>(sent);
      }
    }
  }
};

struct Request {
  RequestHead head;
  std::vector<Fd> fds;
  std::vector<std::byte> payload;

  /// Descriptor `i` of the head's mask, or -1.
  [[nodiscard]] int fd(unsigned i) const {
    if ((head.fd_mask & (1U << i)) == 0) return -1;
    std::size_t before = 0;
    for (unsigned k = 0; k < i; ++k) before += (head.fd_mask & (1U << k)) != 0 ? 1 : 0;
    return before < fds.size() ? fds[before].get() : -1;
  }
  [[nodiscard]] ModuleFiles files() const { return {fd(0), fd(1), fd(2)}; }
};

/// None: the daemon has hung up. It is trusted, but another program may have replaced its file.
std::optional<Request> receive_request() {
  Request request;
  Result<ReceivedMessage> message = receive_message(kSocket, std::as_writable_bytes(std::span(&request.head, 1)));
  if (!message || message->bytes != sizeof(RequestHead) || request.head.magic != RequestHead::kMagic) return {};
  request.fds = std::move(message->fds);
  RequestSocket socket;
  request.payload.resize(request.head.size);
  if (!socket.read(request.payload).ok()) return {};
  return request;
}

void answer_error(const Error& error) {
  WireWriter body;
  body.number(std::int32_t{error.code()});
  body.text(error.message());
  const AnswerHead head{AnswerHead::kMagic, AnswerHead::Kind::kError, body.size()};
  std::vector<iovec> pieces{{const_cast<AnswerHead*>(&head), sizeof(head)}};
  for (const auto piece : body.pieces()) pieces.push_back({const_cast<std::byte*>(piece.data()), piece.size()});
  RequestSocket::write(std::move(pieces));
}

template <typename T>
void answer(const Result<T>& result, std::uint64_t max_bytes) {
  if (!result) return answer_error(result.error());
  WireWriter body;
  ValueCodec::encode(body, *result);
  if (body.size() > max_bytes) {
    return answer_error(
        Error("the file's content is larger than the limit of " + std::to_string(max_bytes) + " bytes for one file"));
  }
  const AnswerHead head{AnswerHead::kMagic, AnswerHead::Kind::kValue, body.size()};
  std::vector<iovec> pieces{{const_cast<AnswerHead*>(&head), sizeof(head)}};
  for (const auto piece : body.pieces()) pieces.push_back({const_cast<std::byte*>(piece.data()), piece.size()});
  RequestSocket::write(std::move(pieces));
}

void serve(const Request& request, ModuleReader& reader, std::uint64_t max_bytes) {
  MemorySource source(request.payload);
  WireReader payload(source, request.payload.size());
  switch (request.head.kind) {
    case RequestKind::kInspect:
      return answer(reader.inspect(request.fd(0)), max_bytes);
    case RequestKind::kSymbols:
      return answer(reader.read_symbols(request.files()), max_bytes);
    case RequestKind::kUnwindRows:
      if (const Result<SourcedRows> kept = read_kept_rows(request.fd(0), request.fd(1))) return answer(kept, max_bytes);
      return answer(reader.read_unwind_rows(request.fd(0), -1), max_bytes);
    case RequestKind::kJitSymbols:
      return answer(reader.read_jit_symbols(request.fd(0), static_cast<JitFormat>(request.head.jit_format)), max_bytes);
    case RequestKind::kLocate: {
      std::vector<std::uint64_t> offsets;
      if (!payload.array(offsets, request.payload.size())) break;
      return answer(reader.locate(request.files(), offsets), max_bytes);
    }
    case RequestKind::kFunctionRows: {
      std::vector<std::uint64_t> offsets;
      if (!payload.array(offsets, request.payload.size())) break;
      return answer(reader.read_function_rows(request.fd(0), offsets), max_bytes);
    }
    case RequestKind::kDisassembly: {
      DisassemblyQuestion question;
      if (!payload.array(question.functions, DisassemblyQuestion::kMostFunctions) ||
          !payload.array(question.places, DisassemblyQuestion::kMostPlaces)) {
        break;
      }
      return answer(reader.disassemble(request.fd(0), question), max_bytes);
    }
    case RequestKind::kDemangle: {
      std::vector<std::string> names;
      std::uint64_t count = 0;
      if (!payload.number(count) || count > request.payload.size()) break;
      names.resize(count);
      const auto read_name = [&](std::string& name) { return payload.text(name, request.payload.size()); };
      if (!std::all_of(names.begin(), names.end(), read_name)) break;
      return answer(reader.demangle(names), max_bytes);
    }
    case RequestKind::kRuntime:
      return answer(reader.find_runtime(request.fd(0)), max_bytes);
    case RequestKind::kHotSpot: {
      HotSpotMapping mapping;
      if (!payload.number(mapping.start) || !payload.number(mapping.file_offset)) break;
      return answer(reader.find_hotspot(request.fd(0), {request.fd(1)}, mapping), max_bytes);
    }
    case RequestKind::kHotSpotCode: {
      std::vector<runtimes::HotSpotLayout> layout;
      std::vector<runtimes::HotSpotKnownBlob> known;
      std::uint64_t base = 0;
      if (!payload.array(layout, 1) || layout.empty() || !payload.number(base) ||
          !payload.array(known, runtimes::kMostHotSpotBlobs)) {
        break;
      }
      return answer(reader.read_hotspot_code({request.fd(0)}, layout[0], base, known), max_bytes);
    }
    case RequestKind::kHotSpotNames: {
      std::vector<runtimes::HotSpotLayout> layout;
      std::uint64_t base = 0;
      HotSpotQuestion question;
      if (!payload.array(layout, 1) || layout.empty() || !payload.number(base) ||
          !payload.array(question.places, kMostHotSpotPlaces) || !payload.array(question.known, kMostHotSpotChecks) ||
          !payload.array(question.interpreted, kMostHotSpotInterpreted)) {
        break;
      }
      return answer(reader.read_hotspot_names({request.fd(0)}, layout[0], base, question), max_bytes);
    }
    case RequestKind::kContainer: {
      std::uint8_t format = 0;
      std::string id;
      if (!payload.number(format) || format >= kContainerFormats || !payload.text(id, kMaxContainerNameBytes)) break;
      return answer(reader.read_container(request.fd(0), ContainerFormat{format}, id), max_bytes);
    }
    case RequestKind::kEngine: {
      std::uint8_t protocol = 0;
      std::string id;
      if (!payload.number(protocol) || protocol >= kEngineProtocols || !payload.text(id, kMaxContainerNameBytes)) break;
      return answer(reader.read_engine_answer(request.fd(0), EngineProtocol{protocol}, id), max_bytes);
    }
    case RequestKind::kRuntimeFunctions: {
      std::vector<RuntimeProcess> process;
      std::vector<RuntimeCode> codes;
      std::vector<CopiedCode> copies;
      if (!payload.array(process, 1) || process.empty() || !payload.array(codes, kMostRuntimeCodes) ||
          !payload.array(copies, kMostRuntimeCodes)) {
        break;
      }
      return answer(reader.read_runtime_functions({request.fd(0)}, process[0], codes, copies), max_bytes);
    }
  }
  ::_exit(kExitBadRequest);
}

[[noreturn]] void run_child(pid_t spawner, const Order& order, const SystemCallFilter* filter, ModuleReader& reader) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (::getppid() != spawner) ::_exit(kExitNoDaemon);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  std::optional<Request> request = receive_request();
  if (!request) ::_exit(kExitBadRequest);
  const unsigned descriptors = order.serves_many != 0 ? kSocket + 1 + RequestHead::kMaxFds : 0;
  if (!limit_request(order.limits, descriptors).ok() || (filter != nullptr && !filter->enforce().ok())) {
    ::_exit(kExitNoSandbox);
  }
  while (request) {
    try {
      serve(*request, reader, order.limits.answer_bytes);
    } catch (const std::exception& e) {
      answer_error(Error(std::string("cannot read the file: ") + e.what(), ENOMEM));
    }
    // Without destructors: the kernel frees the memory as a whole.
    if (order.serves_many == 0) ::_exit(0);
    request.reset();  // makes room for the descriptors of the next one
    request = receive_request();
  }
  ::_exit(0);
}

// ---- The spawner ----

class Spawner {
 public:
  struct Filters {
    SystemCallFilter for_one;
    SystemCallFilter for_many;
  };
  Spawner(ModuleReader& reader, const Filters* filters) : reader_(reader), filters_(filters) {}

  /// Until the daemon is gone.
  int run();

 private:
  struct Child {
    pid_t pid;
    Fd pidfd;
    Fd news;
    ReadingPurpose purpose;
    bool is_killed = false;

    void kill() const { ::syscall(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, 0); }
  };

  /// False: the daemon is gone.
  bool take_order();
  void start_child(const Order& order, Fd socket, Fd news);
  void reap();

  ModuleReader& reader_;
  const Filters* filters_;  ///< of children; null: none is in force
  std::vector<Child> children_;
  std::array<std::int64_t, kReadingPurposes> children_cpu_ns_{};  ///< by purpose
  std::uint64_t peak_bytes_ = 0;
};

void send_news(const Fd& news, News::What what, std::int32_t detail) {
  const News text{what, detail};
  // The pipe has at most one earlier News, and a daemon that closed its end needs none.
  if (::write(news.get(), &text, sizeof(text)) != sizeof(text)) return;
}

void Spawner::start_child(const Order& order, Fd socket, Fd news) {
  if (children_.size() >= kMaxChildren) return send_news(news, News::What::kRefused, EBUSY);
  const pid_t self = ::getpid();
  Fd pidfd;
  const pid_t pid = fork_with_pidfd(pidfd);
  if (pid < 0) return send_news(news, News::What::kRefused, errno);
  if (pid == 0) {
    if (::dup2(socket.get(), kSocket) != kSocket || ::close_range(kSocket + 1, ~0U, 0) != 0) ::_exit(kExitNoSandbox);
    const SystemCallFilter* filter = nullptr;
    if (filters_ != nullptr) filter = order.serves_many != 0 ? &filters_->for_many : &filters_->for_one;
    run_child(self, order, filter, reader_);
  }
  send_news(news, News::What::kStarted, pid);
  children_.push_back({pid, std::move(pidfd), std::move(news), order.purpose});
}

bool Spawner::take_order() {
  Order order;
  Result<ReceivedMessage> message = receive_message(kSocket, std::as_writable_bytes(std::span(&order, 1)));
  if (!message) return message.error().code() == EAGAIN;
  if (message->bytes == 0) return false;
  if (message->bytes != sizeof(order) || order.magic != Order::kMagic || message->fds.size() != Order::kFds ||
      static_cast<std::size_t>(order.purpose) >= kReadingPurposes) {
    return true;  // its descriptors are closed, which the daemon notices
  }
  start_child(order, std::move(message->fds[0]), std::move(message->fds[1]));
  return true;
}

void Spawner::reap() {
  bool any = false;
  for (;;) {
    int status = 0;
    rusage usage{};
    const pid_t pid = ::wait4(-1, &status, WNOHANG, &usage);
    if (pid <= 0) break;
    any = true;
    peak_bytes_ = std::max(peak_bytes_, static_cast<std::uint64_t>(usage.ru_maxrss) * 1024);
    const auto child =
        std::find_if(children_.begin(), children_.end(), [&](const Child& candidate) { return candidate.pid == pid; });
    if (child == children_.end()) continue;
    children_cpu_ns_[static_cast<std::size_t>(child->purpose)] += cpu_ns_of(usage);
    send_news(child->news, News::What::kEnded, status);
    children_.erase(child);
  }
  if (!any) return;
  rusage own{};
  ::getrusage(RUSAGE_SELF, &own);
  Usage usage;
  usage.cpu_ns = std::accumulate(children_cpu_ns_.begin(), children_cpu_ns_.end(), cpu_ns_of(own));
  usage.children_cpu_ns = children_cpu_ns_;
  usage.peak_bytes = peak_bytes_;
  // If the daemon has not read for long, there is no room; later messages have the totals.
  static_cast<void>(send_message(kSocket, bytes_of(usage), {}).ok());
}

int Spawner::run() {
  std::vector<pollfd> polled;
  // SIGCHLD is blocked except during the wait, so that no child's end is missed between a check and the wait.
  sigset_t while_waiting;
  ::sigemptyset(&while_waiting);
  for (;;) {
    polled.assign(1, {kSocket, POLLIN, 0});
    // An error on the write end: the daemon does not wait any more.
    for (const Child& child : children_) polled.push_back({child.is_killed ? -1 : child.news.get(), 0, 0});
    const int ready = ::ppoll(polled.data(), polled.size(), nullptr, &while_waiting);
    if (ready < 0 && errno != EINTR) return kExitNoDaemon;
    if (ready > 0) {
      for (std::size_t i = 1; i < polled.size(); ++i) {
        if ((polled[i].revents & POLLERR) == 0) continue;
        Child& child = children_[i - 1];
        child.is_killed = true;
        child.kill();
      }
    }
    reap();
    if (ready > 0 && polled.front().revents != 0 && !take_order()) break;
  }
  // They would end with this process, their parent, but only when they handle signals.
  for (const Child& child : children_) child.kill();
  return 0;
}

void on_child_end(int /*signal*/) {}

void prepare_signals() {
  struct sigaction action {};
  action.sa_handler = on_child_end;  // not SIG_IGN, which would reap children without interrupting the wait
  ::sigaction(SIGCHLD, &action, nullptr);
  action.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &action, nullptr);
  sigset_t blocked;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGCHLD);
  ::sigprocmask(SIG_SETMASK, &blocked, nullptr);
}

std::uint32_t number_of(std::string_view text) {
  std::uint32_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

int run_spawner(uid_t user, gid_t group, ModuleReader& reader) {
  ::prctl(PR_SET_NAME, "elf-worker");
  prepare_signals();
  const Result<SystemCallFilter> for_spawning = SystemCallFilter::for_spawning();
  Result<SystemCallFilter> for_reading = SystemCallFilter::for_reading();
  Result<SystemCallFilter> for_serving = SystemCallFilter::for_serving();
  std::optional<Spawner::Filters> filters;
  Hello hello = give_up_rights(user, group);
  if (!for_spawning || !for_reading || !for_serving) {
    hello.system_calls_error = ENOSYS;
  } else if (Status enforced = for_spawning->enforce(); !enforced.ok()) {
    hello.system_calls_error = enforced.error().code();
  } else {
    filters = {std::move(for_reading).value(), std::move(for_serving).value()};
  }
  if (!send_message(kSocket, bytes_of(hello), {}).ok()) return kExitNoDaemon;
  return Spawner(reader, filters ? &*filters : nullptr).run();
}

}  // namespace

std::optional<int> run_spawner_if_asked(int argc, char** argv, ModuleReader& reader) {
  if (argc != 4 || std::strcmp(argv[1], kSpawnerArgument) != 0) return std::nullopt;
  return run_spawner(number_of(argv[2]), number_of(argv[3]), reader);
}

}  // namespace flamed::symbolizer
