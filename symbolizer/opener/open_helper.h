// SPDX-License-Identifier: Apache-2.0
//
// OpenHelper: a process of flamed's own that opens files and sends the descriptors. Whoever looks for a file on a file
// system that does not answer is held up for good, and not even SIGKILL frees him: here that is the helper.
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/handle.h"
#include "base/identity.h"
#include "base/result.h"
#include "symbolizer/ipc/helper_process.h"
#include "symbolizer/ipc/wire.h"
#include "symbolizer/model/jit_file.h"
#include "symbolizer/opener/module_opener.h"
#include "symbolizer/process/direct_root_files.h"
#include "symbolizer/process/module_table.h"

namespace flamed::symbolizer {

/// The one argument that starts a program as the helper.
inline constexpr const char* kOpenHelperArgument = "(open helper)";

/// For the first lines of main(): when the program was started as the helper, serves until the daemon goes away, and
/// returns what to exit with.
std::optional<int> run_open_helper_if_asked(int argc, char** argv);

class OpenHelper {
 public:
  /// `program` calls run_open_helper_if_asked() first thing in its main(); it is told where procfs is mounted. The
  /// helper is ended with the thread that started it. Once `cancel` is readable nothing is waited for any more.
  static Result<OpenHelper> start(const std::string& program, const std::string& proc, int cancel);

  /// How long to wait for an answer from now on.
  void set_limit(std::int64_t limit_ns) { limit_ns_ = limit_ns; }

  /// What open_module() says. The file can be read from and closed: its beginning was read, and a duplicate closed.
  /// This and the next two fail with any code when the helper is of no more use, which state() tells.
  Result<Fd> open_module(const OpenRequest& request, ModuleSearch search);
  /// What find_jit_files() says.
  Result<JitFiles> find_jit_files(const ProcessId& owner);
  /// What DirectRootFiles says.
  Result<std::vector<RootFile>> open_in_root(std::int32_t pid, std::span<const std::string> paths,
                                             const FileOwner& owner);

  enum class State : std::uint8_t {
    kReady,
    kHangs,      ///< did not answer in time; it was told to end, and will when it can
    kCancelled,  ///< it was not waited for; likewise
    kEnded,      ///< without being asked to, or is of no more use
  };
  [[nodiscard]] State state() const { return state_; }
  /// CPU time of the process so far; 0 when it can't be told any more.
  [[nodiscard]] std::int64_t cpu_ns() const;

  /// Is the process gone? Then it is reaped, and nothing of it is left.
  bool reap();
  /// Tells a helper that is ready to end and gives it a second for it; any other is killed and not waited for.
  void end();

 private:
  struct Answer {
    std::vector<std::byte> bytes;
    std::vector<Fd> files;
  };
  /// Fails, too, when that is what the helper answers.
  Result<Answer> ask(const WireWriter& question);
  Error leave(State state, Error why);

  HelperProcess process_;  ///< its pid is -1 once it is reaped
  std::string proc_;
  int cancel_ = -1;
  std::int64_t limit_ns_ = 2 * kNsPerSecond;
  State state_ = State::kReady;
};

}  // namespace flamed::symbolizer
