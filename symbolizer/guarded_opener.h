// SPDX-License-Identifier: Apache-2.0
//
// GuardedOpener: opens the files of modules without ever being held up by a file system that does not answer. What lies
// on a disk is opened directly; what another host or a process serves (FUSE) by a helper process, which is left behind
// when it takes too long: not even SIGKILL frees whoever waits for such a file system. Until it comes back, files of
// the same device are refused at once.
//
// Belongs to the `modules` thread, except stats().
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/handle.h"
#include "base/result.h"
#include "symbolizer/module_table.h"

namespace flamed::symbolizer {

/// The one argument that starts a program as the helper.
inline constexpr const char* kOpenHelperArgument = "(open helper)";

/// For the first lines of main(): when the program was started as the helper, serves until the daemon goes away, and
/// returns what to exit with.
std::optional<int> run_open_helper_if_asked(int argc, char** argv);

class GuardedOpener {
 public:
  struct Options {
    std::string program = "/proc/self/exe";  ///< calls run_open_helper_if_asked() first thing in its main()
    std::string proc = "/proc";
    std::int64_t limit_ns = 2 * kNsPerSecond;  ///< how long to wait for an open
  };
  GuardedOpener() : GuardedOpener(Options()) {}
  explicit GuardedOpener(Options options) : options_(std::move(options)) {}
  ~GuardedOpener();
  GuardedOpener(const GuardedOpener&) = delete;
  GuardedOpener& operator=(const GuardedOpener&) = delete;

  /// What open_module() says, or an error with code ETIMEDOUT. The file can be read from: its beginning was.
  Result<Fd> open(const OpenRequest& request);

  /// Whether a file system that does not answer is mounted in the process's view: looking for files there may hang.
  [[nodiscard]] bool sees_hung(std::int32_t pid);

  struct Stats {
    std::size_t hung = 0;        ///< file systems that do not answer now
    std::uint64_t timeouts = 0;  ///< since start
  };
  [[nodiscard]] Stats stats() const { return {hung_count_, timeouts_}; }

 private:
  struct Helper {
    pid_t pid = -1;
    Fd pidfd;
    Fd socket;
  };
  /// A helper that waits for a file system, and which that is.
  struct Hung {
    Helper helper;
    FileKey device;  ///< without an inode
  };

  [[nodiscard]] bool may_hang_at(const OpenRequest& request) const;
  Result<Fd> open_by_helper(const OpenRequest& request);
  Status start_helper();
  void forget_ended();
  [[nodiscard]] bool is_hung(const FileKey& file) const;

  const Options options_;
  std::optional<Helper> helper_;
  std::vector<Helper> ended_;  ///< their ends of the sockets are closed; who has ended is reaped later
  std::vector<Hung> hung_;
  std::atomic<std::size_t> hung_count_ = 0;
  std::atomic<std::uint64_t> timeouts_ = 0;
};

}  // namespace flamed::symbolizer
