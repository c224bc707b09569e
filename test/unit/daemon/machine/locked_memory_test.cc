// SPDX-License-Identifier: Apache-2.0
#include "daemon/machine/locked_memory.h"

#include <cerrno>
#include <string>

#include "test/catch.h"

namespace flamed::daemon {
namespace {

/// As on Linux 5.10, imitated.
constexpr LockedMemoryFacts kShort{.limit_bytes = 64 << 10, .counts_bpf = true, .answers_bpf = true};

Error refused(int code = EPERM) { return Error("making a map: refused", code); }

TEST_CASE("a BPF map that exceeds the locked-memory limit is refused with the limit and a remedy") {
  const Error error = explain_bpf_memory(refused(), kShort);
  CHECK(error.code() == kLockedMemoryIsShort);
  CHECK(
      error.message() ==
      "making a map: refused; this kernel counts BPF maps and programs as locked memory, and RLIMIT_MEMLOCK is 64KiB: "
      "raise it (LimitMEMLOCK=infinity in a unit, `ulimit -l unlimited` in a shell), or give flamed CAP_SYS_RESOURCE, "
      "with which it raises it itself");
}

TEST_CASE("a process with the right to raise the limit is not advised to get it") {
  LockedMemoryFacts facts = kShort;
  facts.may_raise_limit = true;
  const Error error = explain_bpf_memory(refused(), facts);
  CHECK(error.code() == kLockedMemoryIsShort);
  CHECK(error.message().ends_with("in a shell)"));
}

TEST_CASE("a BPF map that is refused for another reason does not blame locked memory") {
  struct Case {
    const char* name;
    int code;
    LockedMemoryFacts facts;
  };
  const auto but = [](auto change) {
    LockedMemoryFacts facts = kShort;
    change(facts);
    return facts;
  };
  const Case cases[] = {
      {"another code", EACCES, kShort},
      {"no limit", EPERM, but([](LockedMemoryFacts& facts) { facts.limit_bytes.reset(); })},
      {"a kernel since 5.11", EPERM, but([](LockedMemoryFacts& facts) { facts.counts_bpf = false; })},
      {"a seccomp filter, or no rights", EPERM, but([](LockedMemoryFacts& facts) { facts.answers_bpf = false; })},
  };
  for (const Case& one : cases) {
    CAPTURE(one.name);
    const Error error = explain_bpf_memory(refused(one.code), one.facts);
    CHECK(error.code() == one.code);
    CHECK(error.message() == refused().message());
  }
}

TEST_CASE("every kernel counts perf buffers as locked memory if there is a limit") {
  const Error error = explain_perf_memory(refused(), {.limit_bytes = 8 << 20});
  CHECK(error.code() == kLockedMemoryIsShort);
  CHECK(error.message() ==
        "making a map: refused; the kernel counts perf buffers as locked memory, and RLIMIT_MEMLOCK is 8MiB: raise it "
        "(LimitMEMLOCK=infinity in a unit, `ulimit -l unlimited` in a shell), or kernel.perf_event_mlock_kb");
  CHECK(explain_perf_memory(refused(), {}).code() == EPERM);
  CHECK(explain_perf_memory(refused(ENOMEM), {.limit_bytes = 8 << 20}).code() == ENOMEM);
}

}  // namespace
}  // namespace flamed::daemon
