// SPDX-License-Identifier: Apache-2.0
//
// LibbpfLog: captures libbpf's messages on this thread, for the error message: a return code alone ("Permission
// denied") does not name the cause. Two threads may load and attach programs at the same time, each with its own; one
// thread has one at a time.
//
// libbpf loads a program without a log and, if the kernel refuses it, again with a log, in a buffer that it doubles
// until the log fits (bpf_object_load_prog()). So accepted programs cost nothing more, and the end of the log is
// complete on every kernel.
#pragma once

#include <cstdarg>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "daemon/sampler/verifier_log.h"

namespace flamed::daemon {

/// For libbpf's option btf_custom_path: the kernel's own types only. For a missing type libbpf would also search the
/// types of modules, for which libbpf 1.1 needs CAP_SYS_ADMIN.
inline constexpr const char* kKernelTypes = "/sys/kernel/btf/vmlinux";

class LibbpfLog {
 public:
  LibbpfLog();
  ~LibbpfLog();
  LibbpfLog(const LibbpfLog&) = delete;
  LibbpfLog& operator=(const LibbpfLog&) = delete;

  /// The level of the verifier's last lines: kDebug for a fallback of a program that was refused and reported.
  enum class Level { kError, kDebug };
  /// Calls `load`, which loads programs by libbpf and returns 0 or a negative errno, as functions of skeletons do. For
  /// a refused program, logs the verifier's whole log at level debug.
  Status load(std::string_view what, Level level, const std::function<int()>& load);

  /// The error that `what` failed with the errno `code`, with libbpf's last warning or, for a refused program, the
  /// verifier's reason. A verifier's refusal has the code EINVAL, even if the kernel says EACCES, which would mean a
  /// lack of rights.
  [[nodiscard]] Error error(std::string_view what, int code) const;

  /// Takes a warning of libbpf.
  void capture(const char* format, va_list arguments);

 private:
  std::string complaint_;
  std::optional<VerifierLog> refused_;
};

}  // namespace flamed::daemon
