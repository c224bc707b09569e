// SPDX-License-Identifier: Apache-2.0
//
// GuardedOpener: opens files at paths that other users choose, without being blocked by a file system that does not
// answer: a helper process opens them, and is abandoned when it takes too long. Until that one answers, and for a while
// after, requests that would most likely block the next one are refused at once: see Place.
//
// Any thread. Calls wait for each other.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/handle.h"
#include "base/identity.h"
#include "base/result.h"
#include "symbolizer/model/jit_file.h"
#include "symbolizer/model/root_files.h"
#include "symbolizer/opener/open_helper.h"
#include "symbolizer/process/module_table.h"

namespace flamed::symbolizer {

class GuardedOpener final : public RootFiles {
 public:
  struct Options {
    std::string program = "/proc/self/exe";  ///< see OpenHelper::start()
    std::string proc = "/proc";
    std::int64_t limit_ns = 2 * kNsPerSecond;   ///< timeout of an answer
    std::int64_t quiet_ns = 30 * kNsPerSecond;  ///< how long to refuse after the file system has answered again
  };
  explicit GuardedOpener(const Clock& clock) : GuardedOpener(clock, Options()) {}
  GuardedOpener(const Clock& clock, Options options);
  ~GuardedOpener() override;
  GuardedOpener(const GuardedOpener&) = delete;
  GuardedOpener& operator=(const GuardedOpener&) = delete;

  // An error with code ETIMEDOUT: a file system does not answer, or did not a moment ago.

  /// The result of open_module(). Reading and closing the file does not block.
  Result<Fd> open_module(const OpenRequest& request);
  /// The result of find_jit_files().
  Result<JitFiles> find_jit_files(const ProcessId& owner);
  /// The result of open_memory(). Reading may block.
  Result<Fd> open_memory(const ProcessId& process);
  /// What find_container_files() says.
  Result<ContainerFiles> find_container_files(const std::string& id);
  /// The result of connect_engine(). Reading may block.
  Result<Fd> connect_engine(const std::string& path, std::string_view question);
  /// The result of copy_source(). Reading it does not block.
  Result<SourceCopy> copy_source(const SourceRequest& request);
  /// Files on file systems that do not answer count as missing.
  std::vector<RootFile> open(std::int32_t pid, std::span<const std::string> paths, const FileOwner& owner) override;

  /// From now on nobody waits: current waits end with an error, and later calls fail.
  void stop();

  struct Stats {
    std::size_t hung = 0;        ///< places that do not answer at present
    std::uint64_t timeouts = 0;  ///< since start
    std::int64_t cpu_ns = 0;     ///< of all helpers since start
  };
  [[nodiscard]] Stats stats() const { return {hung_count_, timeouts_, cpu_ns_}; }

 private:
  /// A unit of refusal. Determined before anything is opened: a blocked process may be gone afterwards.
  struct Place {
    std::string name;       ///< "device 0:45", "paths of user 1000", "files of user 1000", "folder /usr/lib/debug"
    std::string user;       ///< the process's user; empty: not known
    bool is_local = false;  ///< a mapped file on a disk of this machine, which can only be slow
  };
  /// A helper that waits for a file system, or did a moment ago.
  struct Hung {
    OpenHelper helper;
    Place place;
    std::optional<MonotonicTime> quiet_until{};  ///< set: it has answered
  };
  /// A place that answers too slowly for others to wait for it.
  struct Slow {
    std::string place;
    MonotonicTime until;
  };

  /// The file systems as seen by a process, or by flamed itself if the process has ended.
  struct View {
    std::string user;    ///< the process's user; empty: flamed's own view
    std::string mounts;  ///< its mountinfo; empty if that can't be read
  };

  // Call these with the mutex held.

  template <typename Answer>
  Result<Answer> ask(const Place& place, const std::function<Result<Answer>(OpenHelper&)>& question);
  [[nodiscard]] std::optional<Error> refusal(const Place& place) const;
  void leave_hung(const Place& place);
  void forget_ended();

  [[nodiscard]] Place place_of_mapping(const OpenRequest& request) const;
  [[nodiscard]] View view_of(std::int32_t pid) const;
  [[nodiscard]] static Place place_of_path(const View& view, std::string_view path);
  /// Empty if the process has ended.
  [[nodiscard]] std::string user_of(std::int32_t pid) const;
  /// The mountinfo of the process, or flamed's own.
  [[nodiscard]] Result<std::string> mounts_of(std::int32_t pid) const;

  const Clock& clock_;
  const Options options_;
  Fd cancel_;  ///< readable once stop() was called
  std::atomic<bool> stopped_ = false;
  std::mutex mutex_;  ///< guards the members below but the atomics; held while waiting for the helper
  std::optional<OpenHelper> helper_;
  std::vector<OpenHelper> ended_;  ///< not reaped yet
  std::vector<Hung> hung_;
  std::vector<Slow> slow_;
  std::int64_t ended_cpu_ns_ = 0;
  std::atomic<std::size_t> hung_count_ = 0;
  std::atomic<std::uint64_t> timeouts_ = 0;
  std::atomic<std::int64_t> cpu_ns_ = 0;
};

}  // namespace flamed::symbolizer
