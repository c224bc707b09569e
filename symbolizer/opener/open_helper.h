// SPDX-License-Identifier: Apache-2.0
//
// OpenHelper: a process of flamed that opens files and sends the descriptors. A process that opens a file on a file
// system that does not answer can block forever, and not even SIGKILL ends it: here that is the helper.
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/handle.h"
#include "base/identity.h"
#include "base/result.h"
#include "symbolizer/ipc/helper_process.h"
#include "symbolizer/ipc/wire.h"
#include "symbolizer/model/jit_file.h"
#include "symbolizer/opener/container_opener.h"
#include "symbolizer/opener/module_opener.h"
#include "symbolizer/opener/source_opener.h"
#include "symbolizer/process/direct_root_files.h"
#include "symbolizer/process/module_table.h"

namespace flamed::symbolizer {

/// The one argument that starts a program as the helper.
inline constexpr const char* kOpenHelperArgument = "(open helper)";

/// For the first lines of main(): if the program was started as the helper, serves until the daemon is gone, and
/// returns the exit status.
std::optional<int> run_open_helper_if_asked(int argc, char** argv);

class OpenHelper {
 public:
  /// `program` calls run_open_helper_if_asked() first in its main(); `proc` is where procfs is mounted. The helper ends
  /// with the thread that started it. Waits end once `cancel` is readable.
  static Result<OpenHelper> start(const std::string& program, const std::string& proc, int cancel);

  /// The timeout of later answers.
  void set_limit(std::int64_t limit_ns) { limit_ns_ = limit_ns; }

  /// The result of open_module(). Reading and closing the file does not block: its beginning was read, and a duplicate
  /// closed. This and the next six fail with any code when the helper can't be used any more, see state().
  Result<Fd> open_module(const OpenRequest& request, ModuleSearch search);
  /// What find_jit_files() says.
  Result<JitFiles> find_jit_files(const ProcessId& owner);
  /// The result of DirectRootFiles.
  Result<std::vector<RootFile>> open_in_root(std::int32_t pid, std::span<const std::string> paths,
                                             const FileOwner& owner);

  /// The result of open_memory().
  Result<Fd> open_memory(const ProcessId& process);
  /// What find_container_files() says.
  Result<ContainerFiles> find_container_files(const std::string& id);
  /// The result of connect_engine(). Reading may block.
  Result<Fd> connect_engine(const std::string& path, std::string_view asked);
  /// The result of copy_source(). Reading it does not block.
  Result<SourceCopy> copy_source(const SourceRequest& request);

  enum class State : std::uint8_t {
    kReady,
    kHangs,      ///< did not answer in time; it was told to exit, and will when it can
    kCancelled,  ///< the wait was cancelled; likewise
    kEnded,      ///< exited by itself, or can't be used any more
  };
  [[nodiscard]] State state() const { return state_; }
  /// CPU time of the process so far; 0 if it is not known any more.
  [[nodiscard]] std::int64_t cpu_ns() const;

  /// Is the process gone? Then this reaps it.
  bool reap();
  /// Tells a ready helper to exit and waits for at most a second; kills any other one without waiting.
  void end();

 private:
  struct Answer {
    std::vector<std::byte> bytes;
    std::vector<Fd> files;
  };
  /// Also fails if the helper answers with an error.
  Result<Answer> ask(const WireWriter& question);
  Error leave(State state, Error why);

  HelperProcess process_;  ///< its pid is -1 once it is reaped
  std::string proc_;
  int cancel_ = -1;
  std::int64_t limit_ns_ = 2 * kNsPerSecond;
  State state_ = State::kReady;
};

}  // namespace flamed::symbolizer
