// SPDX-License-Identifier: Apache-2.0
#include "test/unit/runtimes/live_python.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>

#include "runtimes/python/detect.h"
#include "symbolizer/elf/elf_program_image.h"
#include "test/support/programs.h"

namespace flamed::runtimes {

std::vector<std::string> pythons() { return test::programs_of("FLAMED_PYTHONS", PYTHON); }

bool ProcessMemory::read(std::uint64_t address, std::span<std::byte> to) {
  if (to.empty()) return true;
  iovec local{to.data(), to.size()};
  iovec remote{std::bit_cast<void*>(address), to.size()};
  return ::process_vm_readv(pid_, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(to.size());
}

Result<LivePython> LivePython::start(const std::string& python, const std::string& mode) {
  int input[2];
  int output[2];
  if (::pipe2(input, O_CLOEXEC) != 0 || ::pipe2(output, O_CLOEXEC) != 0) return Error::from_errno("pipe2");
  Fd child_input(input[0]);
  Fd child_output(output[1]);
  const Fd from_child(output[0]);
  LivePython process;
  process.input_ = Fd(input[1]);
  const pid_t parent = ::getpid();
  process.pid_ = ::fork();
  if (process.pid_ == -1) return Error::from_errno("fork");
  if (process.pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    ::dup2(child_input.get(), 0);
    ::dup2(child_output.get(), 1);
    ::setenv("LC_ALL", "C.UTF-8", 1);
    ::execlp(python.c_str(), python.c_str(), SHOW_OWN_STACK, mode.c_str(), nullptr);
    ::_exit(127);
  }
  child_output.reset();
  if (Status status = process.read_stack(from_child.get()); !status) return std::move(status).error();
  if (mode != "wait") return process;
  // It is now about to read from its first descriptor.
  const std::string state = "/proc/" + std::to_string(process.pid_) + "/syscall";
  const std::string reads = std::to_string(SYS_read);
  for (std::string call, descriptor; call != reads || descriptor != "0x0";) {
    std::ifstream file(state);
    if (!(file >> call)) return Error("its system call can't be looked at");
    if (call == "running") continue;
    file >> descriptor;
  }
  return process;
}

LivePython::LivePython(LivePython&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      input_(std::move(other.input_)),
      thread_(other.thread_),
      stack_(std::move(other.stack_)) {}

LivePython::~LivePython() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

Status LivePython::read_stack(int output) {
  std::string text;
  char buffer[4096];
  while (text.size() < 2 || text.substr(text.size() - 2) != "\n\n") {
    const ssize_t got = ::read(output, buffer, sizeof(buffer));
    if (got <= 0) return Error("it ended before it had shown its stack");
    text.append(buffer, static_cast<std::size_t>(got));
  }
  std::istringstream lines(text);
  lines >> thread_;
  lines.ignore();
  for (std::string line; std::getline(lines, line) && !line.empty();) {
    const std::size_t file = line.find('\t');
    const std::size_t number = line.rfind('\t');
    stack_.push_back({line.substr(0, file), line.substr(file + 1, number - file - 1),
                      static_cast<std::uint32_t>(std::stoul(line.substr(number + 1)))});
  }
  return {};
}

Result<LivePython::Module> LivePython::find_module() const {
  std::ifstream maps("/proc/" + std::to_string(pid_) + "/maps");
  std::string last_path;
  std::uint64_t start = 0;
  for (std::string line; std::getline(maps, line);) {
    const std::size_t slash = line.find('/');
    if (slash == std::string::npos || line.substr(slash) == last_path) continue;
    last_path = line.substr(slash);
    start = std::stoull(line, nullptr, 16);
    const Fd file(::open(last_path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) continue;
    Result<symbolizer::ElfSections> sections = symbolizer::ElfSections::open(file.get());
    if (!sections) continue;
    symbolizer::ElfProgramImage image(*sections);
    const Result<std::optional<PythonLayout>> layout = detect_python(image);
    if (!layout) return Error(last_path + ": " + layout.error().message());
    if (!*layout) continue;
    constexpr std::uint64_t kPage = 4096;
    for (const GElf_Phdr& segment : sections->segments()) {
      if (segment.p_type == PT_LOAD) return Module{**layout, start - segment.p_vaddr / kPage * kPage, last_path};
    }
  }
  return Error("it has no module that is a Python");
}

}  // namespace flamed::runtimes
