// SPDX-License-Identifier: Apache-2.0
//
// LibbpfLog: hears what libbpf says on this thread while it lives, for the error message: a return code alone
// ("Permission denied") does not say of what. Two threads may load and attach programs at the same time, each with its
// own; one thread has one at a time.
//
// libbpf loads a program without a log and, when the kernel refuses it, again with one, in a buffer that it doubles
// until the log is whole (bpf_object_load_prog()). So a program that is not refused costs nothing more, and the end of
// the log is there on every kernel.
#pragma once

#include <cstdarg>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "daemon/sampler/verifier_log.h"

namespace flamed::daemon {

class LibbpfLog {
 public:
  LibbpfLog();
  ~LibbpfLog();
  LibbpfLog(const LibbpfLog&) = delete;
  LibbpfLog& operator=(const LibbpfLog&) = delete;

  /// Of the verifier's last lines: kDebug for a program that replaces one that was refused and reported.
  enum class Level { kError, kDebug };
  /// Calls `load`, which has libbpf load programs and returns 0 or a negative errno, as the functions of skeletons do.
  /// The verifier's whole log of a program that it refuses is logged at level debug.
  Status load(std::string_view what, Level level, const std::function<int()>& load);

  /// `what` failed with the errno `code`: with libbpf's last complaint or, where it refused a program, the verifier's
  /// reason. That is no lack of rights, even if the kernel says EACCES: the code is EINVAL then.
  [[nodiscard]] Error error(std::string_view what, int code) const;

  /// What libbpf prints as a warning.
  void hear(const char* format, va_list arguments);

 private:
  std::string complaint_;
  std::optional<VerifierLog> refused_;
};

}  // namespace flamed::daemon
