// SPDX-License-Identifier: Apache-2.0
#include "daemon/config/refusal.h"

#include <cerrno>

#include "daemon/machine/locked_memory.h"
#include "test/catch.h"

namespace flamed::daemon {
namespace {

struct Case {
  const char* name;
  int code;
  RefusalFacts facts;
  ExitStatus status;
  const char* says;
};

TEST_CASE("each cause of a refusal has its own exit status and a remedy") {
  const Case cases[] = {
      {"no capability at all",
       EPERM,
       {.has_cap_bpf = false, .has_cap_perfmon = false, .has_cap_sys_admin = false},
       ExitStatus::kNoCapability,
       "CAP_BPF and CAP_PERFMON"},
      {"one is missing",
       EACCES,
       {.has_cap_perfmon = false, .has_cap_sys_admin = false},
       ExitStatus::kNoCapability,
       "lacks CAP_PERFMON:"},
      {"Debian's paranoid level",
       EACCES,
       {.has_cap_sys_admin = false, .paranoid = 3},
       ExitStatus::kParanoid,
       "perf_event_paranoid is 3"},
      {"Debian's paranoid level, to be lowered",
       EACCES,
       {.has_cap_sys_admin = false, .paranoid = 3},
       ExitStatus::kParanoid,
       "`sysctl kernel.perf_event_paranoid=2`"},
      {"Debian's paranoid level, to be met",
       EACCES,
       {.has_cap_sys_admin = false, .paranoid = 3},
       ExitStatus::kParanoid,
       "AmbientCapabilities=CAP_SYS_ADMIN and CapabilityBoundingSet=CAP_SYS_ADMIN"},
      {"paranoid does not bind CAP_SYS_ADMIN",
       EPERM,
       {.has_seccomp_filter = true, .paranoid = 3},
       ExitStatus::kForbidden,
       "seccomp"},
      {"a seccomp filter that says EPERM", EPERM, {.has_seccomp_filter = true}, ExitStatus::kForbidden, "seccomp"},
      {"a seccomp filter that says ENOSYS", ENOSYS, {.has_seccomp_filter = true}, ExitStatus::kForbidden, "seccomp"},
      {"an unprivileged container", EPERM, {.in_user_namespace = true}, ExitStatus::kForbidden, "user namespace"},
      {"a security module", EACCES, {}, ExitStatus::kForbidden, "security module"},
      {"a kernel without the system calls", ENOSYS, {}, ExitStatus::kKernelLacks, "CONFIG_BPF_SYSCALL"},
      {"a kernel without BTF", ESRCH, {.has_btf = false}, ExitStatus::kKernelLacks, "CONFIG_DEBUG_INFO_BTF"},
      {"an old kernel that is locked down",
       EINVAL,
       {.confidential = true},
       ExitStatus::kLockdown,
       "lockdown=integrity"},
      {"too many files", EMFILE, {}, ExitStatus::kNoResources, "LimitNOFILE"},
      {"no memory", ENOMEM, {}, ExitStatus::kNoResources, "MemoryMax"},
      {"no locked memory", kLockedMemoryIsShort, {}, ExitStatus::kNoResources, ""},
      {"whatever else", EINVAL, {}, ExitStatus::kCannotSample, ""},
  };
  for (const Case& one : cases) {
    CAPTURE(one.name);
    const Refusal refusal = explain_refusal(Error("refused", one.code), one.facts);
    CHECK(refusal.status == one.status);
    CHECK(refusal.remedy.find(one.says) != std::string::npos);
  }
}

TEST_CASE("this system's settings can be read") {
  const RefusalFacts facts = read_refusal_facts();
  CHECK(facts.paranoid >= -1);
  CHECK(facts.paranoid <= 4);
}

}  // namespace
}  // namespace flamed::daemon
