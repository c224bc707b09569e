// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/worker/worker_module_reader.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/handle.h"
#include "symbolizer/model/reading_purpose.h"
#include "symbolizer/reader/direct_module_reader.h"
#include "test/catch.h"

namespace flamed::symbolizer {
namespace {

using Outcome = WorkerModuleReader::Outcome;

Fd own_program() { return Fd(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC)); }

WorkerModuleReader::Options options() {
  WorkerModuleReader::Options options;
  options.program.path = FAULTY_WORKER;
  return options;
}

WorkerModuleReader::Options with_demangle_limits(std::int64_t wall_ns, std::uint32_t cpu_seconds,
                                                 std::uint64_t answer_bytes = 128U << 20) {
  WorkerModuleReader::Options changed = options();
  RequestLimits& limits = changed.limits[static_cast<std::size_t>(RequestKind::kDemangle)];
  limits.wall_ns = wall_ns;
  limits.cpu_seconds = cpu_seconds;
  limits.answer_bytes = answer_bytes;
  return changed;
}

/// The error of a request whose child runs `command` (faulty_worker.cc).
Error error_of(WorkerModuleReader& reader, const std::string& command) {
  const std::vector<std::string> names = {command};
  const Result<std::vector<DemangledName>> names_back = reader.demangle(names);
  return names_back.ok() ? Error("it was answered") : names_back.error();
}

void check_is_well(WorkerModuleReader& reader) {
  const std::vector<std::string> names = {"_ZN3foo3barEv"};
  const Result<std::vector<DemangledName>> demangled = reader.demangle(names);
  INFO((demangled.ok() ? "" : demangled.error().message()));
  REQUIRE(demangled.ok());
  CHECK(demangled->front().name == "foo::bar");
}

std::uint64_t outcomes(const WorkerModuleReader& reader, Outcome outcome) {
  std::uint64_t sum = 0;
  for (const auto& kind : reader.stats().requests) sum += kind[static_cast<std::size_t>(outcome)];
  return sum;
}

/// Lines of /proc/PID/status.
std::map<std::string, std::string> status_of(pid_t pid) {
  std::map<std::string, std::string> lines;
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    const std::size_t value = line.find_first_not_of(" \t", colon + 1);
    lines[line.substr(0, colon)] = value == std::string::npos ? "" : line.substr(value);
  }
  return lines;
}

pid_t pid_of(const WorkerModuleReader& reader) {
  const std::string detail = reader.state().detail;
  const std::size_t at = detail.find("pid ");
  return at == std::string::npos ? -1 : static_cast<pid_t>(std::stol(detail.substr(at + 4)));
}

TEST_CASE("a worker answers every kind of request like a reader in this process") {
  WorkerModuleReader reader(options());
  DirectModuleReader direct;
  const Fd file = own_program();
  CHECK(reader.inspect(file.get()).value() == direct.inspect(file.get()).value());

  const ElfSymbols symbols = reader.read_symbols({file.get()}).value();
  const ElfSymbols expected = direct.read_symbols({file.get()}).value();
  CHECK(symbols.size() == expected.size());
  CHECK(symbols.build_id() == expected.build_id());

  const SourcedRows rows = reader.read_unwind_rows(file.get(), -1).value();
  const SourcedRows expected_rows = direct.read_unwind_rows(file.get(), -1).value();
  CHECK(rows.rows.rows.size() == expected_rows.rows.rows.size());
  CHECK(rows.source.ranges == expected_rows.source.ranges);
  CHECK_FALSE(rows.was_kept);

  std::vector<std::uint64_t> offsets;
  for (std::uint64_t offset = 0x10000; offset < 0x20000; offset += 0x100) offsets.push_back(offset);
  const auto functions = reader.read_function_rows(file.get(), offsets).value();
  const auto expected_functions = direct.read_function_rows(file.get(), offsets).value();
  REQUIRE(functions.size() == offsets.size());
  for (std::size_t i = 0; i < functions.size(); ++i) {
    CHECK(functions[i].rows.size() == expected_functions[i].rows.size());
    CHECK(functions[i].find(offsets[i]) == expected_functions[i].find(offsets[i]));
  }
  CHECK(reader.locate({file.get()}, offsets).value() == direct.locate({file.get()}, offsets).value());

  const Fd map(::memfd_create("perf.map", MFD_CLOEXEC));
  const std::string text = "1000 20 jitted\n";
  REQUIRE(::write(map.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  CHECK(reader.read_jit_symbols(map.get(), JitFormat::kPerfMap)->find(0x1010)->name == "jitted");

  const DisassemblyQuestion question{{symbols.function_at(0x10100).value_or(CodeRange{0x10000, 0x10100})}, {}};
  const Disassembly disassembly = reader.disassemble(file.get(), question).value();
  CHECK(disassembly.build_id == symbols.build_id());
  CHECK(disassembly.functions == direct.disassemble(file.get(), question).value().functions);
  check_is_well(reader);
  CHECK(outcomes(reader, Outcome::kOk) == 8);
}

TEST_CASE("an unreadable file is reported with the reader's own error") {
  WorkerModuleReader reader(options());
  DirectModuleReader direct;
  const Fd file(::memfd_create("no elf", MFD_CLOEXEC));
  REQUIRE(::write(file.get(), "no elf", 6) == 6);
  CHECK(reader.read_symbols({file.get()}).error().message() == direct.read_symbols({file.get()}).error().message());
  CHECK(outcomes(reader, Outcome::kError) == 1);
}

TEST_CASE("a request with many names is written and read at the same time, whatever the socket's buffer") {
  WorkerModuleReader reader(options());
  const std::vector<std::string> names(50'000, "_ZN3foo3barEv");
  const auto demangled = reader.demangle(names);
  REQUIRE(demangled.ok());
  CHECK(demangled->size() == names.size());
  CHECK(demangled->back().name == "foo::bar");
  CHECK(reader.demangle({})->empty());
}

TEST_CASE("names that need a large stack are demangled without a thread") {
  std::string name = "_ZN";
  for (int i = 0; i < 300; ++i) name += "9namespace";
  name += "1fEv";
  WorkerModuleReader reader(options());
  const std::vector<std::string> names = {name};
  const auto demangled = reader.demangle(names);
  REQUIRE(demangled.ok());
  CHECK(demangled->front().name.rfind("namespace::", 0) == 0);
}

TEST_CASE("a child that crashes or ends early fails only its own request, with what happened") {
  WorkerModuleReader reader(options());
  CHECK(error_of(reader, "crash").message() == "the ELF worker was killed by SIGSEGV while reading names");
  CHECK(error_of(reader, "exit").message() == "the ELF worker ended with exit code 7 while reading names");
  CHECK(outcomes(reader, Outcome::kCrashed) == 2);
  check_is_well(reader);
  CHECK(reader.stats().starts == 1);
}

TEST_CASE("a child that runs or hangs for too long is killed") {
  WorkerModuleReader hasty(with_demangle_limits(300 * kNsPerMs, 10));
  for (const char* command : {"spin", "hang", "say too much", "say it slowly"}) {
    INFO(command);
    const auto start = std::chrono::steady_clock::now();
    const Error error = error_of(hasty, command);
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(3));
    if (std::string(command) != "say too much") {
      CHECK(error.message() == "the ELF worker took longer than 300 ms to read names");
    }
    check_is_well(hasty);
  }
  CHECK(outcomes(hasty, Outcome::kTimeout) == 3);

  WorkerModuleReader thrifty(with_demangle_limits(20 * kNsPerSecond, 1));
  CHECK(error_of(thrifty, "spin").message() == "the ELF worker used more than 1 s of CPU time to read names");
}

TEST_CASE("every kind of invalid answer is an error") {
  WorkerModuleReader reader(with_demangle_limits(2 * kNsPerSecond, 2, 1U << 20));
  CHECK(error_of(reader, "say nothing").message() == "the ELF worker gave a damaged answer (it ends too early)");
  CHECK(error_of(reader, "say noise").message() == "the ELF worker gave a damaged answer (it has no header)");
  CHECK(error_of(reader, "say too much").message() == "the ELF worker gave a damaged answer (it is too large)");
  CHECK(error_of(reader, "say half").message() == "the ELF worker gave a damaged answer (it ends too early)");
  CHECK(error_of(reader, "say it endlessly").message() == "the ELF worker gave a damaged answer (it is too large)");
  CHECK(outcomes(reader, Outcome::kDamaged) == 5);
  check_is_well(reader);
}

bool is_filtered(const WorkerModuleReader& reader) {
  return reader.state().detail.find("system calls filtered") != std::string::npos;
}

TEST_CASE("memory beyond the limit is an error of the request") {
  WorkerModuleReader::Options small = with_demangle_limits(60 * kNsPerSecond, 30);
  small.limits[static_cast<std::size_t>(RequestKind::kDemangle)].memory_bytes = 200U << 20;
  WorkerModuleReader reader(small);
  if (!is_filtered(reader)) return;  // built with a sanitizer, which has no such limit
  CHECK(error_of(reader, "use memory").message().find("bad_alloc") != std::string::npos);
  check_is_well(reader);
}

TEST_CASE("a child can't open, connect, start, signal, trace or map anything, or raise its limits") {
  WorkerModuleReader reader(options());
  if (!is_filtered(reader)) {
    WARN("not tried: " << reader.state().detail);
    return;
  }
  for (const char* command : {"open",           "create",
                              "socket",         "connect",
                              "send elsewhere", "write to an engine",
                              "ask an engine",  "receive descriptors",
                              "exec",           "fork",
                              "thread",         "ptrace",
                              "signal",         "kill",
                              "map code",       "map a file",
                              "make code",      "lift a limit",
                              "stop the timer", "block signals"}) {
    INFO(command);
    CHECK(error_of(reader, command).message().find("was killed by SIGSYS") != std::string::npos);
  }
  check_is_well(reader);
  CHECK(reader.stats().starts == 1);
}

TEST_CASE(
    "an engine's answer is read by a child that could not write to it, and an engine that hangs costs two seconds") {
  WorkerModuleReader reader(options());
  const std::string id(64, 'a');
  std::array<int, 2> ends{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
  const Fd own(ends[0]);
  Fd engine(ends[1]);
  const auto ask = [&] { return reader.read_engine_answer(own.get(), EngineProtocol::kDocker, id); };
  if (!is_filtered(reader)) {
    CHECK(ask().error().message() == "the ELF worker could write to the engine: its system calls are not filtered");
    return;
  }
  const auto begun = std::chrono::steady_clock::now();
  CHECK(ask().error().message() == "the ELF worker took longer than 2 s to read the engine's answer");
  CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds(4));
  check_is_well(reader);

  const std::string answer = "HTTP/1.0 200 OK\r\n\r\n{\"Id\":\"" + id + "\",\"Name\":\"/web\"}";
  REQUIRE(::send(engine.get(), answer.data(), answer.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(answer.size()));
  engine.reset();
  CHECK(ask().value() == ContainerNames{"web", "", ""});
  CHECK(reader.stats().starts == 1);
}

TEST_CASE("the worker has no rights, no environment and no descriptor but its socket") {
  WorkerModuleReader reader(options());
  const pid_t pid = pid_of(reader);
  REQUIRE(pid > 0);
  auto status = status_of(pid);
  CHECK(status["CapPrm"] == "0000000000000000");
  CHECK(status["CapEff"] == "0000000000000000");
  CHECK(status["NoNewPrivs"] == "1");
  if (is_filtered(reader)) CHECK(status["Seccomp"] == "2");
  if (::getuid() != 0) return;  // only root can drop and inspect the rest
  CHECK(status["Uid"] == "65534\t65534\t65534\t65534");
  CHECK(status["Gid"] == "65534\t65534\t65534\t65534");
  CHECK(status["Groups"].empty());
  CHECK(status["CapBnd"] == "0000000000000000");
  const std::string proc = "/proc/" + std::to_string(pid);
  CHECK(::access((proc + "/fd/0").c_str(), F_OK) == 0);
  for (int fd = 1; fd < 64; ++fd) CHECK(::access((proc + "/fd/" + std::to_string(fd)).c_str(), F_OK) != 0);
  std::string environment;
  std::getline(std::ifstream(proc + "/environ"), environment);
  CHECK(environment.empty());
}

TEST_CASE("a killed worker is replaced within the request, and is reaped") {
  WorkerModuleReader reader(options());
  for (int i = 0; i < 5; ++i) {
    const pid_t pid = pid_of(reader);
    // Its own user or root may kill it. The test may be neither any more.
    if (::kill(pid, SIGKILL) != 0) return;
    check_is_well(reader);
    CHECK(pid_of(reader) != pid);
    CHECK(status_of(pid).empty());
  }
  CHECK(reader.stats().starts == 6);
}

TEST_CASE("requests whose worker is killed again and again are answered or fail with that reason") {
  WorkerModuleReader reader(options());
  std::atomic<bool> stop = false;
  std::jthread killer([&] {
    while (!stop) {
      // No pid while there is no worker: kill() would take -1 for all processes.
      if (const pid_t pid = pid_of(reader); pid > 0) ::kill(pid, SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  });
  std::atomic<unsigned> good = 0;
  std::atomic<unsigned> excused = 0;
  std::atomic<unsigned> others = 0;
  {
    std::vector<std::jthread> askers;
    for (int i = 0; i < 3; ++i) {
      askers.emplace_back([&] {
        const std::vector<std::string> names(100, "_ZN3foo3barEv");
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
        while (std::chrono::steady_clock::now() < end) {
          const auto demangled = reader.demangle(names);
          if (demangled.ok()) {
            demangled->back().name == "foo::bar" ? ++good : ++others;
          } else {
            demangled.error().code() == EAGAIN ? ++excused : ++others;
          }
        }
      });
    }
  }
  stop = true;
  killer.join();
  CHECK(good > excused);
  CHECK(others == 0);
  // Starts are limited in rate. After a moment one is allowed again.
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  check_is_well(reader);
}

TEST_CASE("a stopped worker is abandoned after one request, and the next request gets another worker") {
  WorkerModuleReader reader(with_demangle_limits(300 * kNsPerMs, 2));
  const pid_t pid = pid_of(reader);
  if (::kill(pid, SIGSTOP) != 0) return;
  CHECK(error_of(reader, "_Z1fv").message() == "the ELF worker does not respond");
  check_is_well(reader);
  CHECK(pid_of(reader) != pid);
}

TEST_CASE("a worker whose limits were lowered from outside is replaced within the request") {
  WorkerModuleReader reader(options());
  std::uint64_t starts = 1;
  for (const auto& [resource, most] :
       {std::pair<__rlimit_resource, rlim_t>(RLIMIT_NPROC, 0), {RLIMIT_NOFILE, 0}, {RLIMIT_AS, 1U << 20}}) {
    INFO("resource " << resource);
    const pid_t pid = pid_of(reader);
    REQUIRE(pid > 0);
    const rlimit none{most, most};
    if (::prlimit(pid, resource, &none, nullptr) != 0) return;
    CHECK(reader.inspect(own_program().get()).ok());
    check_is_well(reader);
    CHECK(reader.stats().starts == ++starts);
    CHECK(pid_of(reader) != pid);
    CHECK(reader.state().ok);
  }
}

TEST_CASE("while no worker works, the state says so, and not every request starts another") {
  if (::getuid() != 0) {
    WARN("SKIP: only root starts workers that then may start nothing");
    return;
  }
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NPROC, &before) == 0);
  const rlimit none{0, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NPROC, &none) == 0);  // root's own processes are not counted
  WorkerModuleReader reader(options());
  for (int i = 0; i < 5; ++i) {
    const Error error = error_of(reader, "_Z1fv");
    CHECK(error.code() == EAGAIN);
    CHECK(error.message().find("the ELF worker cannot start another process") != std::string::npos);
  }
  REQUIRE(::setrlimit(RLIMIT_NPROC, &before) == 0);
  CHECK(reader.stats().starts == 2);
  CHECK_FALSE(reader.state().ok);
  CHECK(reader.state().detail.find("files are not read for now: the ELF worker cannot start another process") == 0);

  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!reader.state().ok && std::chrono::steady_clock::now() < end) {
    reader.look_after();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  CHECK(reader.state().ok);
  check_is_well(reader);
  CHECK(reader.stats().starts == 3);
}

TEST_CASE("requests run in parallel up to a limit, and background work has places of its own") {
  WorkerModuleReader::Options narrow = with_demangle_limits(kNsPerSecond, 5);
  narrow.max_queries = 2;
  narrow.max_background = 1;
  WorkerModuleReader reader(narrow);
  std::vector<std::jthread> hanging;
  for (int i = 0; i < 2; ++i) hanging.emplace_back([&] { static_cast<void>(error_of(reader, "hang")); });
  while (reader.stats().in_flight < 2) std::this_thread::yield();
  CHECK(reader.read_unwind_rows(own_program().get(), -1).ok());
  CHECK(reader.stats().in_flight == 2);
  hanging.clear();
  check_is_well(reader);
  CHECK(reader.stats().in_flight == 0);
}

TEST_CASE("CPU time is accounted by its purpose") {
  WorkerModuleReader reader(options());
  const Fd file = own_program();
  // A child's CPU time is known when the worker has reaped and reported it.
  const auto background_grows_beyond = [&](std::int64_t ns) {
    for (int tries = 0; tries < 500 && reader.cpu_use().background_ns <= ns; ++tries) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return reader.cpu_use().background_ns > ns;
  };
  REQUIRE(reader.read_symbols({file.get()}).ok());
  CHECK(ReadingFor::purpose() == ReadingPurpose::kAnswer);
  {
    const ReadingFor background(ReadingPurpose::kBackground);
    CHECK(ReadingFor::purpose() == ReadingPurpose::kBackground);
    REQUIRE(reader.read_symbols({file.get()}).ok());
  }
  CHECK(ReadingFor::purpose() == ReadingPurpose::kAnswer);
  CHECK(background_grows_beyond(0));
  CHECK(reader.cpu_use().samples_ns == 0);
  const std::int64_t for_names = reader.cpu_use().background_ns;
  CHECK(for_names < reader.cpu_use().all_ns);
  REQUIRE(reader.read_unwind_rows(file.get(), -1).ok());
  CHECK(background_grows_beyond(for_names));

  const std::int64_t for_background = reader.cpu_use().background_ns;
  {
    const ReadingFor samples(ReadingPurpose::kSamples);
    REQUIRE(reader.read_symbols({file.get()}).ok());
  }
  for (int tries = 0; tries < 500 && reader.cpu_use().samples_ns == 0; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  CHECK(reader.cpu_use().samples_ns > 0);
  CHECK(reader.cpu_use().background_ns == for_background);
}

/// The pid of the child that has read a file, as if that were the memory of a process of `user`, and what it found
/// there.
std::pair<std::string, std::string> read_memory(WorkerModuleReader& reader, std::uint32_t user, std::string_view text) {
  const Fd file(::memfd_create("memory", MFD_CLOEXEC));
  REQUIRE(::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  const std::vector<RuntimeCode> codes = {{4096}};
  const auto answers = reader.read_runtime_functions({file.get(), user}, {}, codes, {});
  INFO((answers.ok() ? "" : answers.error().message()));
  REQUIRE(answers.ok());
  const std::string& name = answers->front().function.name;
  const std::size_t space = name.find(' ');
  return {name.substr(0, space), name.substr(space + 1)};
}

/// The error of a request whose child ends at `address`.
Error error_at(WorkerModuleReader& reader, std::uint64_t address) {
  const std::vector<RuntimeCode> codes = {{address}};
  const auto answers = reader.read_runtime_functions({-1, 1000}, {}, codes, {});
  return answers.ok() ? Error("it was answered") : answers.error();
}

TEST_CASE("the memory of one user's processes is read by one child for a while, and by no other user's") {
  WorkerModuleReader reader(options());
  const auto [child, text] = read_memory(reader, 1000, "first");
  CHECK(text == "first");
  for (int i = 0; i < 20; ++i) {
    const std::string next = "process " + std::to_string(i);
    CHECK(read_memory(reader, 1000, next) == std::pair(child, next));
  }
  const std::string other = read_memory(reader, 1001, "other").first;
  CHECK(other != child);
  CHECK(read_memory(reader, 1001, "again") == std::pair(other, std::string("again")));
  CHECK(read_memory(reader, 1000, "again") == std::pair(child, std::string("again")));
  {
    const ReadingFor background(ReadingPurpose::kBackground);
    CHECK(read_memory(reader, 1000, "in the background").first != child);
  }
  CHECK_FALSE(status_of(std::stoi(child)).empty());
  reader.stop();
  for (int tries = 0; tries < 500 && !status_of(std::stoi(child)).empty(); ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  CHECK(status_of(std::stoi(child)).empty());
}

TEST_CASE("a child that has read memory for its time is not asked again, and ends") {
  WorkerModuleReader reader(options());
  const std::string child = read_memory(reader, 1000, "first").first;
  for (int tries = 0; tries < 600 && !status_of(std::stoi(child)).empty(); ++tries) {
    reader.look_after();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  CHECK(status_of(std::stoi(child)).empty());
  CHECK(read_memory(reader, 1000, "second").first != child);
}

TEST_CASE("memory that crashes its reader fails only its own request, also in a child that has read other memory") {
  WorkerModuleReader reader(options());
  const std::string child = read_memory(reader, 1000, "first").first;
  CHECK(error_at(reader, 0).message() == "the ELF worker was killed by SIGSEGV while reading this file");
  const std::string next = read_memory(reader, 1000, "second").first;
  CHECK(next != child);
  CHECK(error_at(reader, 1).message() == "the ELF worker gave a damaged answer (it ends too early)");
  CHECK(read_memory(reader, 1000, "third").first != next);
  CHECK(outcomes(reader, Outcome::kCrashed) == 1);
  CHECK(outcomes(reader, Outcome::kDamaged) == 1);
  CHECK(outcomes(reader, Outcome::kOk) == 3);
}

TEST_CASE("if no worker can be started, requests fail with the reason, and not every one tries again") {
  WorkerModuleReader::Options options;
  options.program.path = "/nonexistent/worker";
  WorkerModuleReader reader(options);
  CHECK_FALSE(reader.state().ok);
  for (int i = 0; i < 10; ++i) {
    const Error error = error_of(reader, "_Z1fv");
    CHECK(error.code() == EAGAIN);
    CHECK(error.message().find("/nonexistent/worker") != std::string::npos);
  }
  CHECK(reader.stats().failed_starts == 1);

  options.program.path = "/bin/true";
  WorkerModuleReader other(options);
  CHECK(other.state().detail == "files are not read for now: the ELF worker exited while it was started");
}

TEST_CASE("a stopped reader ends its current request, and begins no other") {
  WorkerModuleReader reader(options());
  const auto start = std::chrono::steady_clock::now();
  std::jthread asker([&] { CHECK(error_of(reader, "hang").code() == EAGAIN); });
  while (reader.stats().in_flight < 1) std::this_thread::yield();
  reader.stop();
  asker.join();
  CHECK(error_of(reader, "_Z1fv").code() == EAGAIN);
  // Far less than the two seconds that such a request may take.
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::milliseconds(1500));
}

TEST_CASE("no process is left when the reader ends, whatever its children do") {
  pid_t pid = -1;
  std::jthread asker;
  {
    auto reader = std::make_shared<WorkerModuleReader>(with_demangle_limits(200 * kNsPerMs, 10));
    pid = pid_of(*reader);
    asker = std::jthread([reader] { static_cast<void>(error_of(*reader, "hang")); });
  }
  asker.join();
  CHECK(status_of(pid).empty());
}

}  // namespace
}  // namespace flamed::symbolizer
