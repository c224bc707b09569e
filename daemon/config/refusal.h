// SPDX-License-Identifier: Apache-2.0
//
// Why the kernel refuses sampling, from an errno and facts of the system: the exit status, and what to do. Each cause
// has its own status, so a script need not read the message. Texts and statuses are tables; a test compares
// docs/operations.md with them.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace flamed::daemon {

enum class ExitStatus : int {
  kEnded = 0,
  kUnexpected = 1,
  kUsage = 2,
  kCannotSample = 3,
  kCannotListen = 4,
  kNoCapability = 5,
  kParanoid = 6,
  kLockdown = 7,
  kForbidden = 8,
  kKernelLacks = 9,
  kNoResources = 10,
};

struct ExitStatusMeaning {
  ExitStatus status = ExitStatus::kEnded;
  std::string_view meaning;
  bool is_tried_again = false;  ///< by the unit (RestartPreventExitStatus=): another start may succeed
};
/// All of them, in their order.
std::span<const ExitStatusMeaning> exit_statuses();

/// Facts of the system, from `read_refusal_facts()`.
struct RefusalFacts {
  bool has_cap_bpf = true;
  bool has_cap_perfmon = true;
  bool has_cap_sys_admin = true;
  bool has_seccomp_filter = false;
  bool in_user_namespace = false;  ///< not the host's: its capabilities do not count for the whole machine
  int paranoid = 2;
  bool confidential = false;  ///< kernel lockdown in confidentiality mode
  bool has_btf = true;
};
RefusalFacts read_refusal_facts();

struct Refusal {
  ExitStatus status = ExitStatus::kCannotSample;
  std::string remedy;  ///< a sentence; empty if the error itself has it
};
/// `error` is what Sampler::start() or begin() returned.
Refusal explain_refusal(const Error& error, const RefusalFacts& facts);

struct RefusalText {
  ExitStatus status = ExitStatus::kCannotSample;
  std::string_view remedy;  ///< with {} for the variable parts
};
/// All texts of explain_refusal().
std::span<const RefusalText> refusal_texts();

}  // namespace flamed::daemon
