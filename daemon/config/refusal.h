// SPDX-License-Identifier: Apache-2.0
//
// Why the kernel refuses to let flamed sample, told from an errno and from what the system shows of itself: the exit
// status, and what to do. Each cause has its own status, so that a script need not read the message. What
// is said and what it ends with are tables, which docs/operations.md is compared with.
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
  bool is_tried_again = false;  ///< by the unit (RestartPreventExitStatus=): another start may do better
};
/// All of them, in their order.
std::span<const ExitStatusMeaning> exit_statuses();

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
  std::string remedy;  ///< a sentence; empty where the error itself has it
};
/// `error` is what Sampler::start() or begin() returned.
Refusal explain_refusal(const Error& error, const RefusalFacts& facts);

struct RefusalText {
  ExitStatus status = ExitStatus::kCannotSample;
  std::string_view remedy;  ///< with {} for what differs
};
/// All that explain_refusal() says.
std::span<const RefusalText> refusal_texts();

}  // namespace flamed::daemon
