// SPDX-License-Identifier: Apache-2.0
//
// A spawner whose children do on command what an attacker's file might make them do. The command is the first name in a
// request to demangle. Everything else works as in flamed.
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "symbolizer/worker/request.h"
#include "symbolizer/worker/spawner.h"
#include "test/unit/symbolizer/forwarding_reader.h"

namespace flamed::symbolizer {
namespace {

void say(const void* bytes, std::size_t size) {
  iovec piece{const_cast<void*>(bytes), size};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  if (::sendmsg(0, &message, MSG_NOSIGNAL) < 0) ::_exit(0);
}

void say_head(std::uint64_t size) {
  AnswerHead head;
  head.size = size;
  say(&head, sizeof(head));
}

[[noreturn]] void spin() {
  for (volatile unsigned turns = 0;;) static_cast<void>(turns);
}

const std::map<std::string, std::function<void()>>& commands() {
  static const std::map<std::string, std::function<void()>> kCommands = {
      {"crash",
       [] {
         volatile int* volatile nowhere = nullptr;
         *nowhere = 1;
       }},
      {"exit", [] { ::_exit(7); }},
      {"spin", [] { spin(); }},
      {"hang",
       [] {
         std::uint32_t word = 0;
         for (;;) ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
       }},
      {"kill", [] { ::syscall(SYS_kill, ::getpid(), SIGKILL); }},
      {"use memory",
       [] {
         std::vector<std::vector<char>> all;
         for (;;) all.emplace_back(std::size_t{1} << 20, 'x');
       }},
      // Invalid answers.
      {"say nothing", [] { ::_exit(0); }},
      {"say noise",
       [] {
         say("GET / HTTP/1.1\r\n\r\n", 18);
         ::_exit(0);
       }},
      {"say too much",
       [] {
         say_head(std::uint64_t{1} << 60);
         spin();
       }},
      {"say half",
       [] {
         say_head(100);
         say("half", 4);
         ::_exit(0);
       }},
      {"say it slowly",
       [] {
         say_head(std::uint64_t{1} << 20);
         const std::array<std::uint64_t, 2> one_long_name{1, 4096};
         say(one_long_name.data(), sizeof(one_long_name));
         for (;;) {
           for (volatile unsigned i = 0; i < (1U << 22);) i = i + 1;
           say("x", 1);
         }
       }},
      {"say it endlessly",
       [] {
         say_head(std::uint64_t{64} << 20);
         const std::vector<char> zeros(1 << 16);
         for (;;) say(zeros.data(), zeros.size());
       }},
      // Actions that the filter must block.
      {"open", [] { ::open("/etc/passwd", O_RDONLY); }},
      {"create", [] { ::open("/tmp/flamed-worker-was-here", O_RDWR | O_CREAT, 0600); }},
      {"socket", [] { ::socket(AF_INET, SOCK_STREAM, 0); }},
      {"connect",
       [] {
         const sockaddr_in address{AF_INET, htons(9), {htonl(INADDR_LOOPBACK)}, {}};
         static_cast<void>(::connect(0, reinterpret_cast<const sockaddr*>(&address), sizeof(address)));
       }},
      {"send elsewhere", [] { ::sendto(1, "x", 1, 0, nullptr, 0); }},
      {"write to an engine", [] { static_cast<void>(::write(1, "x", 1)); }},
      {"ask an engine",
       [] {
         const msghdr message{};
         static_cast<void>(::sendmsg(1, &message, 0));
       }},
      {"receive descriptors",
       [] {
         msghdr message{};
         static_cast<void>(::recvmsg(0, &message, 0));
       }},
      {"exec",
       [] {
         std::array<char*, 1> none{nullptr};
         ::execve("/proc/self/exe", none.data(), none.data());
       }},
      {"fork", [] { ::fork(); }},
      {"thread", [] { std::thread([] {}).join(); }},
      {"ptrace", [] { ::ptrace(PTRACE_ATTACH, ::getppid(), nullptr, nullptr); }},
      {"signal", [] { ::syscall(SYS_kill, 1, 0); }},
      {"map code",
       [] { static_cast<void>(::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)); }},
      {"map a file", [] { static_cast<void>(::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, 1, 0)); }},
      {"make code",
       [] {
         void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
         ::mprotect(page, 4096, PROT_READ | PROT_EXEC);
       }},
      {"lift a limit",
       [] {
         const rlimit limit{RLIM_INFINITY, RLIM_INFINITY};
         ::syscall(SYS_prlimit64, 0, RLIMIT_AS, &limit, nullptr);
       }},
      {"stop the timer",
       [] {
         const itimerval none{};
         ::setitimer(ITIMER_REAL, &none, nullptr);
       }},
      {"block signals",
       [] {
         sigset_t all;
         ::sigfillset(&all);
         ::sigprocmask(SIG_BLOCK, &all, nullptr);
       }},
  };
  return kCommands;
}

class FaultyReader final : public ForwardingReader {
 public:
  Result<std::vector<DemangledName>> demangle(std::span<const std::string> mangled) override {
    const auto command = commands().find(mangled.front());
    if (command == commands().end()) return ForwardingReader::demangle(mangled);
    command->second();
    return Error("nothing happened");
  }

  /// The child's pid and what is in the file, for each code. It crashes at the address 0, and ends at 1.
  Result<std::vector<RuntimeAnswer>> read_runtime_functions(ProcessMemory memory, const RuntimeProcess& /*process*/,
                                                            std::span<const RuntimeCode> codes,
                                                            std::span<const CopiedCode> /*copies*/) override {
    if (codes.front().address == 0) commands().at("crash")();
    if (codes.front().address == 1) ::_exit(0);
    std::array<char, 16> text{};
    const ssize_t size = ::pread(memory.fd, text.data(), text.size(), 0);
    RuntimeAnswer answer;
    answer.function.name =
        std::to_string(::getpid()) + " " + std::string(text.data(), size < 0 ? 0 : static_cast<std::size_t>(size));
    return std::vector<RuntimeAnswer>(codes.size(), answer);
  }
};

}  // namespace
}  // namespace flamed::symbolizer

int main(int argc, char** argv) {
  flamed::symbolizer::FaultyReader reader;
  return flamed::symbolizer::run_spawner_if_asked(argc, argv, reader).value_or(2);
}
