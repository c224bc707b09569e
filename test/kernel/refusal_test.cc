// SPDX-License-Identifier: Apache-2.0
//
// Refusals by the kernel or by limits at the start: flamed ends within a second, each cause has an exit status of its
// own, and the message with its remedy is in docs/operations.md.
#include <bpf/btf.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "test/catch.h"
#include "test/kernel/folded_stacks.h"
#include "test/support/child_process.h"
#include "test/support/operations_page.h"
#include "test/support/running_daemon.h"

namespace flamed::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Refused {
  int status = -1;
  std::string words;
  milliseconds took{};
};

/// Runs the daemon through `prefix` until it ends.
Refused run_refused(std::vector<std::string> prefix, const std::vector<std::string>& flags = {}) {
  const char* binary = std::getenv("FLAMED_BINARY");
  REQUIRE(binary != nullptr);
  prefix.emplace_back(binary);
  prefix.insert(prefix.end(), {"--listen", "127.0.0.1:" + std::to_string(free_port())});
  prefix.insert(prefix.end(), flags.begin(), flags.end());
  const auto start = std::chrono::steady_clock::now();
  ChildProcess daemon(prefix, ChildProcess::Capture::kOutputAndErrors);
  Refused refused;
  refused.status = daemon.wait(seconds(20) * patience()).value_or(-1);
  refused.took = std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - start);
  while (const auto line = daemon.read_line(milliseconds(100))) refused.words += *line + "\n";
  return refused;
}

/// Has docs/operations.md this message, beside the status?
bool is_in_the_manual(const Refused& refused) {
  static const OperationsPage page = read_operations_page();
  return std::any_of(page.quotes.begin(), page.quotes.end(), [&](const OperationsPage::Quote& quote) {
    return quote.status == refused.status && is_quoted_from(quote.text, refused.words);
  });
}

void check(const Refused& refused, int status, const std::string& says) {
  CAPTURE(refused.words);
  CHECK(refused.status == status);
  CHECK(refused.words.find(says) != std::string::npos);
  CHECK(is_in_the_manual(refused));
  CHECK(refused.took < seconds(1) * patience());
}

TEST_CASE("without capabilities it ends with status 5 and names those that it lacks") {
  check(run_refused({"setpriv", "--bounding-set=-all", "--inh-caps=-all", "--"}), 5,
        "it lacks CAP_BPF and CAP_PERFMON");
}

TEST_CASE(
    "where a seccomp filter forbids bpf or perf_event_open it ends with status 8 and says which filter to change") {
  const std::string forbidden = victim("forbidden");
  for (const int error : {EPERM, ENOSYS}) {
    for (const char* call : {"bpf", "perf_event_open"}) {
      CAPTURE(error, call);
      check(run_refused({forbidden, std::to_string(error), call, "--"}), 8, "a seccomp filter is in force");
    }
  }
}

TEST_CASE("in the user namespace of an unprivileged container it ends with status 8 and says so") {
  check(run_refused({"unshare", "--user", "--map-root-user"}), 8, "user namespace");
}

TEST_CASE("without the kernel's BTF it ends with status 9 and says what the kernel must be built with") {
  const std::string hide = "set -e; mount -t tmpfs none /sys/kernel/btf; exec \"$0\" \"$@\"";
  check(run_refused({"unshare", "--mount", "--propagation=private", "sh", "-c", hide}), 9, "CONFIG_DEBUG_INFO_BTF");
}

TEST_CASE("a limit of open files ends it with status 10 and says which limit to raise") {
  check(run_refused({"sh", "-c", "ulimit -n 12; exec \"$0\" \"$@\""}), 10, "LimitNOFILE");
}

/// The running kernel's types, with the one by which flamed recognises kernels that count BPF maps as locked memory.
std::filesystem::path write_types_of_an_old_kernel() {
  btf* types = ::btf__parse_raw("/sys/kernel/btf/vmlinux");
  REQUIRE(types != nullptr);
  REQUIRE(::btf__add_struct(types, "bpf_map_memory", 0) > 0);
  std::uint32_t bytes = 0;
  const void* data = ::btf__raw_data(types, &bytes);
  REQUIRE(data != nullptr);
  std::filesystem::path file = std::filesystem::temp_directory_path() / ("flamed-types-" + std::to_string(::getpid()));
  std::ofstream(file, std::ios::binary).write(static_cast<const char*>(data), bytes);
  ::btf__free(types);
  return file;
}

TEST_CASE("on a kernel that counts BPF maps as locked memory a small limit of that ends it with status 10") {
  const std::filesystem::path types = write_types_of_an_old_kernel();
  const std::string as_old = "set -e; mount -t tmpfs none /sys/kernel/btf; cp " + types.string() +
                             " /sys/kernel/btf/vmlinux; ulimit -l 64; exec \"$0\" \"$@\"";
  const std::vector<std::string> on_old{"unshare", "--mount", "--propagation=private", "sh", "-c", as_old};
  SECTION("which is named") {
    std::vector<std::string> short_of_it = on_old;
    short_of_it.insert(short_of_it.end(), {victim("counted_memory"), "65536", "--"});
    check(run_refused(short_of_it), 10,
          "; this kernel counts BPF maps and programs as locked memory, and RLIMIT_MEMLOCK is 64KiB: raise it ");
  }
  SECTION("and a seccomp filter is not mistaken for it") {
    std::vector<std::string> filtered = on_old;
    filtered.insert(filtered.end(), {victim("forbidden"), std::to_string(EPERM), "bpf", "--"});
    check(run_refused(filtered), 8, "a seccomp filter is in force");
  }
  std::filesystem::remove(types);
}

TEST_CASE("a bad configuration ends it with status 2, and the message names file and line") {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / ("flamed-bad-" + std::to_string(::getpid()));
  std::ofstream(file) << "{\n  // a comment\n  \"frequency_hz\": 99,\n  \"retention\": \"yesterday\"\n}\n";
  check(run_refused({}, {"--config", file.string()}), 2,
        file.string() + ": line 4: bad value 'yesterday' for retention");
  std::filesystem::remove(file);
}

TEST_CASE("a port in use ends it with status 4, and the message says how to see the port's owner") {
  RunningDaemon first;
  const char* binary = std::getenv("FLAMED_BINARY");
  ChildProcess second({binary, "--listen", "127.0.0.1:" + std::to_string(first.port())},
                      ChildProcess::Capture::kOutputAndErrors);
  Refused refused;
  refused.status = second.wait(seconds(10)).value_or(-1);
  while (const auto line = second.read_line(milliseconds(100))) refused.words += *line + "\n";
  CAPTURE(refused.words);
  CHECK(refused.status == 4);
  CHECK(refused.words.find("it is taken") != std::string::npos);
  CHECK(refused.words.find("ss -ltnp sport = :" + std::to_string(first.port())) != std::string::npos);
  CHECK(is_in_the_manual(refused));
}

}  // namespace
}  // namespace flamed::test
