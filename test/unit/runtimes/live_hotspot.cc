// SPDX-License-Identifier: Apache-2.0
#include "test/unit/runtimes/live_hotspot.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "runtimes/hotspot/detect.h"
#include "symbolizer/elf/elf_program_image.h"
#include "test/support/programs.h"

namespace flamed::runtimes {
namespace {

/// A folder that is removed at the end of the program.
const std::filesystem::path& scratch() {
  struct Folder {
    std::filesystem::path path;
    ~Folder() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
  };
  static const Folder folder{[] {
    std::string name = std::filesystem::temp_directory_path() / "flamed-XXXXXX";
    return std::filesystem::path(::mkdtemp(name.data()) != nullptr ? name : std::string());
  }()};
  return folder.path;
}

}  // namespace

std::vector<std::string> jvms() { return test::programs_of("FLAMED_JVMS", "java"); }

Result<std::string> compile_java(const std::string& source) {
  std::string output;
  FILE* const pipe = ::popen(("javac --release 8 -nowarn -Xlint:-options -encoding UTF-8 -d '" + scratch().string() +
                              "' '" + source + "' 2>&1")
                                 .c_str(),
                             "r");
  if (pipe == nullptr) return Error::from_errno("javac");
  char buffer[512];
  while (::fgets(buffer, sizeof(buffer), pipe) != nullptr) output += buffer;
  if (::pclose(pipe) != 0) return Error("javac: " + output);
  return scratch().string();
}

Result<LiveHotSpot> LiveHotSpot::start(const std::string& java, const std::vector<std::string>& options) {
  static const Result<std::string> folder = compile_java(SHOW_OWN_JAVA_STACK);
  if (!folder) return folder.error();
  const std::string messages = *folder + "/messages";
  int output[2];
  if (::pipe2(output, O_CLOEXEC) != 0) return Error::from_errno("pipe2");
  Fd child_output(output[1]);
  const Fd from_child(output[0]);
  Fd child_messages(::open(messages.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  std::vector<std::string> words{java,
                                 "-cp",
                                 *folder,
                                 "-Dfile.encoding=UTF-8",
                                 "-Dstdout.encoding=UTF-8",
                                 "-XX:+PrintCompilation",
                                 "-XX:+DisplayVMOutputToStderr"};
  words.insert(words.end(), options.begin(), options.end());
  words.emplace_back("ShowOwnStack");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  LiveHotSpot process;
  const pid_t parent = ::getpid();
  process.pid_ = ::fork();
  if (process.pid_ == -1) return Error::from_errno("fork");
  if (process.pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    ::dup2(child_output.get(), 1);
    ::dup2(child_messages.get(), 2);
    ::setenv("LC_ALL", "C.UTF-8", 1);
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  child_output.reset();
  if (Status status = process.read_stack(from_child.get()); !status) return std::move(status).error();
  std::ifstream said(messages);
  for (std::string line; std::getline(said, line);) {
    // milliseconds, number, attributes, level, Class::method, more
    std::istringstream parts(line);
    std::uint32_t milliseconds = 0;
    std::uint32_t number = 0;
    parts >> milliseconds >> number;
    for (std::string word; parts && parts >> word;) {
      if (word.find("::") != std::string::npos) process.compiled_.emplace(number, word);
    }
  }
  return process;
}

LiveHotSpot::LiveHotSpot(LiveHotSpot&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      thread_(other.thread_),
      stack_(std::move(other.stack_)),
      compiled_(std::move(other.compiled_)) {}

LiveHotSpot::~LiveHotSpot() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

Status LiveHotSpot::read_stack(int output) {
  // Twice: the first one has loaded what is needed for it.
  std::string text;
  char buffer[4096];
  std::size_t first = std::string::npos;
  while (first == std::string::npos || text.find("\n\n", first + 2) == std::string::npos) {
    const ssize_t got = ::read(output, buffer, sizeof(buffer));
    if (got <= 0) return Error("it ended before it had shown its stack");
    text.append(buffer, static_cast<std::size_t>(got));
    first = text.find("\n\n");
  }
  std::istringstream lines(text.substr(first + 2));
  lines >> thread_;
  lines.ignore();
  for (std::string line; std::getline(lines, line) && !line.empty();) {
    const std::size_t file = line.find('\t');
    const std::size_t number = line.rfind('\t');
    stack_.push_back({line.substr(0, file), line.substr(file + 1, number - file - 1),
                      static_cast<std::uint32_t>(std::stoul(line.substr(number + 1)))});
  }
  // It is now about to wait for ten minutes.
  const std::string state = "/proc/" + std::to_string(pid_) + "/task/" + std::to_string(thread_) + "/syscall";
  for (std::string word; word.empty() || word == "running";) {
    std::ifstream file(state);
    if (!(file >> word)) return Error("its thread can't be looked at");
  }
  return {};
}

std::vector<std::uint64_t> LiveHotSpot::words_on_stack() const {
  std::ifstream file("/proc/" + std::to_string(pid_) + "/task/" + std::to_string(thread_) + "/syscall");
  std::vector<std::string> parts;
  for (std::string part; file >> part;) parts.push_back(part);
  if (parts.size() < 3) return {};
  const std::uint64_t start = std::stoull(parts[parts.size() - 2], nullptr, 16);
  std::vector<std::uint64_t> words;
  ProcessMemory memory(pid_);
  for (std::uint64_t at = start; words.size() < 4096; at += 8) {
    const auto word = read_number<std::uint64_t>(memory, at);
    if (!word) break;
    words.push_back(*word);
  }
  return words;
}

Result<LiveHotSpot::Module> LiveHotSpot::find_module() const {
  std::ifstream maps("/proc/" + std::to_string(pid_) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    const std::size_t slash = line.find('/');
    if (slash == std::string::npos || line.find("/libjvm.so") == std::string::npos) continue;
    const std::uint64_t start = std::stoull(line, nullptr, 16);
    const Fd file(::open(line.c_str() + slash, O_RDONLY | O_CLOEXEC));
    if (!file) return Error::from_errno(line.substr(slash));
    Result<symbolizer::ElfSections> sections = symbolizer::ElfSections::open(file.get());
    if (!sections) return std::move(sections).error();
    symbolizer::ElfProgramImage image(*sections);
    const Result<std::optional<HotSpotTables>> tables = detect_hotspot(image);
    if (!tables) return tables.error();
    if (!*tables) continue;
    ProcessMemory memory(pid_);
    const Result<HotSpotLayout> layout = read_hotspot_layout(memory, **tables, start);
    if (!layout) return layout.error();
    return Module{*layout, start};
  }
  return Error("it has no module that is HotSpot");
}

}  // namespace flamed::runtimes
