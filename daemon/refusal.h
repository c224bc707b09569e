// SPDX-License-Identifier: Apache-2.0
//
// Why the kernel refuses to let flamed sample, told from an errno and from what the system shows of itself: the exit
// status, and what to do. Each cause has its own status, so that whoever starts flamed need not read the message.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"

namespace flamed::daemon {

enum class ExitStatus : int {
  kEnded = 0,
  kUnexpected = 1,
  kUsage = 2,         ///< a bad flag or configuration
  kCannotSample = 3,  ///< for none of the reasons below
  kCannotListen = 4,
  kNoCapability = 5,  ///< CAP_BPF or CAP_PERFMON is missing
  kParanoid = 6,      ///< kernel.perf_event_paranoid
  kLockdown = 7,      ///< the kernel is locked down
  kForbidden = 8,     ///< a seccomp filter, a user namespace or a security module
  kKernelLacks = 9,   ///< the kernel was built without BTF, BPF or perf events
  kNoResources = 10,  ///< open files, locked memory or memory are limited
};

/// What the system shows. `read_refusal_facts()` reads it.
struct RefusalFacts {
  bool has_cap_bpf = true;
  bool has_cap_perfmon = true;
  bool has_cap_sys_admin = true;
  bool has_seccomp_filter = false;
  bool in_user_namespace = false;  ///< one of its own, in which capabilities do not count for the whole machine
  int paranoid = 2;
  bool confidential = false;  ///< kernel lockdown in confidentiality mode
  bool has_btf = true;
};
RefusalFacts read_refusal_facts();

struct Refusal {
  ExitStatus status = ExitStatus::kCannotSample;
  std::string remedy;  ///< a sentence; empty where there is none to give
};
/// `error` is what Sampler::start() or begin() returned.
Refusal explain_refusal(const Error& error, const RefusalFacts& facts);

}  // namespace flamed::daemon
